/** What a key may be restricted to: scopes, and the addresses that may use it. */
import { AddressBlocks, isAddressOrBlock } from './address-block.ts';

/** Most scopes, and most addresses, of a key. */
export const MAX_RESTRICTIONS = 50;
/** Longest text of either field. A longer one is not parsed. */
const MAX_LENGTH = 8192;
/** RFC 6749 §3.3. */
const SCOPE = /^[\x21\x23-\x5b\x5d-\x7e]{1,128}$/;

/** An absent member does not restrict the key. An empty list means that the field is unreadable: it allows nothing. */
export interface KeyRestrictions {
  readonly scopes?: readonly string[];
  /** Addresses and CIDR blocks. */
  readonly allowedAddresses?: readonly string[];
}

/** The restrictions that a request sets; null or undefined: none. */
export type WantedRestrictions = {
  readonly [Name in keyof KeyRestrictions]?: KeyRestrictions[Name] | null | undefined;
};

/** Accepts one scope, as routes and keys name it. */
export function isScope(text: string): boolean {
  return SCOPE.test(text);
}

/** Returns the scopes of a field, which spaces separate; none if it is unreadable. */
export function parseScopes(text: string): readonly string[] {
  return readable(text, text.split(' ', MAX_LENGTH).filter(Boolean), isScope);
}

/** Returns the addresses and blocks of a field, which commas separate; none if it is unreadable. */
export function parseAllowedAddresses(text: string): readonly string[] {
  return readable(
    text,
    text.split(',', MAX_LENGTH).map((entry) => entry.trim()),
    isAddressOrBlock,
  );
}

function readable(text: string, items: readonly string[], isValid: (item: string) => boolean): readonly string[] {
  const isReadable = text.length <= MAX_LENGTH && items.length <= MAX_RESTRICTIONS && items.every(isValid);
  return isReadable ? items : [];
}

/** Returns whether a key with the restrictions `after` may do nothing that one with `before` may not. */
export function isWithinRestrictions(after: WantedRestrictions, before: WantedRestrictions): boolean {
  const areScopesWithin = !before.scopes || after.scopes?.every((scope) => before.scopes?.includes(scope));
  const areAddressesWithin =
    !before.allowedAddresses ||
    (after.allowedAddresses &&
      new AddressBlocks(before.allowedAddresses).includes(new AddressBlocks(after.allowedAddresses)));
  return areScopesWithin === true && areAddressesWithin === true;
}
