/**
 * Days and months, in TypeScript and in Lua, held against a calendar that only counts: one day after the other, with
 * Gregory's rule for leap years.
 */
import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { anchorAt, CALENDAR, type Per, type Period, periodAt } from '../../src/store/periods.ts';
import { WINDOW_LUA } from '../../src/store/redis/window/window-scripts.ts';
import { type RedisServer, startRedis } from '../support/redis-server.ts';

const HOUR_MS = 3_600_000;
/** From 1970 to 2134. */
const DATES = 60_000;
const ANCHOR_DAYS = Array.from({ length: 31 }, (_, index) => index + 1);

interface DayOfCalendar {
  readonly day: number;
  readonly isLastOfMonth: boolean;
}

/** Index 0 is 1970-01-01. */
const CALENDAR_DAYS = daysFrom1970(DATES + 800);

function daysFrom1970(count: number): readonly DayOfCalendar[] {
  const days: DayOfCalendar[] = [];
  for (let year = 1970; days.length < count; year += 1) {
    const isLeap = year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
    for (const length of [31, isLeap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]) {
      for (let day = 1; day <= length; day += 1) days.push({ day, isLastOfMonth: day === length });
    }
  }
  return days;
}

/** The days on which a month of this anchor begins. */
function beginnings(anchorDay: number): readonly number[] {
  return CALENDAR_DAYS.flatMap(({ day, isLastOfMonth }, index) =>
    day === anchorDay || (isLastOfMonth && day < anchorDay) ? [index] : [],
  );
}

const BEGINNINGS = new Map(ANCHOR_DAYS.map((day) => [day, beginnings(day)]));

/** By search among all beginnings of months. */
function counted(hour: number, per: Per, day: number, anchorHour: number): Period {
  const days = per === 'day' ? CALENDAR_DAYS.map((_, index) => index) : (BEGINNINGS.get(day) ?? []);
  const next = days.findIndex((index) => index * 24 + anchorHour > hour);
  return { startHour: (days[next - 1] ?? 0) * 24 + anchorHour, endHour: (days[next] ?? 0) * 24 + anchorHour };
}

const at = (iso: string) => Date.parse(iso) / HOUR_MS;
const hours = ([start, end]: [string, string]): Period => ({ startHour: at(start), endHour: at(end) });

test.each<[now: string, per: Per, day: number, hour: number, period: [start: string, end: string]]>([
  ['2027-02-01T00:00Z', 'month', 31, 10, ['2027-01-31T10:00Z', '2027-02-28T10:00Z']],
  ['2027-02-28T10:00Z', 'month', 31, 10, ['2027-02-28T10:00Z', '2027-03-31T10:00Z']],
  ['2027-03-31T09:59Z', 'month', 31, 10, ['2027-02-28T10:00Z', '2027-03-31T10:00Z']],
  ['2028-02-29T00:00Z', 'month', 29, 0, ['2028-02-29T00:00Z', '2028-03-29T00:00Z']],
  ['2027-02-28T00:00Z', 'month', 29, 0, ['2027-02-28T00:00Z', '2027-03-29T00:00Z']],
  ['2100-02-28T23:00Z', 'month', 30, 23, ['2100-02-28T23:00Z', '2100-03-30T23:00Z']],
  ['2027-01-01T00:00Z', 'month', 1, 0, ['2027-01-01T00:00Z', '2027-02-01T00:00Z']],
  ['2026-12-31T23:59Z', 'month', 1, 0, ['2026-12-01T00:00Z', '2027-01-01T00:00Z']],
  ['2027-01-14T00:00Z', 'month', 15, 5, ['2026-12-15T05:00Z', '2027-01-15T05:00Z']],
  ['2027-06-01T04:59Z', 'day', 9, 5, ['2027-05-31T05:00Z', '2027-06-01T05:00Z']],
  ['2027-06-01T05:00Z', 'day', 9, 5, ['2027-06-01T05:00Z', '2027-06-02T05:00Z']],
])('at %s, the %s of an anchor on day %i at hour %i is %j', (now, per, day, hour, period) => {
  expect(periodAt(Date.parse(now), per, { day, hour })).toEqual(hours(period));
});

