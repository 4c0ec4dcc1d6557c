/** Reads and sets the maintenance of all instances. */
import { isDeepStrictEqual } from 'node:util';
import { inForceAt, type Maintenance } from '../../store/maintenance.ts';
import { isoTime } from '../frame/document-of.ts';
import { Refusal } from '../frame/refusal.ts';
import type { AdminContext, Handlers } from './dependencies.ts';
import { unlessUnavailable } from './documents.ts';

const OFF: Maintenance = { mode: 'off' };

export function maintenanceHandlers(context: AdminContext) {
  const { maintenance, limitClock, recordChange } = context;
  const inForce = async () => inForceAt(await maintenance.read(), limitClock.nowMs()) ?? OFF;
  return {
    'GET /admin/v1/maintenance': async () => maintenanceMembers(await inForce()),
    async 'PUT /admin/v1/maintenance'({ body: { mode, routes, until, message } }, res) {
      if (routes?.some((route) => context.routes.every(({ path }) => path !== route))) {
        throw new Refusal('unprocessable', 'routes: must be paths of routes in the configuration');
      }
      // A record that is lost or damaged must not keep anyone from setting the next one.
      const former = await unlessUnavailable(inForce);
      const begun: Maintenance = {
        mode,
        routes: routes ?? undefined,
        untilMs: until == null ? undefined : Date.parse(until),
        message: message ?? undefined,
        sinceMs: former?.sinceMs ?? limitClock.nowMs(),
      };
      const next = mode === 'off' ? OFF : begun;
      await maintenance.write(next);
      const [before, details] = [former && auditMembers(former), auditMembers(next)];
      if (!isDeepStrictEqual(before, details)) {
        await recordChange(res, { action: 'maintenance.set', details, ...(before && { before }) });
      }
      return maintenanceMembers(next);
    },
  } satisfies Partial<Handlers>;
}

export function maintenanceMembers({ mode, routes, untilMs, message, sinceMs }: Maintenance = OFF) {
  return { mode, routes, until: isoTime(untilMs), message, since: isoTime(sinceMs) };
}

/** All members, since each change replaces all. */
function auditMembers({
  mode,
  routes = null,
  untilMs = null,
  message = null,
}: { [Name in keyof Maintenance]: Maintenance[Name] | null }) {
  return { mode, routes, untilMs, message };
}
