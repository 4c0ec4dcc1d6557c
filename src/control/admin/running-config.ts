/** Routes that show the running configuration, reload its file, and compare it with a posted file. */
import type { Response } from 'express';
import type { ConfigDocument, ConfigFileDocument, ReloadDocument } from '../../api/admin/responses.ts';
import { type ConfigChange, MAX_LISTED_CHANGES } from '../../config/config-changes.ts';
import { ConfigError } from '../../config/problems.ts';
import { StoreUnavailableError } from '../../store/errors.ts';
import { Refusal } from '../frame/refusal.ts';
import { type Preview, PreviewBusyError } from '../reload/preview.ts';
import type { ReloadOutcome } from '../reload/reloader.ts';
import type { AdminContext, Handlers } from './dependencies.ts';

export function runningConfigHandlers({ runningConfig, runningFile, reload, preview, recordChange }: AdminContext) {
  /** Records the preview before the response is sent, because an attacker may be after the information in it. */
  async function audited(res: Response, content: Uint8Array): Promise<Preview> {
    const record = (outcome: string, hash?: string) =>
      recordChange(res, { action: 'config.preview', details: { outcome, bytes: content.byteLength, hash } });
    try {
      const result = await preview(content);
      await record('previewed', result.hash);
      return result;
    } catch (error) {
      if (error instanceof PreviewBusyError) {
        const detail = 'Another preview is in progress. Retry after the seconds in Retry-After.';
        throw new Refusal('overloaded', detail, {}, ['Retry-After', '1']);
      }
      await record(error instanceof ConfigError ? 'invalid' : 'failed');
      if (error instanceof ConfigError) throw new Refusal('unprocessable', error.problems.join('\n'));
      throw error;
    }
  }

  return {
    'POST /admin/v1/config/preview': async ({ body }, res) => previewMembers(await audited(res, body)),
    // The file's schema guarantees this shape.
    'GET /admin/v1/config': () => runningConfig() as ConfigDocument,
    'GET /admin/v1/config/file': () => runningFile() as ConfigFileDocument,
    async 'POST /admin/v1/config/reload'(_request, res) {
      const outcome = await reload();
      const { hash, changes } = outcome;
      const result = acceptedResult(outcome);
      if (result === 'applied') await recordChange(res, { action: 'config.reload', details: { hash } });
      return {
        result,
        hash,
        changes: changes.slice(0, MAX_LISTED_CHANGES).map(changeMembers),
        changesTotal: changes.length,
        warnings: outcome.warnings,
      };
    },
  } satisfies Partial<Handlers>;
}

/** @throws Refusal, or StoreUnavailableError, if the file was not applied. */
function acceptedResult({ result, problems }: ReloadOutcome): ReloadDocument['result'] {
  const detail = problems.join('\n');
  switch (result) {
    case 'applied':
    case 'unchanged':
      return result;
    case 'invalid':
      throw new Refusal('unprocessable', detail);
    case 'restart_required':
    case 'plan_in_use':
      throw new Refusal('conflict', detail);
    case 'unverified':
      throw new StoreUnavailableError(detail);
    case 'failed':
      throw new Refusal('internal_error', detail);
  }
}

function changeMembers({ before = null, after = null, ...change }: ConfigChange) {
  return { ...change, before, after };
}

function previewMembers({ uncompared, droppedPlans, impact, ...preview }: Preview) {
  const { groups, closest, customers } = impact;
  return {
    ...preview,
    changes: preview.changes.map(changeMembers),
    uncomparedSecrets: uncompared,
    droppedPlans: [...droppedPlans].map(([plan, customers]) => ({ plan, customers })),
    customers,
    limits: groups.map(({ label, ...group }) => ({ ...group, change: label })),
    closest: closest.map(({ before, after, ...customer }) => {
      const ratio = after === undefined ? null : Math.round((1000 * customer.used) / after) / 1000;
      return { ...customer, limitBefore: before, limitAfter: after, ratio };
    }),
  };
}
