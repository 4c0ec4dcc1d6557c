import { comparableName, HOP_BY_HOP } from './hop-by-hop.ts';

/** What there is to know of a header field's name, however it is spelled. */
export interface HeaderName {
  readonly lower: string;
  /** See {@link comparableName}. */
  readonly comparable: string;
  readonly isHopByHop: boolean;
  /** RFC 9110 §5.6.2: nothing else may be a name. */
  readonly isToken: boolean;
}

const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

/** Spellings that are remembered. The first to come stay: whoever sends new names with every request gains nothing. */
const MOST_REMEMBERED = 512;
const remembered = new Map<string, HeaderName>();

/** Remembers what it found, for the same few names come with every request. */
export function headerName(name: string): HeaderName {
  const found = remembered.get(name);
  if (found !== undefined) return found;
  const lower = name.toLowerCase();
  const made = {
    lower,
    comparable: comparableName(lower),
    isHopByHop: HOP_BY_HOP.has(lower),
    isToken: TOKEN.test(name),
  };
  if (remembered.size < MOST_REMEMBERED) remembered.set(name, made);
  return made;
}
