/** What every store promises of notices. Part of the contract suite. Histories in time: notice-claims.load.test.ts. */
import { describe, expect, test } from 'vitest';
import type { MarkedNotice, Marks, NoticeStore, StoredNotice } from '../../src/store/notices.ts';
import type { OpenedStore } from './opened-store.ts';

const HIDDEN_MS = 60_000;
const HOUR_MS = 3_600_000;
let noticeNumber = 0;

function noticeOf(content = '{}') {
  noticeNumber += 1;
  return { id: `msg_${noticeNumber}`, content };
}

function marksOf(...marks: Marks['marks']): Marks {
  return { customer: 'acme', marks, untilMs: Date.now() + HOUR_MS };
}

function marked(overrides: Partial<MarkedNotice> = {}): MarkedNotice {
  return { ...marksOf('level:100:80'), notice: noticeOf(), ...overrides };
}

async function idsOf(notices: NoticeStore, state: 'pending' | 'dead'): Promise<string[]> {
  const { items } = await notices.list(state, 0, 100);
  return items.map(({ id }) => id);
}

async function takeOne(notices: NoticeStore): Promise<StoredNotice> {
  const [taken] = await notices.takeDue(1, HIDDEN_MS);
  if (taken === undefined) throw new Error('no notice is due');
  return taken;
}

