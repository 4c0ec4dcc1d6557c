import { expect, test } from 'vitest';
import { exchangeRaw } from '../support/raw-http.ts';
import { startSystem } from '../support/system.ts';

test.each(['http://a:x/', 'http://[/', '//', '*'])(
  'the listeners for operators respond to the target %s with a problem document',
  async (target) => {
    const { gateway } = await startSystem();
    for (const url of [gateway.ops, gateway.admin ?? '']) {
      const answer = await exchangeRaw(url, `GET ${target} HTTP/1.1\r\nHost: ${new URL(url).host}\r\n\r\n`);
      expect(answer.headers['content-type']).toBe('application/problem+json');
      expect([400, 401, 404]).toContain(answer.status);
      expect(JSON.parse(answer.body)).toMatchObject({ status: answer.status, code: expect.any(String) });
    }
  },
);
