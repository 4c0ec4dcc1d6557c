/** Finds requests that were refused or failed, in every instance. */
import type { FailedRequest } from '../../store/failed-requests.ts';
import { HOUR_MS } from '../../store/usage-history.ts';
import { isoTime } from '../frame/document-of.ts';
import { Refusal } from '../frame/refusal.ts';
import type { AdminContext, Handlers } from './dependencies.ts';
import { pageOf } from './documents.ts';

/** Requests that are shown of those with the same id. */
const WITH_ONE_ID = 20;

export function failedRequestHandlers({ failedRequests, failedRequestHours }: AdminContext) {
  async function sinceMs(): Promise<number> {
    if (failedRequestHours === undefined) {
      throw new Refusal('unprocessable', 'Refused and failed requests are not recorded (requests: null).');
    }
    return (await failedRequests.nowMs()) - failedRequestHours * HOUR_MS;
  }
  return {
    async 'GET /admin/v1/requests'({ query: { cursor, limit, customer, code } }) {
      const page = await failedRequests.list({ sinceMs: await sinceMs(), customer, code }, cursor, limit);
      return pageOf(page.items.map(requestMembers), page);
    },
    async 'GET /admin/v1/requests/:requestId'({ requestId }) {
      const found = await failedRequests.find(requestId, await sinceMs(), WITH_ONE_ID);
      // Does not repeat the id: it may be a key, sent by mistake.
      if (found.length === 0) throw new Refusal('not_found', 'No refused or failed request with this id is recorded.');
      return { items: found.map(requestMembers) };
    },
  } satisfies Partial<Handlers>;
}

function requestMembers({ atMs, durationMs, ...request }: FailedRequest) {
  return { ...request, at: isoTime(atMs), durationMs: durationMs && Math.round(durationMs * 1000) / 1000 };
}