export function noticesContract(name: string, open: () => Promise<OpenedStore>): void {
  const openNotices = async () => (await open()).store.notices;

  describe(`${name}: notices`, () => {
    test('with the same mark are stored for one of many simultaneous calls', async () => {
      const notices = await openNotices();
      const calls = Array.from({ length: 20 }, () => marked());
      const results = await Promise.all(calls.map((each) => notices.addOnce(each)));
      expect(results.filter(Boolean)).toHaveLength(1);
      const winner = calls[results.indexOf(true)]?.notice.id;
      expect(await idsOf(notices, 'pending')).toEqual([winner]);
    });

    test('set all their marks, of which the first decides, for their customer alone', async () => {
      const notices = await openNotices();
      expect(await notices.addOnce(marked({ marks: ['95', '80'] }))).toBe(true);
      expect(await notices.addOnce(marked({ marks: ['80'] }))).toBe(false);
      expect(await notices.addOnce(marked({ marks: ['100', '95', '80'] }))).toBe(true);
      expect(await notices.addOnce(marked({ marks: ['95', '60'] }))).toBe(false);
      expect(await notices.addOnce(marked({ marks: ['60'] }))).toBe(true);
      expect(await notices.addOnce(marked({ marks: ['95'], customer: 'other' }))).toBe(true);
    });

    test('with a mark are stored once, until the mark is over', async () => {
      const notices = await openNotices();
      expect(await notices.addOnce(marked({ marks: ['key_2:7'], untilMs: Date.now() - 1000 }))).toBe(true);
      expect(await notices.addOnce(marked({ marks: ['key_2:7'] }))).toBe(true);
      expect(await notices.addOnce(marked({ marks: ['key_2:7'] }))).toBe(false);
    });

    test('have marks that can be extended while they count, and end early', async () => {
      const notices = await openNotices();
      const past = { untilMs: Date.now() - 1000 };
      expect(await notices.extend(marksOf('a', 'b'))).toBe(false);
      await notices.addOnce(marked({ marks: ['a', 'b'] }));
      expect(await notices.extend(marksOf('a', 'c'))).toBe(true);
      expect(await notices.extend(marksOf('c', 'b'))).toBe(false);
      expect(await notices.extend({ ...marksOf('c', 'a'), ...past })).toBe(false);
      expect(await notices.extend(marksOf('a'))).toBe(false);
      expect(await notices.extend(marksOf('b'))).toBe(true);
      expect(await notices.addOnce(marked({ marks: ['a'] }))).toBe(true);
    });

    test('are taken by one of many gateways, and by another one when the first does not settle them', async () => {
      const notices = await openNotices();
      const one = marked({ notice: noticeOf('{"a":"ä"}') });
      await notices.addOnce(one);
      const taken = await Promise.all(Array.from({ length: 10 }, () => notices.takeDue(5, 300)));
      expect(taken.flat()).toEqual([{ customer: 'acme', ...one.notice }]);
      await expect.poll(() => notices.takeDue(5, HIDDEN_MS)).toEqual(taken.flat());
    });

    test('are replaced only by the one who read them last', async () => {
      const notices = await openNotices();
      await notices.addOnce(marked());
      const taken = await takeOne(notices);
      const next = { content: '{"failed":1}', dueInMs: 0, isDead: false };
      expect(await notices.replace(taken, next)).toBe(true);
      expect(await notices.replace(taken, undefined)).toBe(false);
      // A taker that was late must not delay what is due by now.
      expect(await notices.replace(taken, { content: '{}', dueInMs: HIDDEN_MS, isDead: false })).toBe(false);
      expect(await takeOne(notices)).toEqual({ ...taken, content: next.content });
    });

    test('are due again after the given time, and gone when they are delivered', async () => {
      const notices = await openNotices();
      await notices.addOnce(marked());
      const taken = await takeOne(notices);
      const failed = { content: '{"failed":1}', isDead: false };
      await notices.replace(taken, { ...failed, dueInMs: HIDDEN_MS });
      expect(await notices.takeDue(1, HIDDEN_MS)).toEqual([]);
      await notices.replace({ ...taken, content: failed.content }, { ...failed, dueInMs: 200 });
      await expect.poll(() => notices.takeDue(1, HIDDEN_MS)).toHaveLength(1);
      expect(await notices.replace({ ...taken, content: failed.content }, undefined)).toBe(true);
      expect(await notices.counts()).toEqual({ pending: 0, dead: 0 });
    });

    test('are listed by state, one in both states twice, page by page', async () => {
      const notices = await openNotices();
      for (const customer of ['a', 'b', 'c']) await notices.addOnce(marked({ customer }));
      const taken = await notices.takeDue(3, HIDDEN_MS);
      const [both, dead] = [taken[0] as StoredNotice, taken[1] as StoredNotice];
      await notices.replace(both, { content: '{"both":1}', dueInMs: HIDDEN_MS, isDead: true });
      await notices.replace(dead, { content: '{"dead":1}', dueInMs: undefined, isDead: true });
      expect(await notices.counts()).toEqual({ pending: 2, dead: 2 });
      const first = await notices.list('dead', 0, 1);
      expect(first.nextOffset).toBe(1);
      const second = await notices.list('dead', 1, 1);
      expect(second.nextOffset).toBeUndefined();
      expect([...first.items, ...second.items].map(({ id }) => id).sort()).toEqual([both.id, dead.id].sort());
      expect((await idsOf(notices, 'pending')).sort()).toEqual([both.id, taken[2]?.id].sort());
      // A retry of a dead one.
      await notices.replace({ ...dead, content: '{"dead":1}' }, { content: '{}', dueInMs: 0, isDead: false });
      expect(await idsOf(notices, 'dead')).toEqual([both.id]);
      expect(await takeOne(notices)).toMatchObject({ id: dead.id });
    });

    test('of a deleted customer are deleted with it, and it may be told anew', async () => {
      const { store } = await open();
      const { notices, records } = store;
      await records.createCustomer({ id: 'acme', plan: 'starter', suspended: false });
      await notices.addOnce(marked());
      await records.deleteCustomer('acme');
      expect(await notices.takeDue(10, HIDDEN_MS)).toEqual([]);
      expect(await notices.counts()).toEqual({ pending: 0, dead: 0 });
      expect(await notices.addOnce(marked())).toBe(true);
    });

    test('are not sent to endpoints that are gone, until these are back', async () => {
      const notices = await openNotices();
      await notices.setGone('https://a.example/', true);
      await notices.setGone('https://a.example/', true);
      await notices.setGone('https://b.example/', true);
      await notices.setGone('https://b.example/', false);
      expect([...(await notices.goneEndpoints())]).toEqual(['https://a.example/']);
    });
  });
}
