/*
 * Leases while the store is available: docs/dev/model.md.
 *
 * The first gateway may have two leases at a time, the second one; with ONE_LEASE_EACH, each has one. A process below
 * stands for a place of a lease.
 *
 *   SHORT_HOLD          there is a shorter hold, too
 *   RESETS              usage is reset, and the customer deleted and created again
 *   FAILOVER            the store loses one write in a failover
 *   PERIOD              the customer has a period of so many ticks beside the window, and PERIOD_LIMIT units in it
 *   KEY_LIMIT           a key may have so many units of the window; each lease is of this key, or of one without a limit
 *   CHECK_KEY           no interval sees more begin with that key than KEY_LIMIT
 *   CHECK_WINDOW        no interval sees more begin than LIMIT (and than that write granted)
 *   CHECK_HISTORY       each unit in the usage history has begun, is held, or was lost with a gateway; a period counts its hours
 *   CHECK_PERIOD        no more begin on grants of a period than PERIOD_LIMIT, and than were refunded to it late
 *   MUTANT_...          a wrong protocol
 */
#include "window.pml"

/* How many ticks of the longest hold a gateway's clock may miss. */
#ifndef DRIFT
#define DRIFT 1
#endif
#ifdef MUTANT_NO_DRIFT_MARGIN
#define MARGIN 0
#else
#define MARGIN DRIFT
#endif

/* `LeaseLength` of src/customers/quota/leases.ts */
#ifdef SHORT_HOLD
#define HOLD_OF(s) (lease[s].is_short -> SHORT_HOLD : HOLD)
#else
#define HOLD_OF(s) HOLD
#endif
#define USABLE_HOLD(s) (HOLD_OF(s) - MARGIN)
#define USABLE_LEASE(s) (USABLE_HOLD(s) > 0 -> USABLE_HOLD(s) - 1 : 0)

/* The state of a place. */
#define FREE 0
#define SENT 1    /* the reservation is under way to the store */
#define CHECKED 2 /* of a mutant */
#define REPLIED 3 /* the reply is under way to the gateway */
#define OPEN 4    /* the gateway has the grant, or refunds one of which it has not got the reply */
#define ORPHAN 5  /* the reservation is under way, or lost with its connection: the gateway refunds all that it asked for */
#define VOID 6    /* the same, but the refund has come before it */
#define DEAD 7    /* the reservation is under way, and its gateway has crashed */

#define EXPIRED 7 /* a bucket */

/* An epoch. */
#define THIS 0
#define EARLIER 1 /* of the same lineage */
#define FOREIGN 2 /* of another lineage */

/* The period of a grant. GRACE: ticks after its end in which its units return to it. */
#define PRESENT 0
#define ENDED 1
#define CLOSED 2

typedef Lease {
  unsigned state : 3;
  unsigned unused : 2;  /* units not handed out: `Lease.units` */
  unsigned waiting : 2; /* units of admitted requests that have neither begun nor failed */
  unsigned total : 2;   /* units that have returned, in total: `OpenGrant.#returned` */
  unsigned sent : 2;    /* refunds that may arrive, at any time and again: of 1 unit in total (bit 0), of 2 (bit 1) */
  unsigned noted : 2;   /* by the store: `StoredGrant.returned` */
  unsigned age : 3;     /* ticks since the reservation was sent, by the clock of the gateway that shows more */
  unsigned missed : 3;  /* ticks that this clock missed */
  unsigned bucket : 3;
  unsigned epoch : 2;
  bit is_unknown;       /* the store has no note of it: of a failover, or of a mutant */
  bit is_short;
  bit is_of_key;        /* the key that has a limit */
  unsigned period : 2   /* by the store's clock; of a mutant, until the grant: by that of the gateway */
}

Lease lease[4]; /* the second gateway's are 2 and 3 */
byte lost;      /* units granted by the write that a failover lost */
#ifdef KEY_LIMIT
byte used_by_key; /* of one step, and 0 after it */
#endif
/*
 * Units in the usage history that neither have begun nor were lost with a gateway. The history has the granted units
 * without the refunded ones; this is kept instead of its sums, which grow without end.
 */
