import { expect, it } from 'vitest';
import { redactSecrets } from '../../src/observability/logger.ts';

it.each([
  ['no user tg_demo_starter here', 'no user tg_[redacted] here'],
  [`key tg_${'aB3'.repeat(16)}x!`, 'key tg_[redacted]!'],
  ['connect redis://:pass@host:6379/0 failed', 'connect redis://[redacted]@host:6379/0 failed'],
  ['rediss://user:p@ss@host', 'rediss://[redacted]@host'],
  ['header "Bearer abcdefgh12345==" refused', 'header "Bearer [redacted]" refused'],
  ['Authorization: Basic dXNlcjpwYXNz', 'Authorization: Basic [redacted]'],
])('%s loses its secrets', (text, clean) => expect(redactSecrets(text)).toBe(clean));

it.each(['connect ECONNREFUSED 127.0.0.1:6379', 'http://host/path?to=a@b.example', 'Bearer realm="conversations"'])(
  '%s stays as it is',
  (text) => expect(redactSecrets(text)).toBe(text),
);
