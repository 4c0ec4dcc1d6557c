/**
 * Made-up conversations for the sample backend: a few hundred, the same in every run, so that they match the
 * documentation. Phone numbers are from ranges reserved for fiction.
 */

export const CHANNELS = ['SMS', 'WHATSAPP', 'EMAIL', 'WEBCHAT'] as const;
export const STATUSES = ['OPEN', 'PENDING', 'CLOSED'] as const;

export type Conversation = ReturnType<typeof createConversations>[number];

const COUNT = 320;
const SEED = 0x70116a7e;
const NEWEST_MS = Date.UTC(2026, 0, 15, 9, 30);
const MAX_GAP_MS = 3 * 3600 * 1000;
const MAX_REPLY_MS = 20 * 60 * 1000;
const CROCKFORD = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';

const DIALOGUES = [
  ['Hi, is my order on its way?', 'It left our warehouse this morning and arrives tomorrow.', 'Great, thank you!'],
  [
    'Can I move my appointment to Friday?',
    'Friday at 10:00 or 14:30 is free. Which suits you?',
    '14:30 please.',
    'Done.',
  ],
  ['The invoice shows the wrong address.', 'Sorry about that. Please send us the right one.'],
  ['Do you ship to Norway?', 'We do, in three to five working days.'],
  ['I forgot my password.', 'We have just sent you a link to set a new one.', 'Got it.', 'Happy to help.'],
  ['Please cancel my subscription.', 'It ends with this month. May we ask why?', 'I am moving abroad.'],
  ['Your parcel is ready for pickup until Saturday.', 'Thanks, I will come by on Thursday.'],
  ['Is the blue one back in stock?'],
] as const;

/** Mulberry32: small, fast, and the same on every machine. Returns numbers from 0 to below 1. */
function seededRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Returns the conversations, newest first. */
export function createConversations() {
  const random = seededRandom(SEED);
  const below = (bound: number) => Math.floor(random() * bound);
  const pick = <Items extends readonly [unknown, ...unknown[]]>(items: Items): Items[number] =>
    items[below(items.length)];

  /** Returns an id in the form of a ULID: 10 characters of time and 16 of randomness, sortable as text. */
  function ulid(timeMs: number): string {
    let time = '';
    for (let rest = timeMs, i = 0; i < 10; i++, rest = Math.floor(rest / 32)) time = CROCKFORD.charAt(rest % 32) + time;
    return time + Array.from({ length: 16 }, () => CROCKFORD.charAt(below(32))).join('');
  }

  function phone(): string {
    const line = String(100 + below(100)).padStart(4, '0');
    return pick([`+1202555${line}`, `+1415555${line}`, `+44770090${line}`, `+44207946${line}`]);
  }

  function messages(startedAtMs: number) {
    let atMs = startedAtMs;
    return pick(DIALOGUES).map((text: string, turn) => {
      if (turn > 0) atMs += 1000 + below(MAX_REPLY_MS);
      const direction = turn % 2 === 0 ? 'INBOUND' : 'OUTBOUND';
      return { id: `msg_${ulid(atMs)}`, direction, text, createdAt: new Date(atMs).toISOString() };
    });
  }

  let createdAtMs = NEWEST_MS;
  return Array.from({ length: COUNT }, () => {
    createdAtMs -= 1000 + below(MAX_GAP_MS);
    return {
      id: `conv_${ulid(createdAtMs)}`,
      channel: pick(CHANNELS),
      status: pick(STATUSES),
      contact: { id: `cont_${ulid(createdAtMs - below(MAX_GAP_MS))}`, phone: phone() },
      messages: messages(createdAtMs),
      createdAt: new Date(createdAtMs).toISOString(),
    };
  });
}
