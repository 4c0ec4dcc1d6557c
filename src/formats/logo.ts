/** Which images may be the logo of the portal. They are recognised by their content, whatever the name of the file. */

export const MAX_LOGO_BYTES = 65_536;

export type LogoType = 'image/png' | 'image/svg+xml';

/** PNG, third edition, §5.2. */
const PNG_SIGNATURE = Buffer.from('89504e470d0a1a0a', 'hex');
/** Browsers draw an SVG only with its namespace. Before its root: declaration, comments, document type. */
const SVG =
  /^\s*(?:<\?xml\b[^>]*>\s*)?(?:<!--(?:(?!-->).)*-->\s*|<!DOCTYPE\b[^>[]*(?:\[[^\]]*\]\s*)?>\s*)*<svg\b[^>]*\sxmlns=["']http:\/\/www\.w3\.org\/2000\/svg["']/s;

/** Returns the media type of an image; undefined if it is neither. */
export function logoType(content: Buffer): LogoType | undefined {
  if (content.subarray(0, PNG_SIGNATURE.length).equals(PNG_SIGNATURE)) return 'image/png';
  try {
    return SVG.test(new TextDecoder('utf-8', { fatal: true }).decode(content)) ? 'image/svg+xml' : undefined;
  } catch {
    return undefined;
  }
}
