/*
 * The id of one charge of two units while connections are lost: docs/dev/model.md. Times do not matter here: outage.pml has
 * them. A message that was sent may arrive at any time and again, also after those that were sent later.
 *
 *   CHECK_HISTORY       once the charge is answered, the usage history has the units that have begun or wait, and none whose
 *                       refund is answered
 *   MUTANT_...          a wrong protocol
 */
#define UNITS 2

/* The gateway: `LocalUnits` and `OpenGrant` of src/customers/quota. */
unsigned waiting : 2 = UNITS; /* units of admitted requests that have neither begun nor failed */
unsigned begun : 2;
unsigned failed : 2;          /* in total: of which the units return */
bit is_sent;                  /* an attempt of the charge may arrive */
bit is_answered;
unsigned sent : 2;            /* refunds that may arrive: of 1 unit in total (bit 0), of 2 (bit 1) */
unsigned told : 2;            /* units in total, by the highest refund that is answered: `OpenGrant.#confirmed` */

/* The store: `StoredGrant` of src/store/grants.ts. */
bit is_known;
unsigned granted : 2;         /* 0: void */
unsigned returned : 2;
unsigned counted : 3;         /* units in the usage history */

inline check() {
#ifdef CHECK_HISTORY
  assert(!is_answered || (counted >= begun + waiting && counted <= begun + waiting + failed - told)) /* history */
#endif
}

/* `chargeOnce` of src/store/grants.ts and charge.lua */
inline arrive_charge() {
  if
#ifdef MUTANT_CHARGE_WITH_NEW_ID
  :: counted < 2 * UNITS ->
#else
  :: !is_known ->
#endif
     is_known = 1; granted = UNITS; returned = 0; counted = counted + UNITS
  :: else
  fi
}

/* `noteRefunds` of src/store/grants.ts and window.lua */
inline arrive_refund(total) {
  if
  :: !is_known -> is_known = 1; granted = 0
  :: is_known && granted > 0 && total > returned ->
     counted = counted - (total - returned);
     returned = total;
#ifdef MUTANT_CHARGE_FORGOTTEN
     if
     :: total == UNITS -> is_known = 0 /* as the id of a reservation, of which there is one copy */
     :: else
     fi
#endif
  :: else
  fi
}

#ifdef MUTANT_REFUND_BEFORE_ANSWER
#define MAY_REFUND true
#else
#define MAY_REFUND is_answered
#endif

active proctype Report() {
  do
  :: d_step { waiting > 0 -> waiting--; begun++; check() }
  :: d_step { waiting > 0 -> waiting--; failed++; check() }
    /* `LocalWindows.#charge`, again until it is answered */
  :: d_step { !is_sent -> is_sent = 1 }
    /* It arrives, and its reply is lost. */
  :: d_step { is_sent -> arrive_charge(); check() }
    /* It arrives, and is answered. */
  :: d_step { is_sent && !is_answered -> arrive_charge(); is_answered = 1; check() }
    /* `giveBack` and `CustomerLeases.sendRefunds` */
  :: d_step { MAY_REFUND && failed > 0 && (sent & failed) == 0 -> sent = sent | failed }
  :: d_step { (sent & 1) != 0 -> arrive_refund(1); check() }
  :: d_step { (sent & 2) != 0 -> arrive_refund(2); check() }
  :: d_step { (sent & 1) != 0 -> arrive_refund(1); told = (told > 1 -> told : 1); check() }
  :: d_step { (sent & 2) != 0 -> arrive_refund(2); told = 2; check() }
  od
}
