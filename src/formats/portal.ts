/** How long a session may last. */
export const MAX_PORTAL_SESSION_MS = 24 * 3_600_000;
