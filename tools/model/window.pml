/*
 * One customer's window in the store, and what begins upstream.
 *
 * A tick stands for all instants in it. So "less than n ticks have passed" becomes "at most n ticks began since", and the
 * fullest interval of WINDOW ticks touches WINDOW + 1 of them: both allow more than continuous time does.
 *
 * All positions in time are relative to now. So the states are finitely many, and cover runs of any length.
 */
/*
 * Each transition is one step of the program. For the coverage, its guard is outside `d_step`, which SPIN counts as
 * reached before the guard holds. A breadth-first search needs it inside: it stores the state between the two.
 */
#ifdef BREADTH_FIRST
#define STEP d_step
#define EFFECT
#else
#define STEP atomic
#define EFFECT d_step
#endif

#ifndef LIMIT
#define LIMIT 2
#endif
#ifndef WINDOW
#define WINDOW 4
#endif
#ifndef BUCKET
#define BUCKET 2
#endif
#ifndef HOLD
#define HOLD 2 /* the longest one */
#endif

#define CURRENT (WINDOW / BUCKET) /* the index of the bucket of now; the bucket before the first one has expired */
#define LAST_BUCKET (CURRENT + (BUCKET - 1 + HOLD) / BUCKET)

byte units[LAST_BUCKET + 1]; /* by bucket */
byte phase;                  /* ticks since the current bucket began */
byte begun[WINDOW + 1];      /* units begun in each of the last ticks, this one first */
#ifdef KEY_LIMIT
/* The same of the key that has a limit. */
byte units_of_key[LAST_BUCKET + 1];
byte begun_with_key[WINDOW + 1];
#endif
/* Of one step, and 0 after it. */
byte i;
byte sum;

inline end_step() {
  i = 0; sum = 0
}

/* The bucket in which something ends after some ticks. */
#define BUCKET_AFTER(ticks) (CURRENT + (phase + (ticks)) / BUCKET)

/* `ledger.used` of src/store/window-arithmetic.ts, in `sum`. */
inline sum_used() {
  sum = 0;
  for (i : 0 .. LAST_BUCKET) { sum = sum + units[i] }
}

/* The request is sent to the backend: `#mayBegin` of src/upstream/relay.ts has allowed it. */
inline note_begin(bound) {
  begun[0]++;
#ifdef CHECK_WINDOW
  sum = 0;
  for (i : 0 .. WINDOW) { sum = sum + begun[i] }
  assert(sum <= bound) /* window */
#endif
}

#ifdef KEY_LIMIT
inline sum_used_of_key() {
  sum = 0;
  for (i : 0 .. LAST_BUCKET) { sum = sum + units_of_key[i] }
}

inline note_begin_with_key() {
  begun_with_key[0]++;
#ifdef CHECK_KEY
  sum = 0;
  for (i : 0 .. WINDOW) { sum = sum + begun_with_key[i] }
  assert(KEY_LIMIT >= sum) /* key */
#endif
}
#endif

/* `dropExpired` of src/store/window-arithmetic.ts, as soon as a bucket expires: `(b + 1) * bucketMs + windowMs`. */
inline pass_tick() {
  phase++;
  if
  :: phase == BUCKET ->
     phase = 0;
     for (i : 1 .. LAST_BUCKET) { units[i - 1] = units[i] }
     units[LAST_BUCKET] = 0;
#ifdef KEY_LIMIT
     for (i : 1 .. LAST_BUCKET) { units_of_key[i - 1] = units_of_key[i] }
     units_of_key[LAST_BUCKET] = 0;
#endif
#ifdef MUTANT_DROPPED_EARLY
     units[0] = 0
#endif
  :: else
  fi;
  for (i : 1 .. WINDOW) { begun[WINDOW + 1 - i] = begun[WINDOW - i] }
  begun[0] = 0;
#ifdef KEY_LIMIT
  for (i : 1 .. WINDOW) { begun_with_key[WINDOW + 1 - i] = begun_with_key[WINDOW - i] }
  begun_with_key[0] = 0
#endif
}
