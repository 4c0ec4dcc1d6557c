/** Counters of the gateway, from its `/metrics`. */

/** The sum of a counter over all its labels; 0 before its first sample. */
export async function readCounter(opsOrigin: string, name: string): Promise<number> {
  return sumCounter(await readExposition(opsOrigin), name);
}

/** A counter by one of its labels, in words: `401 3, 429 1`. */
export async function describeCounter(opsOrigin: string, name: string, label: string): Promise<string> {
  const counts = countBy(await readExposition(opsOrigin), name, label);
  return [...counts].map(([value, count]) => `${value} ${count}`).join(', ');
}

/** A counter by the values of one of its labels. */
export async function readCounterBy(opsOrigin: string, name: string, label: string): Promise<Map<string, number>> {
  return countBy(await readExposition(opsOrigin), name, label);
}

async function readExposition(opsOrigin: string): Promise<string> {
  const response = await fetch(`${opsOrigin}/metrics`);
  if (!response.ok) throw new Error(`the gateway responds ${response.status} to GET /metrics`);
  return response.text();
}

/** Of a counter in the Prometheus text format. */
export function sumCounter(exposition: string, name: string): number {
  return samplesOf(exposition, name).reduce((sum, { value }) => sum + value, 0);
}

/** Of a counter in the Prometheus text format, by the values of a label that it has. */
export function countBy(exposition: string, name: string, label: string): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { labels, value } of samplesOf(exposition, name)) {
    const [, labelled = ''] = new RegExp(`\\b${label}="([^"]*)"`).exec(labels) ?? [];
    counts.set(labelled, (counts.get(labelled) ?? 0) + value);
  }
  return counts;
}

function samplesOf(exposition: string, name: string): { labels: string; value: number }[] {
  return exposition.split('\n').flatMap((line) => {
    const [, sampled, labels = '', value] = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
    return sampled === name ? [{ labels, value: Number(value) }] : [];
  });
}
