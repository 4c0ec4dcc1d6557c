/** What the command line tells of requests without loading their schemas. */
export const MAX_GRACE_SECONDS = 365 * 24 * 3600;
export const PORTAL_SCOPES = ['usage:read', 'keys:read', 'keys:write'] as const;
export const MAINTENANCE_MODES = ['off', 'read_only', 'down'] as const;
export const EXPORT_FORMATS = ['csv', 'jsonl', 'cloudevents', 'stripe'] as const;
