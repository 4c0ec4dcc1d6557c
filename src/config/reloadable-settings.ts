/** When a changed setting takes effect. */
export type TakesEffect = 'reload' | 'restart';

/**
 * Keys that a reload applies, with all keys below them. Any other key needs a restart, so a new setting is never applied
 * in part.
 */
const RELOADABLE: readonly string[] = [
  'listen.trusted_proxies',
  'listen.trust_forwarded_host',
  'admin.token',
  'admin.token_file',
  'admin.allowed_hosts',
  'check.token',
  'check.token_file',
  'check.trusted_proxies',
  'portal.public_url',
  'portal.title',
  'portal.logo_file',
  'portal.home_url',
  'portal.docs_url',
  'portal.support_url',
  'portal.api_url',
  'portal.accent_color',
  'portal.max_keys',
  'console',
  'upstream',
  'upstreams',
  'routes',
  'aliases',
  'usage_path',
  'requests',
  'notices',
  'tracing',
  'documentation_url',
  'plans',
  'overrides',
  'auth.realm',
  'auth.key_headers',
  'auth.cache_seconds',
  'auth.stale_if_error_seconds',
  'auth.failures_per_minute',
  'auth.browser_keys',
  'identity',
  'limits.header_count',
  'limits.body_bytes',
  'limits.body_stall_timeout_ms',
  'limits.in_flight',
  'shutdown',
  'logging.level',
  'logging.access',
];

/** Returns when a change of a key takes effect. `key`: as in the reference, also `routes[].path` or `plans.<name>`. */
export function takesEffect(key: string): TakesEffect {
  return RELOADABLE.some((reloadable) => isKeyWithin(key, reloadable)) ? 'reload' : 'restart';
}

/** Returns whether `key` is `section`, or below it. */
export function isKeyWithin(key: string, section: string): boolean {
  return key === section || (key.startsWith(section) && /^[.[]/.test(key.slice(section.length)));
}
