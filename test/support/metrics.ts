import type { TestGateway } from './gateway.ts';

/** The samples of one metric, by their labels as they stand in the exposition; without labels by the empty string. */
export async function readMetric(gateway: Pick<TestGateway, 'ops'>, name: string): Promise<Record<string, number>> {
  const text = await (await fetch(`${gateway.ops}/metrics`)).text();
  const samples: Record<string, number> = {};
  for (const line of text.split('\n')) {
    const [, sampled, labels = '', value] = /^([a-z_]+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
    if (sampled === name) samples[labels] = Number(value);
  }
  return samples;
}
