import { printable } from '../../api/client/printable.ts';
import type { GatewayAddresses } from '../../process/lifecycle.ts';
import { curlCommand, type TriedApi } from './tried-api.ts';

export interface DemoKey {
  readonly value: string;
  readonly plan: string;
  /** Requests an hour. */
  readonly limit: number | null;
}

interface BannerParts {
  readonly api: TriedApi;
  readonly keys: readonly DemoKey[];
  readonly keyHeader: string;
  readonly addresses: GatewayAddresses;
  /** A link of the first customer, good once. */
  readonly portalLink: string;
  /** The admin token; undefined if the user set it, because output may be kept. */
  readonly newToken: string | undefined;
  /** The config file. */
  readonly file: string;
  /** Ports in use. */
  readonly skipped: readonly number[];
  /** Why the backend cannot be reached. */
  readonly fault: string | undefined;
}

/** Returns what to do first, as lines that can be copied. */
export function banner(parts: BannerParts): string {
  const { api, keys, keyHeader, addresses, portalLink, newToken, file, skipped, fault } = parts;
  const width = Math.max(...keys.map(({ value }) => value.length));
  const list = keys.map(({ value, plan, limit }) => `    ${value.padEnd(width)}  ${plan}, ${limit} requests an hour`);
  const url = addresses.public + api.example.target;
  const remarks = [
    fault &&
      `The backend cannot be reached now (${printable(fault)}): until it can, requests get 503 upstream_unavailable.`,
    skipped.length > 0 && `Ports in use, so that the next free ones were taken: ${skipped.join(', ')}.`,
  ];
  const adminUrl = addresses.admin === 'http://127.0.0.1:8082' ? '' : `, with --admin-url ${addresses.admin}`;
  return `
  Tollgate is running in front of ${api.name}.
${remarks.flatMap((line) => (line ? `  ${line}\n` : [])).join('')}
  Keys:
${list.join('\n')}

  Try:
    ${curlCommand(api.example, url, keyHeader, keys[0]?.value ?? '')}
    curl -i ${addresses.public}${new URL(url).pathname}
    curl -s ${addresses.ops}/readyz
    curl -s ${addresses.ops}/metrics | grep ^tollgate_

  Console: ${addresses.admin}/console
    Log in with ${newToken === undefined ? 'the admin token (TOLLGATE_ADMIN_TOKEN)' : `this start's admin token: ${newToken}`}

  Portal, as ${api.customers[0].name} sees it (the link works once, within five minutes):
    ${portalLink}

  Command line and admin API, in another terminal${adminUrl}:
    export TOLLGATE_ADMIN_TOKEN=${newToken ?? '…'}

  Config file, whose changes apply within a second:
    ${file}

  ${api.next}
  Ctrl-C stops it. The log follows, with one line per request.

`;
}