byte owed;
#ifdef PERIOD
byte period_phase; /* ticks since the present period began */
/* By PRESENT and ENDED. */
byte counted[2];   /* `countInPeriod` of src/store/period-counts.ts */
byte in_hours[2];  /* units in the hours of the usage history that are in the period */
/*
 * Units of these grants that have begun or were lost: with a gateway, or because a late refund took what they could have
 * been refunded from. Without those that late refunds took: units of grants of a closed period. Negative if these are more.
 */
short spent[2];
short expected;

inline spend(period_, count) {
  if
  :: period_ != CLOSED ->
     spent[period_] = spent[period_] + (count);
#ifdef CHECK_PERIOD
     assert(spent[period_] <= PERIOD_LIMIT) /* period */
#endif
  :: else
  fi
}
#else
#define spend(period_, count)
#endif

#define L lease[me]
#define PEER lease[me ^ 1]
#define AWAITS_REPLY(s) (lease[s].state >= SENT && lease[s].state <= REPLIED)
#define HAS_UNITS(s) (lease[s].state == OPEN && lease[s].unused + lease[s].waiting > 0)
#define AGES(s) ((AWAITS_REPLY(s) || HAS_UNITS(s)) && lease[s].age <= USABLE_HOLD(s))
#define IS_IN_HISTORY(s) (lease[s].epoch != FOREIGN)

inline strike_off(s, count) {
  if
  :: IS_IN_HISTORY(s) -> owed = owed - (count)
  :: else
  fi;
  spend(lease[s].period, count)
}

inline clear(s) {
  lease[s].state = FREE; lease[s].unused = 0; lease[s].waiting = 0; lease[s].total = 0; lease[s].sent = 0;
  lease[s].noted = 0; lease[s].age = 0; lease[s].missed = 0; lease[s].bucket = 0; lease[s].epoch = THIS;
  lease[s].is_unknown = 0; lease[s].is_short = 0; lease[s].is_of_key = 0;
  lease[s].period = PRESENT
}

inline move(from, to) {
  lease[to].state = lease[from].state; lease[to].unused = lease[from].unused; lease[to].waiting = lease[from].waiting;
  lease[to].total = lease[from].total; lease[to].sent = lease[from].sent; lease[to].noted = lease[from].noted;
  lease[to].age = lease[from].age; lease[to].missed = lease[from].missed; lease[to].bucket = lease[from].bucket;
  lease[to].epoch = lease[from].epoch; lease[to].is_unknown = lease[from].is_unknown;
  lease[to].is_short = lease[from].is_short; lease[to].is_of_key = lease[from].is_of_key;
  lease[to].period = lease[from].period;
  clear(from)
}

/* Forgets what makes no difference any more, so that equal states are recognised as such. */
inline settle(s) {
  if
  :: lease[s].state == OPEN && !HAS_UNITS(s) ->
     lease[s].age = 0; lease[s].missed = 0; lease[s].is_short = 0;
     if
     :: lease[s].total == 0 -> clear(s)
     :: else
     fi
  :: else
  fi;
  if
  :: (s & 1) == 0 && lease[s].state == FREE && lease[s + 1].state != FREE -> move(s + 1, s)
  :: else
  fi
}

#ifdef PERIOD
/* A period counts what its hours have: what was spent, is held, or is not refunded yet. */
inline check_period(period_) {
  expected = spent[period_];
  for (i : 0 .. 3) {
    if
    :: (lease[i].state == REPLIED || lease[i].state == OPEN) && lease[i].period == period_ ->
       expected = expected + lease[i].unused + lease[i].waiting + lease[i].total - lease[i].noted
    :: else
    fi
  }
  assert(in_hours[period_] == expected); /* history */
  assert(counted[period_] == in_hours[period_]); /* history */
  expected = 0
}
#endif

/* At the end of each step. */
inline check() {
#ifdef CHECK_HISTORY
  sum = 0;
  for (i : 0 .. 3) {
    if
    :: (lease[i].state == REPLIED || lease[i].state == OPEN) && IS_IN_HISTORY(i) ->
       sum = sum + lease[i].unused + lease[i].waiting + lease[i].total - lease[i].noted
    :: else
    fi
  }
  assert(owed == sum); /* history */
#ifdef PERIOD
  check_period(PRESENT); check_period(ENDED);
#endif
#endif
  end_step()
}

