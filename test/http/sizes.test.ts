import { describe, expect, it } from 'vitest';
import { fieldValues } from './support/http-reader.ts';
import { get, useHttpSystem } from './support/system.ts';

const { expectPassed, expectRefused } = useHttpSystem({
  config: { limits: { header_bytes: 4096, header_count: 50, target_bytes: 2048 } },
});
const PATH = '/v1/conversations';

describe('the target is bounded', () => {
  it.each([2048 - PATH.length - 1, 2047 - PATH.length - 1])('a query of %i bytes fits', async (length) => {
    await expectPassed(get(`${PATH}?${'q'.repeat(length)}`), `/api${PATH}?${'q'.repeat(length)}`);
  });

  it.each([2049, 2050, 4096, 8192, 16_384, 32_768])('%i bytes are too long', async (length) => {
    for (const method of ['GET', 'HEAD', 'POST']) {
      const target = `${PATH}?`.padEnd(length, 'q');
      await expectRefused(get(target).replace('GET', method), 'target_too_long');
      await expectRefused(get(`${PATH}/`.padEnd(length, 'x')).replace('GET', method), 'target_too_long');
    }
  });

  it.each([65_536, 131_072, 1_048_576])('%i bytes are refused before they are all read', async (length) => {
    await expectRefused(get(`${PATH}?`.padEnd(length, 'q')), 'target_too_long', 'headers_too_large');
  });
});

describe('header fields are bounded, and none is dropped in silence', () => {
  it('50 fields pass, each of them', async () => {
    const more = Array.from({ length: 48 }, (_, i) => `X-N: ${i}`);
    const { seen } = await expectPassed(get(PATH, ...more));
    expect(fieldValues(seen, 'x-n')).toEqual(Array.from({ length: 48 }, (_, i) => String(i)));
  });

  it.each([49, 50, 100, 998, 999, 1000, 1001, 1998, 2000, 5000])('%i more than the two are too many', async (count) => {
    await expectRefused(get(PATH, ...Array(count).fill('X-N: 1')), 'headers_too_large');
    await expectRefused(get(PATH, ...Array(count).fill('a:')), 'headers_too_large');
  });

  it.each([4096, 8192, 16_384, 65_536, 131_072, 1_048_576])(
    '%i bytes in a value, a name, or together are too many',
    async (bytes) => {
      await expectRefused(get(PATH, `X-A: ${'v'.repeat(bytes)}`), 'headers_too_large');
      await expectRefused(get(PATH, `${'n'.repeat(bytes)}: v`), 'headers_too_large');
      const share = Math.floor(bytes / 40);
      await expectRefused(get(PATH, ...Array(40).fill(`X-A: ${'v'.repeat(share)}`)), 'headers_too_large');
    },
  );
});
