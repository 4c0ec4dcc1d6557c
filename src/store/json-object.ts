import { isMapping } from '../base/mapping.ts';

/** Returns the object that a stored text is in JSON; undefined for any other text, which other programs may have written. */
export function parseJsonObject(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isMapping(value) ? { ...value } : undefined;
  } catch {
    return undefined;
  }
}