#ifdef KEY_LIMIT
#ifdef MUTANT_KEY_BUCKET_OF_GRANT
#define KEY_BUCKET CURRENT
#else
#define KEY_BUCKET L.bucket
#endif
#ifdef MUTANT_KEY_UNCOUNTED
#define count_for_key(count)
#else
#define count_for_key(count) units_of_key[KEY_BUCKET] = units_of_key[KEY_BUCKET] + (L.is_of_key -> count : 0)
#endif

/* Of the windows of customer and key, the one with the fewest free units bounds the grant: `sum` becomes as many used ones. */
inline bound_by_key() {
  if
  :: L.is_of_key ->
     used_by_key = sum;
     sum_used_of_key();
     /* Now `used_by_key` is what its name says, and `sum` what the customer has used. */
     i = sum; sum = used_by_key; used_by_key = i;
#ifdef MUTANT_REFUSAL_OF_KEY_COUNTS
     if
     :: used_by_key >= KEY_LIMIT && sum < LIMIT ->
        units[BUCKET_AFTER(HOLD)] = units[BUCKET_AFTER(HOLD)] + 1; owed++
     :: else
     fi;
#endif
#ifdef MUTANT_LARGER_OF_KEY
     sum = (used_by_key < KEY_LIMIT -> sum : LIMIT);
#else
     sum = (KEY_LIMIT - used_by_key < LIMIT - sum -> LIMIT - KEY_LIMIT + used_by_key : sum);
#endif
     used_by_key = 0
  :: else
  fi
}

inline give_back_to_key(count) {
  if
#ifdef MUTANT_REFUND_TO_ANY_KEY
  :: true ->
#else
  :: L.is_of_key ->
#endif
     units_of_key[L.bucket] = ((count) < units_of_key[L.bucket] -> units_of_key[L.bucket] - (count) : 0)
  :: else
  fi
}
#else
#define count_for_key(count)
#define bound_by_key()
#define give_back_to_key(count)
#endif

/* `reserveOnce` of src/store/grants.ts and reserve.lua, of an id that is not known. Any number of free units covers `need` and `ahead`. */
inline count_grant(count) {
#ifdef MUTANT_BUCKET_OF_GRANT
  L.bucket = CURRENT;
#else
  L.bucket = BUCKET_AFTER(HOLD_OF(me));
#endif
#ifdef MUTANT_KEY_ALONE
  units[L.bucket] = units[L.bucket] + (L.is_of_key -> 0 : count);
#else
  units[L.bucket] = units[L.bucket] + count;
#endif
  count_for_key(count);
  L.unused = count;
  owed = owed + L.unused;
#ifdef PERIOD
  in_hours[PRESENT] = in_hours[PRESENT] + L.unused;
#ifdef MUTANT_PERIOD_OF_GATEWAY
  if
  :: L.period != CLOSED -> counted[L.period] = counted[L.period] + L.unused
  :: else
  fi;
#elif !defined(MUTANT_HOUR_ALONE)
  counted[PRESENT] = counted[PRESENT] + L.unused;
#endif
  L.period = PRESENT;
#endif
  if
  :: L.state == DEAD -> strike_off(me, L.unused); clear(me)
  :: L.state == ORPHAN -> L.state = OPEN; L.total = L.unused; L.unused = 0
  :: else -> L.state = REPLIED
  fi
}

#ifdef PERIOD
#ifdef MUTANT_PERIOD_OF_GATEWAY
#define PERIOD_USED (L.period == CLOSED -> 0 : counted[L.period])
#else
#define PERIOD_USED counted[PRESENT]
#endif
/* What is left of the period bounds the grant, too. So `sum` becomes as many used units as leave no more. */
inline bound_by_period(count) {
#ifdef MUTANT_REFUSAL_COUNTS
  if
  :: sum < LIMIT && PERIOD_USED >= PERIOD_LIMIT ->
     units[BUCKET_AFTER(HOLD)] = units[BUCKET_AFTER(HOLD)] + 1; in_hours[PRESENT]++
  :: else
  fi;
#endif
#ifdef MUTANT_LARGER_LIMIT
  sum = (PERIOD_USED < PERIOD_LIMIT -> sum : LIMIT)
#else
  sum = (PERIOD_LIMIT - PERIOD_USED < LIMIT - sum -> LIMIT - PERIOD_LIMIT + PERIOD_USED : sum)
#endif
}
#else
#define bound_by_period(count)
#endif

