/*
 * Local windows while the store is unavailable: docs/dev/model.md.
 *
 * Two gateways have a share of one unit each (LIMIT is 1 to 3) and reach the store at times. LOCAL is how many of them
 * ever decide without the store: each adds its share to the bound. What leases do is modelled by leases.pml; here, a
 * granted unit begins until the end of its hold, is refunded, or is lost. Ids of charges are modelled by charges.pml.
 *
 *   CHECK_WINDOW        no interval sees more begin than LIMIT and these shares
 *   MUTANT_...          a wrong protocol
 */
#include "window.pml"

#define GATEWAYS 2
#ifndef LOCAL
#define LOCAL GATEWAYS
#endif
/* `max(1, limit / instances)` in `LocalWindows.admit` */
#define SHARE 1
#define BOUND (LIMIT + LOCAL * SHARE)

/* The unit of a local window. A gateway has one more request at most whose unit has left its window. */
#define FREE 0
#define UNCHARGED 1
#define COUNTED 2 /* by the store, and the reply was lost: it is charged again */
#define GONE 3  /* from the window, but its request has not begun */

typedef Window {
  unsigned state : 2;
  bit waiting;           /* its request has neither begun nor failed */
  unsigned age : 3;      /* ticks since its admission */
  unsigned ends : 4;     /* ticks until its bucket expires */
  unsigned bucket : 3;   /* after that in which the store has counted it, for a request that may still fail; 0: none */
  bit advance;           /* the last known usage fills the share: `advance` */
  unsigned advance_ends : 4
}

Window own[GATEWAYS];
byte pending[HOLD + 1]; /* units of leases whose requests may still begin, by ticks since their grant */

#define W own[me]

/*
 * The ticks until a bucket expires that has now + `ticks` in it. A gateway counts buckets by its own clock, so now may
 * be in any tick of one: `offset` is 1 to BUCKET. The clock never runs fast: `#timeOf`. A slow one only counts longer.
 */
#define EXPIRY_AFTER(ticks, offset) (WINDOW + (ticks) + (offset))

#ifdef MUTANT_USAGE_UNTIL_REPLY
#define LATEST_BEGIN 0
#else
#define LATEST_BEGIN HOLD
#endif
#ifdef MUTANT_LOCAL_BUCKET_OF_ADMISSION
#define LOCAL_HOLD 0
#else
#define LOCAL_HOLD HOLD
#endif

/* Forgets what makes no difference any more, and orders the gateways, which do the same. */
inline settle(s) {
  if
  :: !own[s].waiting -> own[s].age = 0
  :: else
  fi;
  if
  :: own[s].state == GONE && !own[s].waiting -> own[s].state = FREE
  :: else
  fi
}
#define KEY(s) (((((own[s].state * 2 + own[s].waiting) * 8 + own[s].age) * 16 + own[s].ends) * 32 + \
  own[s].advance * 16 + own[s].advance_ends) * 8 + own[s].bucket)
#define SWAP(field) i = own[0].field; own[0].field = own[1].field; own[1].field = i

inline finish(s) {
  settle(s);
#if LOCAL == GATEWAYS
  if
  :: KEY(0) > KEY(1) ->
     SWAP(state); SWAP(waiting); SWAP(age); SWAP(ends); SWAP(advance); SWAP(advance_ends); SWAP(bucket)
  :: else
  fi;
#endif
  end_step()
}

/* `#chargeInAdvance`, by the usage in `sum`: a reply to a reservation or charge. A part of any usage fills a share of 1. */
inline learn(offset) {
  if
  :: me < LOCAL && sum > 0 -> W.advance = SHARE; W.advance_ends = EXPIRY_AFTER(LATEST_BEGIN, offset)
  :: else -> W.advance = 0; W.advance_ends = 0
  fi
}

/* `reserve` of src/store/window-arithmetic.ts. `state.lastReply` is set whether or not a unit was free. */
inline reserve(offset) {
  sum_used();
  if
  :: sum < LIMIT -> units[BUCKET_AFTER(HOLD)]++; pending[0]++; sum++
  :: else
  fi;
  learn(offset);
  finish(me)
}

/* `LocalWindows.admit` */
inline admit(offset) {
  W.state = UNCHARGED; W.waiting = 1; W.ends = EXPIRY_AFTER(LOCAL_HOLD, offset);
  finish(me)
}
#define HAS_SHARE (me < LOCAL && W.state == FREE && W.advance < SHARE)

