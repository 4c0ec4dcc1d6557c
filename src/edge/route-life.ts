/** What the responses of a route say about its end: RFC 9745 (Deprecation), RFC 8594 (Sunset), RFC 5829 (successor-version). */

/** As in the config file: ISO times, and the URL of what replaces the route. */
interface RouteLifeSettings {
  readonly deprecatedAt?: string | undefined;
  readonly sunsetAt?: string | undefined;
  readonly successor?: string | undefined;
}

export interface RouteLife {
  /** Headers of each response, as a flat list (name, value, …). */
  readonly headers: readonly string[];
  /** The same as lines, each after the CRLF of the line before it. */
  readonly lines: string;
  /** Finds the lines of the backend's response that these replace. Undefined: none. */
  readonly replaced: RegExp | undefined;
  /** The route has a deprecation or a sunset, so operators want to know which customers call it. */
  readonly isEnding: boolean;
  /** Wall time in ms from which on requests get 410. */
  readonly sunsetAtMs: number;
  readonly successor: string | undefined;
}

/** Returns undefined for a route without any of the settings. */
export function routeLife({ deprecatedAt, sunsetAt, successor }: RouteLifeSettings): RouteLife | undefined {
  const dates: string[] = [];
  if (deprecatedAt !== undefined) dates.push('Deprecation', `@${Math.floor(Date.parse(deprecatedAt) / 1000)}`);
  if (sunsetAt !== undefined) dates.push('Sunset', new Date(sunsetAt).toUTCString());
  const headers = successor === undefined ? dates : [...dates, 'Link', `<${successor}>; rel="successor-version"`];
  if (headers.length === 0) return undefined;
  const names = dates.filter((_, index) => index % 2 === 0).join('|');
  return {
    headers,
    lines: headers.map((text, index) => (index % 2 === 0 ? `\r\n${text}: ` : text)).join(''),
    replaced: names === '' ? undefined : new RegExp(`\\r\\n(?:${names}):[^\\r]*`, 'gi'),
    isEnding: dates.length > 0,
    sunsetAtMs: sunsetAt === undefined ? Number.POSITIVE_INFINITY : Date.parse(sunsetAt),
    successor,
  };
}
