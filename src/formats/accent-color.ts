/**
 * The operator's colour for links and buttons, made darker or lighter until its text can be read on the page. Browsers
 * load this file too, so it imports nothing.
 */

/** Red, green and blue. */
type Color = readonly number[];

interface Scheme {
  /** What pages.css calls --soft, on which contrast is lowest. */
  readonly ground: Color;
  readonly towards: Color;
  /** --bad: the colour of errors, and of buttons that cannot be undone. */
  readonly bad: Color;
}

const LIGHT: Scheme = { ground: [238, 240, 244], towards: [0, 0, 0], bad: [179, 38, 30] };
const DARK: Scheme = { ground: [38, 43, 52], towards: [255, 255, 255], bad: [255, 154, 146] };
/** WCAG 2, for text (1.4.3). */
const MIN_CONTRAST = 4.5;
const STEPS = 20;
/** In OKLab, where 0.02 is just noticeable. Reds and dark oranges are nearer; amber, brown and magenta are not. */
const MIN_DISTANCE = 0.08;

/** Returns the value of --accent. `color`: as `#rrggbb`. */
export function accent(color: string): string {
  const [light, dark] = [LIGHT, DARK].map((scheme) => `rgb(${legible(color, scheme).map(Math.round).join(' ')})`);
  return `light-dark(${light}, ${dark})`;
}

/** Returns whether links and buttons look like errors, in either scheme. */
export function isNearErrorColor(color: string): boolean {
  return [LIGHT, DARK].some((scheme) => {
    const [a, b] = [legible(color, scheme), scheme.bad].map(inOklab);
    return Math.hypot(...(a ?? []).map((part, i) => part - (b?.[i] ?? 0))) < MIN_DISTANCE;
  });
}

function legible(color: string, { ground, towards }: Scheme): Color {
  const given = [1, 3, 5].map((at) => Number.parseInt(color.slice(at, at + 2), 16));
  const mixed = (step: number) => given.map((part, i) => part + (((towards[i] ?? 0) - part) * step) / STEPS);
  let step = 0;
  while (step < STEPS && contrast(mixed(step), ground) < MIN_CONTRAST) step++;
  return mixed(step);
}

function contrast(a: Color, b: Color): number {
  const [first, second] = [luminance(a) + 0.05, luminance(b) + 0.05];
  return Math.max(first / second, second / first);
}

function luminance(color: Color): number {
  const [red = 0, green = 0, blue = 0] = color.map(linear);
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function linear(part: number): number {
  const share = part / 255;
  return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
}

/** Lightness, green to red, and blue to yellow: distances are as people see them (Björn Ottosson, 2020). */
function inOklab(color: Color): Color {
  const [r = 0, g = 0, b = 0] = color.map(linear);
  const l = Math.cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b);
  const m = Math.cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b);
  const s = Math.cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b);
  return [
    0.2104542553 * l + 0.793617785 * m - 0.0040720468 * s,
    1.9779984951 * l - 2.428592205 * m + 0.4505937099 * s,
    0.0259040371 * l + 0.7827717662 * m - 0.808675766 * s,
  ];
}
