import { writeFile } from 'node:fs/promises';
import { vi } from 'vitest';
import { stringify } from 'yaml';
import type { TestGateway } from '../../support/gateway.ts';

type Sections = Readonly<Record<string, unknown>>;

/** Writes the gateway's file with these sections in place of those that it started with. */
export async function rewrite(gateway: TestGateway, sections: Sections): Promise<void> {
  await writeFile(gateway.file, stringify({ ...gateway.sections, ...sections }));
}

/** Messages that the gateway logged. */
export function messages(gateway: TestGateway): string[] {
  return gateway.logs.map(({ msg }) => String(msg));
}

/** Waits for a line that matches; resolves to it. */
export function sawLine(gateway: TestGateway, message: RegExp): Promise<Record<string, unknown>> {
  return vi.waitFor(
    () => {
      const line = gateway.logs.find(({ msg }) => message.test(String(msg)));
      if (line === undefined) throw new Error(`no line matches ${message}: ${messages(gateway).join(' | ')}`);
      return line;
    },
    { timeout: 20_000, interval: 20 },
  );
}

/** Has the file read again, unless that was noticed already; resolves to what came of it. */
export async function takeOver(gateway: TestGateway): Promise<string> {
  const { result } = await gateway.reload('signal');
  if (result !== 'unchanged') return result;
  // Noticed before, or while this reload waited for that one.
  const noticed = gateway.logs.findLast(({ trigger }) => trigger === 'noticed');
  return noticed?.result === 'applied' ? 'applied' : result;
}
