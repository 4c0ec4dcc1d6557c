/** The content of a stored notice: its body, and the state of each delivery. */
import { randomBytes } from 'node:crypto';
import type { NewNotice, NoticeState } from '../../store/notices.ts';

export const NOTICE_TYPES = ['quota.threshold', 'quota.exceeded', 'key.expiring'] as const;
export type NoticeType = (typeof NOTICE_TYPES)[number];

/** The endpoint that the customer's record names. All others are named by their URL in the configuration. */
export const CUSTOMER_ENDPOINT = 'notify_url';

/** The state of the delivery to one endpoint. Removed when it succeeds. */
export interface Delivery {
  /** A URL of the configuration, or {@link CUSTOMER_ENDPOINT}. */
  readonly endpoint: string;
  readonly state: NoticeState;
  /** Failed attempts. */
  readonly attempts: number;
  /** Wall time in ms; of a pending delivery. */
  readonly nextAttemptMs: number;
  readonly lastError: string | null;
}

/** `type`, `timestamp` and `data` are the body that is sent. */
export interface NoticeContent {
  readonly type: NoticeType;
  /** Time of the event: ISO 8601 UTC. */
  readonly timestamp: string;
  /** `plan` is null until the first attempt. */
  readonly data: Readonly<Record<string, string | number | null>>;
  /** Undefined until the first attempt: only then the endpoints are known. */
  readonly deliveries?: readonly Delivery[];
}

const ID_BYTES = 18;

/** Creates a notice with a new id. `timestampMs`: time of the event, wall time. */
export function newNotice(type: NoticeType, timestampMs: number, data: NoticeContent['data']): NewNotice {
  const content: NoticeContent = { type, timestamp: new Date(timestampMs).toISOString(), data };
  return { id: newId(), content: JSON.stringify(content) };
}

/** Creates a notice of the type `test`, which is sent once and never stored. */
export function testNotice(nowMs: number, customer: string | undefined): { id: string; body: string } {
  const data = customer === undefined ? {} : { customer };
  return { id: newId(), body: JSON.stringify({ type: 'test', timestamp: new Date(nowMs).toISOString(), data }) };
}

function newId(): string {
  return `msg_${randomBytes(ID_BYTES).toString('base64url')}`;
}

/** Parses stored content. Returns undefined for what another program wrote. */
export function parseNotice(text: string): NoticeContent | undefined {
  try {
    const content = JSON.parse(text);
    return NOTICE_TYPES.includes(content.type) && typeof content.data === 'object' ? content : undefined;
  } catch {
    return undefined;
  }
}

/** Returns the body that is sent. */
export function bodyOf({ type, timestamp, data }: NoticeContent): string {
  return JSON.stringify({ type, timestamp, data });
}
