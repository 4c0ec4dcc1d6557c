/*
 * Leases while the store is available: docs/dev/model.md.
 *
 * The first gateway may have two leases at a time, the second one; with ONE_LEASE_EACH, each has one. A process below
 * stands for a place of a lease.
 *
 *   SHORT_HOLD          there is a shorter hold, too
 *   RESETS              usage is reset, and the customer deleted and created again
 *   FAILOVER            the store loses one write in a failover
 *   CHECK_WINDOW        no interval sees more begin than LIMIT (and than that write granted)
 *   CHECK_HISTORY       each unit in the usage history has begun, is held, or was lost with a gateway
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
  bit is_short
}

Lease lease[4]; /* the second gateway's are 2 and 3 */
byte lost;      /* units granted by the write that a failover lost */
/*
 * Units in the usage history that neither have begun nor were lost with a gateway. The history has the granted units
 * without the refunded ones; this is kept instead of its sums, which grow without end.
 */
byte owed;

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
  fi
}

inline clear(s) {
  lease[s].state = FREE; lease[s].unused = 0; lease[s].waiting = 0; lease[s].total = 0; lease[s].sent = 0;
  lease[s].noted = 0; lease[s].age = 0; lease[s].missed = 0; lease[s].bucket = 0; lease[s].epoch = THIS;
  lease[s].is_unknown = 0; lease[s].is_short = 0
}

inline move(from, to) {
  lease[to].state = lease[from].state; lease[to].unused = lease[from].unused; lease[to].waiting = lease[from].waiting;
  lease[to].total = lease[from].total; lease[to].sent = lease[from].sent; lease[to].noted = lease[from].noted;
  lease[to].age = lease[from].age; lease[to].missed = lease[from].missed; lease[to].bucket = lease[from].bucket;
  lease[to].epoch = lease[from].epoch; lease[to].is_unknown = lease[from].is_unknown;
  lease[to].is_short = lease[from].is_short;
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
#endif
  end_step()
}

/* `reserveOnce` of src/store/grants.ts and reserve.lua, of an id that is not known. Any number of free units covers `need` and `ahead`. */
inline count_grant(count) {
#ifdef MUTANT_BUCKET_OF_GRANT
  L.bucket = CURRENT;
#else
  L.bucket = BUCKET_AFTER(HOLD_OF(me));
#endif
  units[L.bucket] = units[L.bucket] + count;
  L.unused = count;
  owed = owed + count;
  if
  :: L.state == DEAD -> owed = owed - count; clear(me)
  :: L.state == ORPHAN -> L.state = OPEN; L.total = L.unused; L.unused = 0
  :: else -> L.state = REPLIED
  fi
}

inline answer(count) {
  sum_used();
  if
  :: sum >= LIMIT -> clear(me) /* the refusal is remembered: it changes nothing here */
  :: else -> count_grant((count < LIMIT - sum -> count : LIMIT - sum))
  fi;
  settle(me & 2);
  check()
}

/* Units return to the window and the history: `refundOnce` of src/store/grants.ts, `open` of window.lua. */
inline give_back(count) {
  if
#ifdef MUTANT_REFUND_ANY_EPOCH
  :: L.bucket != EXPIRED ->
#else
  :: L.epoch == THIS && L.bucket != EXPIRED ->
#endif
     units[L.bucket] = ((count) < units[L.bucket] -> units[L.bucket] - (count) : 0)
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
  fi
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

inline pass_time(first_misses, second_misses) {
  pass_tick();
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