test('a month lasts from one beginning to the next, on 60,000 dates and for each anchor', () => {
  for (const [anchorDay, days] of BEGINNINGS) {
    let next = days.findIndex((index) => index > 800);
    for (let date = days[next - 1] ?? 0; date < DATES; date += 1) {
      if (date === days[next]) next += 1;
      // Each hour of the day is an anchor's on some of the dates. Its last millisecond before is in the month before.
      const anchorHour = (date + anchorDay) % 24;
      const anchor = { day: anchorDay, hour: anchorHour };
      const startHour = (days[next - 1] ?? 0) * 24 + anchorHour;
      const endHour = (days[next] ?? 0) * 24 + anchorHour;
      const atHour = periodAt((date * 24 + anchorHour) * HOUR_MS, 'month', anchor);
      const before = periodAt((date * 24 + anchorHour) * HOUR_MS - 1, 'month', anchor);
      const isBefore = date === days[next - 1] ? before.endHour === startHour : before.startHour === startHour;
      if (atHour.startHour !== startHour || atHour.endHour !== endHour || !isBefore) {
        expect.unreachable(`${new Date(date * 24 * HOUR_MS).toISOString()} of anchor ${anchorDay} ${anchorHour}`);
      }
    }
  }
});

test('an anchor is the day and hour of a time, in UTC; without one, the calendar decides', () => {
  expect(anchorAt(Date.parse('2026-01-31T12:00:00+02:00'))).toEqual({ day: 31, hour: 10 });
  expect(anchorAt(0)).toEqual(CALENDAR);
});

describe('in Redis', () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis.stop());

  test('Lua and TypeScript find the same periods, as the calendar says', async () => {
    const file = new URL('../../src/store/redis/window/period.lua', import.meta.url);
    const script = `${WINDOW_LUA}${readFileSync(file, 'utf8')}
      definePeriods()
      local found = {}
      for i = 11, #ARGV, 4 do
        local anchor = table.concat(ARGV, '/', i + 1, i + 3)
        found[#found + 1] = table.concat({ periodAt(tonumber(ARGV[i]), anchor) }, ' ')
      end
      return found`;
    const moment = fc.tuple(
      fc.integer({ min: 24 * 800, max: 24 * DATES }),
      fc.constantFrom<Per>('day', 'month', 'month'),
      fc.oneof(fc.constantFrom(1, 28, 29, 30, 31), fc.constantFrom(...ANCHOR_DAYS)),
      fc.nat(23),
    );
    // Half of them at a boundary of their period, where a mistake would be.
    const moments = fc.sample(moment, 4000).flatMap(([hour, per, day, anchorHour]) => {
      const { endHour } = periodAt(hour * HOUR_MS, per, { day, hour: anchorHour });
      return [hour, endHour - 1, endHour].map((each) => [each, per, day, anchorHour] as const);
    });
    for (let first = 0; first < moments.length; first += 500) {
      const some = moments.slice(first, first + 500);
      const args = ['', '', '', 0, 0, 0, '', '', '', '', ...some.flat()];
      args.splice(0, 2, HOUR_MS, 10_000);
      const found = await redis.command('EVAL', script, 1, 'p:window:{c}', ...args);
      expect(found).toEqual(
        some.map(([hour, per, day, anchorHour]) => {
          const { startHour, endHour } = periodAt(hour * HOUR_MS, per, { day, hour: anchorHour });
          return `${per === 'day' ? 'd' : ''}${startHour} ${startHour} ${endHour}`;
        }),
      );
    }
    for (const [hour, per, day, anchorHour] of moments.slice(0, 600)) {
      expect(periodAt(hour * HOUR_MS, per, { day, hour: anchorHour })).toEqual(counted(hour, per, day, anchorHour));
    }
  });
});
