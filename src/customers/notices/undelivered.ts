/** Lists and retries notices that are not delivered yet, for operators. */
import { InvalidCursorError } from '../../store/errors.ts';
import type { NoticeState, NoticeStore, StoredNotice } from '../../store/notices.ts';
import type { Page } from '../../store/records.ts';
import { CUSTOMER_ENDPOINT, type Delivery, type NoticeContent, parseNotice } from './notice.ts';

const STATES: readonly NoticeState[] = ['pending', 'dead'];
const CURSOR = /^(pending|dead)-(\d{1,9})$/;
/** Notices that are read at once to find one. */
const FIND_PAGE = 500;

export interface Undelivered {
  readonly stored: StoredNotice;
  readonly content: NoticeContent;
}

/**
 * Lists notices of a state, oldest first; without one, those that are pending and then the others. Rejects with
 * {@link InvalidCursorError}.
 */
export async function listUndelivered(
  notices: Pick<NoticeStore, 'list'>,
  wanted: NoticeState | undefined,
  cursor: string | undefined,
  limit: number,
): Promise<Page<Undelivered>> {
  const [, from, offset = '0'] = CURSOR.exec(cursor ?? `${wanted ?? 'pending'}-0`) ?? [];
  const state = STATES.find((each) => each === from);
  if (state === undefined || (wanted !== undefined && wanted !== state)) throw new InvalidCursorError();
  const { items, nextOffset } = await notices.list(state, Number(offset), limit);
  const found = items.flatMap((stored) => {
    const content = parseNotice(stored.content);
    return content === undefined ? [] : [{ stored, content }];
  });
  const isListedBefore = ({ content }: Undelivered) => wanted === undefined && state === 'dead' && isPending(content);
  const end = wanted === undefined && state === 'pending' ? 'dead-0' : undefined;
  const next = nextOffset === undefined ? end : `${state}-${nextOffset}`;
  return { items: found.filter((each) => !isListedBefore(each)), next };
}

/**
 * Makes all deliveries of a notice due now, with all their attempts, and enables its endpoints. Resolves to the notice as
 * it is then; undefined when there is none, or it was delivered meanwhile.
 */
export async function retryNotice(notices: NoticeStore, id: string, nowMs: number): Promise<Undelivered | undefined> {
  const found = await findUndelivered(notices, id);
  if (found === undefined) return undefined;
  const { stored, content } = found;
  const deliveries = content.deliveries?.map((delivery): Delivery => {
    return { ...delivery, state: 'pending', attempts: 0, nextAttemptMs: nowMs };
  });
  for (const { endpoint } of deliveries ?? []) {
    if (endpoint !== CUSTOMER_ENDPOINT) await notices.setGone(endpoint, false);
  }
  const next = { ...content, ...(deliveries && { deliveries }) };
  const text = JSON.stringify(next);
  const isReplaced = await notices.replace(stored, { content: text, dueInMs: 0, isDead: false });
  // An attempt has just ended: what is left of the notice is sent again.
  return isReplaced ? { stored: { ...stored, content: text }, content: next } : retryNotice(notices, id, nowMs);
}

/** Reads all notices, until it finds this one. */
export async function findUndelivered(
  notices: Pick<NoticeStore, 'list'>,
  id: string,
): Promise<Undelivered | undefined> {
  for (const state of STATES.toReversed()) {
    let offset: number | undefined = 0;
    while (offset !== undefined) {
      const page = await notices.list(state, offset, FIND_PAGE);
      const stored = page.items.find((notice) => notice.id === id);
      const content = stored && parseNotice(stored.content);
      if (stored && content) return { stored, content };
      offset = page.nextOffset;
    }
  }
  return undefined;
}

function isPending({ deliveries }: NoticeContent): boolean {
  return deliveries === undefined || deliveries.some(({ state }) => state === 'pending');
}
