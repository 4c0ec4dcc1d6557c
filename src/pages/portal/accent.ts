/** The operator's colour for links and buttons, made darker or lighter until its text can be read on the page. */

/** Red, green and blue. */
type Color = readonly number[];

const BLACK: Color = [0, 0, 0];
const WHITE: Color = [255, 255, 255];
/** What pages.css calls --soft, on which contrast is lowest in each scheme. */
const LIGHT_GROUND: Color = [238, 240, 244];
const DARK_GROUND: Color = [38, 43, 52];
/** WCAG 2, for text (1.4.3). */
const MIN_CONTRAST = 4.5;
const STEPS = 20;

/** Returns the value of --accent. `color`: as `#rrggbb` or `#rgb`. */
export function accent(color: string): string {
  const digits = color.length === 4 ? color.replace(/[^#]/g, '$&$&') : color;
  const given = [1, 3, 5].map((at) => Number.parseInt(digits.slice(at, at + 2), 16));
  return `light-dark(${legible(given, LIGHT_GROUND, BLACK)}, ${legible(given, DARK_GROUND, WHITE)})`;
}

function legible(color: Color, ground: Color, towards: Color): string {
  const mixed = (step: number) => color.map((part, i) => part + (((towards[i] ?? 0) - part) * step) / STEPS);
  let step = 0;
  while (step < STEPS && contrast(mixed(step), ground) < MIN_CONTRAST) step++;
  return `rgb(${mixed(step).map(Math.round).join(' ')})`;
}

function contrast(a: Color, b: Color): number {
  const [first, second] = [luminance(a) + 0.05, luminance(b) + 0.05];
  return Math.max(first / second, second / first);
}

function luminance(color: Color): number {
  const [red = 0, green = 0, blue = 0] = color.map((part) => {
    const share = part / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}
