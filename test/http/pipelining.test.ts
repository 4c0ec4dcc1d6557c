import { describe, expect, it } from 'vitest';
import { get, useHttpSystem } from './support/system.ts';

const { attempt } = useHttpSystem();
const PATH = '/v1/conversations';
const numbered = (i: number, ...fields: string[]) => get(`${PATH}/${i}`, `X-Request-Id: r${i}`, ...fields);

async function statuses(bytes: string, answers: number, isHead?: (index: number) => boolean) {
  const tried = await attempt(bytes, { answers, ...(isHead && { isHead }) });
  expect(tried.rest).toBe('');
  return {
    answers: tried.answers.map(({ status }) => status),
    ids: tried.answers.map(({ fields }) => fields.find(([name]) => name === 'X-Request-Id')?.[1]),
    seen: tried.seen.map(({ target }) => target.split('/').at(-1)),
    end: tried.end,
  };
}

describe('pipelined requests', () => {
  it.each([2, 3, 10, 100, 300])('%i get their responses in order', async (count) => {
    const bytes = Array.from({ length: count }, (_, i) => numbered(i)).join('');
    const tried = await statuses(bytes, count);
    expect(tried.answers).toEqual(Array(count).fill(200));
    expect(tried.ids).toEqual(Array.from({ length: count }, (_, i) => `r${i}`));
    expect(tried.seen.toSorted()).toEqual(Array.from({ length: count }, (_, i) => String(i)).toSorted());
    expect(tried.end).toBe('kept');
  });

  it('refusals that keep the connection are sent between responses', async () => {
    const refused = get('/nowhere', 'X-Request-Id: r1');
    const unknown = numbered(3).replace('Bearer KEY', 'Bearer unknown-key');
    const tried = await statuses(numbered(0) + refused + numbered(2) + unknown + numbered(4), 5);
    expect(tried.answers).toEqual([200, 404, 200, 401, 200]);
    expect(tried.ids).toEqual(['r0', 'r1', 'r2', 'r3', 'r4']);
    expect(tried.end).toBe('kept');
  });

  it('an unknown method gets the allowed ones, and bytes that are no method do not', async () => {
    const unknown = await statuses(numbered(0) + numbered(1).replace('GET', 'FOO'), 2);
    expect([unknown.answers, unknown.seen]).toEqual([[200, 405], ['0']]);
    const garbage = await statuses(`${numbered(0)}garbage\r\n\r\n`, 2);
    expect([garbage.answers, garbage.seen]).toEqual([[200, 400], ['0']]);
  });

  it('HEAD among them has no content', async () => {
    const requests = [0, 1, 2, 3].map((i) => (i % 2 === 0 ? numbered(i) : numbered(i).replace('GET', 'HEAD')));
    const tried = await statuses(requests.join(''), 4, (index) => index % 2 === 1);
    expect([tried.answers, tried.end]).toEqual([[200, 200, 200, 200], 'kept']);
  });
});

describe('what follows the last request of a connection is not worked on', () => {
  it.each([
    ['Connection: close', ['Connection: close']],
    ['Connection: Close', ['Connection: Close']],
    ['close among others', ['Connection: x, close, keep-alive']],
    ['an expectation, after which the caller could send anything', ['Expect: 100-continue']],
    ['the wish for another protocol', ['Upgrade: h2c']],
    ['the wish for WebSockets, which is refused', ['Connection: Upgrade', 'Upgrade: websocket'], 501],
  ])('%s', async (_, fields, status = 200) => {
    for (const rest of [
      numbered(1),
      numbered(1) + numbered(2),
      'garbage',
      '\0',
      '\x81\x85\x37\xfa\x21',
      numbered(1, 'Connection: close'),
    ]) {
      const tried = await statuses(numbered(0, ...fields) + rest, 1);
      expect(tried).toMatchObject({ answers: [status], seen: status === 200 ? ['0'] : [], end: 'closed' });
    }
    const second = await statuses(numbered(0) + numbered(1, ...fields) + numbered(2), 2);
    expect(second).toMatchObject({ answers: [200, status], end: 'closed' });
    expect(second.seen.toSorted()).toEqual(status === 200 ? ['0', '1'] : ['0']);
  });

  it.each([
    ['a body', () => numbered(1, 'Content-Length: 5')],
    ['chunked content', () => numbered(1, 'Transfer-Encoding: chunked')],
    ['a wrong host', () => numbered(1).replace('api.example', 'a,b')],
    ['a wrong path', () => numbered(1).replace('/1', '/%2e%2e')],
    ['an expectation', () => numbered(1, 'Expect: x')],
    ['a length that is none', () => numbered(1, 'Content-Length: x')],
    ['a bare LF', () => numbered(1).replaceAll('\r\n', '\n')],
    ['a folded field', () => numbered(1, 'X: a', ' b')],
    ['garbage', () => 'garbage\r\n\r\n'],
  ])('nor what follows a refusal for %s', async (_, refused) => {
    for (const rest of ['', numbered(2), '0\r\n\r\n', `0\r\n\r\n${numbered(2)}`, `abcde${numbered(2)}`]) {
      const alone = await statuses(refused() + rest, 1);
      expect(alone.answers.length).toBe(1);
      expect(alone.answers[0]).toBeGreaterThanOrEqual(400);
      expect([alone.seen, alone.end]).toEqual([[], 'closed']);
      // The request before it has its answer first.
      const tried = await statuses(numbered(0) + refused() + rest, 2);
      expect(tried.answers.length).toBe(2);
      expect([tried.answers[0], tried.seen, tried.end]).toEqual([200, ['0'], 'closed']);
      expect(tried.answers[1]).toBeGreaterThanOrEqual(400);
    }
  });
});