inline answer(count) {
  sum_used();
  bound_by_period(count);
  bound_by_key();
  if
  :: sum >= LIMIT -> clear(me) /* the refusal is remembered: it changes nothing here */
  :: else -> count_grant((count < LIMIT - sum -> count : LIMIT - sum))
  fi;
  settle(me & 2);
  check()
}

#ifdef PERIOD
/*
 * `refundInPeriod` of src/store/period-counts.ts: to the period of the hour to which the history gives them back, which is
 * that of the grant until it is closed, and that of now later. At most the units that it has.
 */
inline refund_period(count) {
  i = (L.period == ENDED -> ENDED : PRESENT);
  expected = ((count) < in_hours[i] -> (count) : in_hours[i]);
  in_hours[i] = in_hours[i] - expected;
#ifdef MUTANT_REFUND_TO_PRESENT
  counted[PRESENT] = counted[PRESENT] - (expected < counted[PRESENT] -> expected : counted[PRESENT]);
#elif defined(MUTANT_REFUND_TO_CLOSED)
  counted[i] = counted[i] - (L.period == CLOSED -> 0 : expected);
#else
  counted[i] = counted[i] - expected;
#endif
  spent[i] = spent[i] - expected + (L.period == CLOSED -> 0 : (count));
  i = 0; expected = 0
}
#else
#define refund_period(count)
#endif

/* Units return to the window and the history: `refundOnce` of src/store/grants.ts, `open` of window.lua. */
inline give_back(count) {
  if
#ifdef MUTANT_REFUND_ANY_EPOCH
  :: L.bucket != EXPIRED ->
#else
  :: L.epoch == THIS && L.bucket != EXPIRED ->
#endif
     units[L.bucket] = ((count) < units[L.bucket] -> units[L.bucket] - (count) : 0);
     give_back_to_key(count)
  :: else
  fi;
  if
#ifdef MUTANT_HISTORY_OF_THIS_EPOCH
  :: L.epoch == THIS -> owed = owed - (count)
#elif defined(MUTANT_HISTORY_OF_ANY_LINEAGE)
  :: true -> owed = owed - (count)
#else
  :: L.epoch != FOREIGN -> owed = owed - (count)
#endif
  :: else
  fi;
  refund_period(count)
}

/* `noteRefunds` of src/store/grants.ts and window.lua: the difference to what it has noted of this id. */
inline apply_refund(refunded) {
  if
  :: !L.is_unknown && refunded > L.noted ->
     give_back(refunded - L.noted);
#ifndef MUTANT_APPLIED_WITHOUT_NOTING
     L.noted = refunded
#endif
  :: else
  fi;
#ifdef MUTANT_FORGOTTEN_TOO_EARLY
  L.is_unknown = 1
#endif
}

/* `CustomerLeases.answered`: no unit can return any more. A copy of a refund that comes later names an unknown id. */
inline answered(refunded) {
  if
  :: refunded == L.total && !HAS_UNITS(me) -> clear(me)
  :: else
  fi;
  settle(me & 2);
  check()
}

#define MAY_ARRIVE(refunded) (L.state == OPEN && (L.sent & (refunded)) != 0)

#ifdef MUTANT_BEGIN_UNCHECKED
#define MAY_BEGIN true
#else
#define MAY_BEGIN (L.age <= USABLE_HOLD(me))
#endif

