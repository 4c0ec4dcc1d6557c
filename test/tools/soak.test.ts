/** What npm run lab -- soak takes for a fault of the gateway, and what for growth. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { describe, expect, onTestFinished, test } from 'vitest';
import { freePort } from '../../bench/free-port.ts';
import { LIST_PATH } from '../../bench/surroundings.ts';
import { MoodyUpstream, UPSTREAM_FAILURE_TYPE } from '../../tools/soak/upstream.ts';
import { type ClientKind, judge, type Outcome } from '../../tools/soak/verdict.ts';
import { descendants, findGrowth, VITALS, type Vitals } from '../../tools/soak/vitals.ts';

const answered = (status: number, contentType = 'application/problem+json'): Outcome => ({
  kind: 'response',
  status,
  contentType,
});

describe('a response is a fault', () => {
  test.each<[string, ClientKind, Outcome]>([
    ['a known key that is taken for a bad one', 'good', answered(401)],
    ['a known key that is refused for its quota', 'good', answered(429)],
    ['a bug', 'good', answered(500)],
    ['an unknown key that is let in', 'unknown', answered(200)],
    ['none at all', 'spent', { kind: 'late' }],
  ])('even while something is broken: %s', (_, client, outcome) => {
    expect(judge(client, outcome, true)).toMatch(new RegExp(`^${client}: `));
  });

  test.each<[string, Outcome]>([
    ['an error of the gateway', answered(503)],
    ['an error of the backend', answered(500, UPSTREAM_FAILURE_TYPE)],
    ['a connection that is cut', { kind: 'cut' }],
  ])('only while nothing is broken: %s', (_, outcome) => {
    expect(judge('good', outcome, true)).toBeUndefined();
    expect(judge('good', outcome, false)).toMatch(/^good: .*nothing was broken$/);
  });
});

test.each<[ClientKind, Outcome]>([
  ['good', answered(200)],
  ['spent', answered(429)],
  ['unknown', answered(401)],
  ['unknown', answered(429)],
  ['aborting', { kind: 'aborted' }],
])('%s: %o is as it should be', (client, outcome) => {
  expect(judge(client, outcome, false)).toBeUndefined();
});

describe('memory, descriptors, handles and Redis keys', () => {
  const reading = (size: number): Vitals => ({
    memoryBytes: size * 2 ** 20,
    heapBytes: size * 2 ** 20,
    descriptors: size,
    handles: size,
    redisKeys: size,
  });

  test('that rise while the gateway warms up, and then stay, have not grown', () => {
    const readings = [10, 60, 100, 120, 118, 121, 119, 122, 120].map(reading);
    expect(findGrowth(readings, 'memoryBytes')).toBeUndefined();
  });

  test('that rise all the time have grown', () => {
    const readings = Array.from({ length: 30 }, (_, i) => reading(100 + 10 * i));
    for (const name of VITALS) {
      expect(findGrowth(readings, name)).toMatch(new RegExp(`^${name} grew by `));
    }
  });

  test('that leak slowly below the noise of each reading have grown', () => {
    const noise = [0, 7, -6, 3, -8, 5, -2, 8, -5, 1];
    const readings = Array.from({ length: 100 }, (_, i) => reading(400 + i + (noise[i % noise.length] ?? 0)));
    expect(findGrowth(readings, 'memoryBytes')).toMatch(/^memoryBytes grew by /);
  });

  test('that jump once and fall back, or swing, have not grown', () => {
    const spike = Array.from({ length: 30 }, (_, i) => reading(i === 25 ? 400 : 100));
    const swing = Array.from({ length: 30 }, (_, i) => reading(100 + 30 * (i % 2)));
    for (const name of VITALS) {
      expect(findGrowth(spike, name)).toBeUndefined();
      expect(findGrowth(swing, name)).toBeUndefined();
    }
  });
});

test('processes are found below their parent, however deep', async () => {
  const parent = spawn('sh', ['-c', "sh -c 'sleep 60 & echo up; wait' & wait"], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => {
    for (const pid of found) process.kill(pid, 'SIGKILL');
    parent.kill('SIGKILL');
  });
  await once(parent.stdout, 'data');
  const found = descendants(parent.pid ?? 0);
  expect(found).toHaveLength(2);
});

describe('the backend of a soak', () => {
  async function open() {
    const port = await freePort();
    const upstream = new MoodyUpstream(port);
    await upstream.open();
    onTestFinished(() => upstream.close());
    return { upstream, url: `http://127.0.0.1:${port}${LIST_PATH}` };
  }

  test('serves again after each of its moods', async () => {
    const { upstream, url } = await open();
    for (const mood of ['resetting', 'babbling', 'breaking off'] as const) {
      upstream.mood = mood;
      await expect(fetch(url).then((answer) => answer.text())).rejects.toThrow();
      upstream.mood = 'serving';
      expect((await fetch(url)).status).toBe(200);
    }
  });

  test('refuses connections while it is gone, and is back at the same address', async () => {
    const { upstream, url } = await open();
    await upstream.close();
    await expect(fetch(url)).rejects.toThrow();
    await upstream.open();
    expect((await fetch(url)).status).toBe(200);
  });
});