/* `charge` of src/store/window-arithmetic.ts and charge.lua: in the bucket of the end of the unit's local bucket. */
inline count_charge() {
  i = (phase + W.ends) / BUCKET;
  i = (i < BUCKET_AFTER(HOLD) -> i : BUCKET_AFTER(HOLD));
  units[i]++;
  W.bucket = (W.waiting -> i + 1 : 0)
}

/* `giveBack` of local-windows.ts: by the id of the charge, once that is answered. */
inline give_back() {
  if
  :: W.bucket > 0 -> units[W.bucket - 1]--; W.bucket = 0
  :: else
  fi
}

/* `LocalWindows.#charge`, and a reply. `chargeOnce` of src/store/grants.ts: what is known is not counted again. */
inline charge(offset) {
  if
  :: W.state == UNCHARGED -> count_charge()
  :: else
  fi;
  W.state = GONE; W.ends = 0;
  if
  :: !W.waiting -> give_back()
  :: else
  fi;
#ifndef MUTANT_LOCAL_WINDOW_AFRESH
  sum_used();
  learn(offset);
#endif
  finish(me)
}

proctype Gateway(byte me) {
  do
  :: STEP { true -> EFFECT { reserve(1) } }
#if BUCKET > 1
  :: STEP { true -> EFFECT { reserve(2) } }
#endif

  :: STEP { HAS_SHARE -> EFFECT { admit(1) } }
#if BUCKET > 1
  :: STEP { HAS_SHARE -> EFFECT { admit(2) } }
#endif
  :: STEP { W.waiting && W.age <= HOLD -> EFFECT { note_begin(BOUND); W.waiting = 0; W.bucket = 0; finish(me) } }
    /* `settle` of the admission */
  :: STEP { W.waiting -> EFFECT {
       W.waiting = 0;
       if
       :: W.state == UNCHARGED -> W.state = FREE; W.ends = 0
       :: W.state == GONE -> give_back()
       :: else
       fi;
       finish(me) } }

  :: STEP { W.state == UNCHARGED || W.state == COUNTED -> EFFECT { charge(1) } }
#if BUCKET > 1
  :: STEP { W.state == UNCHARGED || W.state == COUNTED -> EFFECT { charge(2) } }
#endif
    /* No reply. If the store has not counted it, nothing has changed. */
#ifdef MUTANT_UNKNOWN_CHARGE_DROPPED
  :: STEP { W.state == UNCHARGED -> EFFECT { count_charge(); W.state = GONE; W.ends = 0; finish(me) } }
  :: STEP { W.state == UNCHARGED -> EFFECT { W.state = GONE; W.ends = 0; finish(me) } }
#else
  :: STEP { W.state == UNCHARGED -> EFFECT { count_charge(); W.state = COUNTED; finish(me) } }
#endif
  od
}

/* Units of leases, of any gateway. */
proctype Leases(byte age) {
  do
  :: STEP { pending[age] > 0 -> EFFECT { pending[age]--; note_begin(BOUND); end_step() } }
  :: STEP { pending[age] > 0 -> EFFECT { pending[age]--; units[BUCKET_AFTER(HOLD - age)]-- } }
  od
}

inline grow_older(s) {
  if
  :: own[s].waiting && own[s].age <= HOLD -> own[s].age++
  :: else
  fi;
  if
  :: own[s].ends > 0 ->
     own[s].ends--;
     if
     :: own[s].ends == 0 -> own[s].state = GONE
     :: else
     fi
  :: else
  fi;
  if
  :: own[s].bucket > 0 && phase == 0 -> own[s].bucket--
  :: else
  fi;
  if
  :: own[s].advance_ends > 0 ->
     own[s].advance_ends--;
     if
     :: own[s].advance_ends == 0 -> own[s].advance = 0
     :: else
     fi
  :: else
  fi
}

proctype Time() {
  do
  :: STEP { true -> EFFECT {
       pass_tick();
       for (i : 1 .. HOLD) { pending[HOLD + 1 - i] = pending[HOLD - i] }
       pending[0] = 0;
       grow_older(0); grow_older(1);
       settle(0); finish(1) } }
  od
}

init {
  atomic {
    run Gateway(0); run Gateway(1); run Leases(0); run Leases(HOLD); run Time();
#if HOLD > 1
    run Leases(1)
#endif
  }
}