proctype Lease_place(byte me) {
  do
    /* `LeasedQuota.#reserve`: one reservation in flight. The places of a gateway are filled in order. */
  :: STEP { L.state == FREE && !AWAITS_REPLY(me ^ 1) && ((me & 1) == 0 || PEER.state != FREE) -> EFFECT { L.state = SENT } }
#ifdef KEY_LIMIT
  :: STEP { L.state == FREE && !AWAITS_REPLY(me ^ 1) && ((me & 1) == 0 || PEER.state != FREE) -> EFFECT {
       L.state = SENT; L.is_of_key = 1 } }
#endif
#ifdef SHORT_HOLD
  :: STEP { L.state == FREE && !AWAITS_REPLY(me ^ 1) && ((me & 1) == 0 || PEER.state != FREE) -> EFFECT {
       L.state = SENT; L.is_short = 1 } }
#endif

    /* The store decides, in one step. */
#ifdef MUTANT_CHECK_THEN_COUNT
  :: STEP { L.state == SENT -> EFFECT { sum_used(); if :: sum < LIMIT -> L.state = CHECKED :: else -> clear(me) fi; check() } }
  :: STEP { L.state == CHECKED -> EFFECT { count_grant(1); check() } }
#else
  :: STEP { L.state == SENT -> EFFECT { answer(1) } }
  :: STEP { L.state == SENT -> EFFECT { answer(2) } }
    /* Also if its connection was lost, or its gateway has crashed. */
  :: STEP { L.state == ORPHAN || L.state == DEAD -> EFFECT { answer(1) } }
  :: STEP { L.state == ORPHAN || L.state == DEAD -> EFFECT { answer(2) } }
#endif

    /* The refund overtakes its reservation, and is answered: `noteRefunds` notes the id as void. */
  :: STEP { L.state == ORPHAN -> EFFECT { L.state = VOID } }
    /* `reserveOnce`: a known id is granted nothing. The reservation arrives, or it never does. */
#ifdef MUTANT_VOID_FORGOTTEN
  :: STEP { L.state == VOID -> EFFECT { count_grant(1); clear(me); settle(me & 2); check() } }
#endif
  :: STEP { L.state == VOID || L.state == DEAD -> EFFECT { clear(me); settle(me & 2) } }

    /* `LeasedQuota.#use`. The requests that wait are admitted below. */
#ifdef MUTANT_HOLD_FROM_REPLY
  :: STEP { L.state == REPLIED -> EFFECT { L.state = OPEN; L.age = 0; L.missed = 0 } }
#else
  :: STEP { L.state == REPLIED && L.age <= USABLE_LEASE(me) -> EFFECT { L.state = OPEN; check() } }
#endif
    /* `LeasedQuota.#received`: the call timed out, or its lease would have ended; the grant is refunded whole. */
  :: STEP { L.state == REPLIED -> EFFECT {
       L.state = OPEN;
#ifndef MUTANT_LATE_REPLY_DROPPED
       L.total = L.unused;
#endif
       L.unused = 0; settle(me); settle(me & 2); check() } }

    /* `CustomerLeases.take`: a request is admitted. */
  :: STEP { L.state == OPEN && L.unused > 0 && L.age <= USABLE_LEASE(me) -> EFFECT { L.unused--; L.waiting++; check() } }

    /* `Relay.#mayBegin` with `Lease.beginDeadline`: the request begins. */
  :: STEP { L.state == OPEN && L.waiting > 0 && MAY_BEGIN -> EFFECT {
       L.waiting--;
       strike_off(me, 1);
       if
       :: L.epoch == THIS -> note_begin(LIMIT + lost)
       :: else /* a reset starts a new count */
       fi;
#ifdef KEY_LIMIT
       if
       :: L.is_of_key -> note_begin_with_key()
       :: else
       fi;
#endif
#ifdef MUTANT_REFUND_BEGUN
       L.total++;
#endif
       settle(me); settle(me & 2); check() } }

    /* `CustomerLeases.return`: the request did not begin. */
  :: STEP { L.state == OPEN && L.waiting > 0 -> EFFECT {
       L.waiting--;
       if
       :: L.age <= USABLE_LEASE(me) -> L.unused++
       :: else -> L.total++
       fi;
       settle(me); settle(me & 2); check() } }

    /* `CustomerLeases.#end`: the lease has ended, or the gateway has learnt of a reset. */
  :: STEP { L.state == OPEN && L.unused > 0 && (L.age > USABLE_LEASE(me) || L.epoch != THIS) -> EFFECT {
#ifdef MUTANT_REFUND_ADMITTED
       L.total = L.total + L.waiting;
#endif
       L.total = L.total + L.unused; L.unused = 0; settle(me); settle(me & 2); check() } }
#ifdef MUTANT_UNIT_TO_NEWER_LEASE
  :: STEP { L.state == OPEN && L.unused > 0 && L.age > USABLE_LEASE(me) &&
       PEER.state == OPEN && PEER.unused > 0 && PEER.age <= USABLE_LEASE(me ^ 1) -> EFFECT {
       PEER.unused = PEER.unused + L.unused; L.unused = 0; settle(me); settle(me & 2) } }
#endif

    /* `CustomerLeases.sendRefunds`, and again until it is answered, on any connection. */
  :: STEP { L.state == OPEN && L.total > 0 && (L.sent & L.total) == 0 -> EFFECT { L.sent = L.sent | L.total } }
    /* It arrives, and its reply is lost. */
  :: STEP { MAY_ARRIVE(1) -> EFFECT { apply_refund(1); check() } }
  :: STEP { MAY_ARRIVE(2) -> EFFECT { apply_refund(2); check() } }
#ifdef MUTANT_REFUND_ONCE
  :: STEP { MAY_ARRIVE(L.total) -> EFFECT { L.total = L.noted; L.sent = 0; settle(me); settle(me & 2); check() } }
#endif
    /* It arrives, and is answered. */
  :: STEP { MAY_ARRIVE(1) -> EFFECT { apply_refund(1); answered(1) } }
  :: STEP { MAY_ARRIVE(2) -> EFFECT { apply_refund(2); answered(2) } }
  od
}

