import { describe, expect, it } from 'vitest';
import { createKeyHeaders } from '../../src/edge/credentials.ts';
import { chooseRequestId } from '../../src/edge/request-ids.ts';

const KEY_HEADERS = createKeyHeaders(['Authorization', 'X-API-Key'], 'a');
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

describe("the client's request id", () => {
  it.each(['1', 'abc-123', 'Root=1-67891233-abcdef012345678912345678', 'a'.repeat(128)])('%s is kept', (id) => {
    expect(chooseRequestId(id, ['Authorization', 'Bearer tg_demo_starter'], KEY_HEADERS)).toBe(id);
  });

  it.each([
    ['is missing', undefined],
    ['is empty', ''],
    ['has white space', 'a b'],
    ['could break a log line', 'a"b'],
    ['is too long', 'a'.repeat(129)],
    ['is a key', 'tg_demo_starter'],
    ['is part of the key sent along', 'demo_starter'],
    ['looks like any key', 'tg_other'],
    ['has the key sent along in it', 'request-tg_demo_starter'],
    ['has what looks like any key in it', 'request-tg_other'],
  ])('is replaced when it %s', (_, id) => {
    expect(chooseRequestId(id, ['Authorization', 'Bearer tg_demo_starter'], KEY_HEADERS)).toMatch(UUID);
  });

  it('is replaced when it has a key in it that was made elsewhere', () => {
    expect(
      chooseRequestId('request-made-elsewhere-1', ['Authorization', 'Bearer made-elsewhere'], KEY_HEADERS),
    ).toMatch(UUID);
  });

  it.each([
    ['the second of two fields', ['Authorization', 'Basic x', 'authorization', 'Bearer made-elsewhere']],
    ['another listed field', ['x-api-key', 'made-elsewhere']],
    ['another spelling of it', ['X_API.Key', 'made-elsewhere']],
    ['the end of a list', ['X-Api-Key', 'a, made-elsewhere-1']],
  ])('is replaced when it shares text with %s', (_, headers) => {
    expect(chooseRequestId('made-elsewhere-1', headers, KEY_HEADERS)).toMatch(UUID);
  });

  it('is kept when it shares text with a header that holds no key', () => {
    expect(chooseRequestId('made-elsewhere-1', ['X-Api-Keys', 'made-elsewhere-1'], KEY_HEADERS)).toBe(
      'made-elsewhere-1',
    );
  });

  it('is kept when there are no credentials', () => {
    expect(chooseRequestId('abc-1234-567', [], KEY_HEADERS)).toBe('abc-1234-567');
  });
});