/* The connection of a gateway is lost: `RedisConnection.#lost`. What was sent may still arrive. */
inline disconnect(s) {
  if
  :: lease[s].state == SENT ->
     lease[s].state = ORPHAN; lease[s].age = 0; lease[s].missed = 0
  :: lease[s].state == REPLIED -> lease[s].state = OPEN; lease[s].total = lease[s].unused; lease[s].unused = 0
  :: else
  fi
}

inline disconnect_all() {
  disconnect(me); disconnect(me + 1);
  settle(me + 1); settle(me); settle(me); check()
}

/* The gateway loses its memory. `arrives`: whether the store still gets what was sent. */
inline forget(s, arrives) {
  sum = (arrives && lease[s].sent > lease[s].noted -> (lease[s].sent > 1 -> 2 : 1) : lease[s].noted);
  if
  :: lease[s].state == REPLIED -> strike_off(s, lease[s].unused); clear(s)
  :: lease[s].state == OPEN ->
     strike_off(s, lease[s].unused + lease[s].waiting + lease[s].total - sum);
     if
     :: sum > lease[s].noted -> lease[s].unused = 0; lease[s].waiting = 0; lease[s].total = sum
     :: else -> clear(s)
     fi
  :: lease[s].state == SENT || (lease[s].state == ORPHAN && !arrives) ->
     lease[s].state = DEAD; lease[s].age = 0; lease[s].missed = 0
  :: else
  fi
}

inline crash(arrives) {
  forget(me, arrives); forget(me + 1, arrives);
  settle(me + 1); settle(me); settle(me); check()
}

#define REMEMBERS(s) (HAS_UNITS(s) || AWAITS_REPLY(s) || lease[s].state == ORPHAN)

proctype Gateway(byte me) {
  do
  :: STEP { AWAITS_REPLY(me) || AWAITS_REPLY(me + 1) -> EFFECT { disconnect_all() } }
    /* It crashes; another one takes its place. */
  :: STEP { REMEMBERS(me) || REMEMBERS(me + 1) -> EFFECT { crash(1) } }
  :: STEP { REMEMBERS(me) || REMEMBERS(me + 1) -> EFFECT { crash(0) } }
  od
}

inline grow_older(s, misses) {
  if
  :: AGES(s) ->
     if
     :: misses -> lease[s].missed++
     :: else ->
        lease[s].age++;
        if
        :: lease[s].age > USABLE_HOLD(s) -> lease[s].missed = 0
        :: else
        fi
     fi
  :: else
  fi;
  if
  :: (lease[s].state == REPLIED || lease[s].state == OPEN) && phase == 0 && lease[s].bucket != EXPIRED ->
     lease[s].bucket = (lease[s].bucket == 0 -> EXPIRED : lease[s].bucket - 1)
  :: else
  fi
}

#ifdef PERIOD
#ifdef MUTANT_PERIOD_OF_GATEWAY
#define HAS_PERIOD(s) (lease[s].state != FREE)
#else
#define HAS_PERIOD(s) (lease[s].state == REPLIED || lease[s].state == OPEN)
#endif

inline end_period(from, to) {
  for (i : 0 .. 3) {
    if
    :: HAS_PERIOD(i) && lease[i].period == from -> lease[i].period = to
    :: else
    fi
  }
}

inline grow_period() {
  period_phase++;
  if
  :: period_phase == GRACE ->
     end_period(ENDED, CLOSED);
     counted[ENDED] = 0; in_hours[ENDED] = 0; spent[ENDED] = 0
  :: period_phase == PERIOD ->
     period_phase = 0;
     end_period(PRESENT, ENDED);
     counted[ENDED] = counted[PRESENT]; in_hours[ENDED] = in_hours[PRESENT]; spent[ENDED] = spent[PRESENT];
     counted[PRESENT] = 0; in_hours[PRESENT] = 0; spent[PRESENT] = 0
  :: else
  fi
}
#else
#define grow_period()
#endif

inline pass_time(first_misses, second_misses) {
  pass_tick();
  grow_period();
  grow_older(0, first_misses); grow_older(1, first_misses); grow_older(2, second_misses);
  check()
}

#ifdef MUTANT_ONE_CLOCK
#define MAX_MISSED 7 /* it stands still while the machine is suspended */
#else
#define MAX_MISSED DRIFT
#endif
#define MAY_MISS(s) (AGES(s) && lease[s].missed < MAX_MISSED)
#define FIRST_MAY_MISS ((MAY_MISS(0) && (!AGES(1) || MAY_MISS(1))) || (!AGES(0) && MAY_MISS(1)))

/* Time passes, and the clock of a gateway misses a tick at times. */
proctype Time() {
  do
  :: STEP { true -> EFFECT { pass_time(0, 0) } }
#if DRIFT > 0
  :: STEP { FIRST_MAY_MISS -> EFFECT { pass_time(1, 0) } }
  :: STEP { MAY_MISS(2) -> EFFECT { pass_time(0, 1) } }
  :: STEP { FIRST_MAY_MISS && MAY_MISS(2) -> EFFECT { pass_time(1, 1) } }
#endif
  od
}

#ifdef RESETS
inline new_epoch(condition, name) {
  for (i : 0 .. LAST_BUCKET) { units[i] = 0 }
  for (i : 0 .. WINDOW) { begun[i] = 0 }
  for (i : 0 .. 3) {
    if
    :: (lease[i].state == REPLIED || lease[i].state == OPEN) && condition -> lease[i].epoch = name
    :: else
    fi
  }
}

proctype Operator() {
  do
    /* reset-usage.lua */
  :: STEP { true -> EFFECT { new_epoch(lease[i].epoch == THIS, EARLIER); check() } }
    /* The window is deleted with its customer; the next reservation begins another lineage. */
  :: STEP { true -> EFFECT { new_epoch(true, FOREIGN); owed = 0; check() } }
  od
}
#endif

#ifdef FAILOVER
/* Another server takes over that lacks the last write, a grant whose reply has left. All connections are lost. */
inline fail_over(s, count) {
  lost = (count < LIMIT - sum -> count : LIMIT - sum);
  for (i : 0 .. 3) {
    if
    :: i == s ->
       lease[i].state = REPLIED; lease[i].unused = lost; lease[i].bucket = BUCKET_AFTER(HOLD); lease[i].is_unknown = 1
    :: else -> disconnect(i)
    fi
  }
  settle(1); settle(0); settle(2);
  check()
}

proctype Failover(byte me) {
  do
  :: STEP { L.state == SENT && lost == 0 -> EFFECT { sum_used(); if :: sum < LIMIT -> fail_over(me, 1) :: else -> check() fi } }
  :: STEP { L.state == SENT && lost == 0 -> EFFECT { sum_used(); if :: sum < LIMIT -> fail_over(me, 2) :: else -> check() fi } }
  od
}
#endif

init {
  atomic {
    run Lease_place(0); run Lease_place(2);
#ifndef ONE_LEASE_EACH
    run Lease_place(1);
#endif
    run Gateway(0); run Gateway(2); run Time();
#ifdef RESETS
    run Operator();
#endif
#ifdef FAILOVER
    run Failover(0); run Failover(2)
#endif
  }
}
