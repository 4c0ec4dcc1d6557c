import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { accent, isNearErrorColor } from '../../src/formats/accent-color.ts';

const LIGHT_GROUND = [238, 240, 244];
const DARK_GROUND = [38, 43, 52];

/** WCAG 2.2, relative luminance and contrast ratio. */
function contrast(a: readonly number[], b: readonly number[]): number {
  const luminance = (color: readonly number[]) => {
    const [r = 0, g = 0, b = 0] = color.map((c) =>
      c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4,
    );
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const [low = 0, high = 0] = [luminance(a), luminance(b)].toSorted((x, y) => x - y);
  return (high + 0.05) / (low + 0.05);
}

const colorsOf = (value: string) =>
  [...value.matchAll(/rgb\((\d+) (\d+) (\d+)\)/g)].map((match) => match.slice(1, 4).map(Number));

it.each(['#000000', '#ffffff', '#ffff00', '#0b5fff', '#ff00ff', '#808080', '#00ff7f', '#7a1fa2'])(
  'links in %s can be read on the page, in both schemes',
  (color) => {
    const [light = [], dark = []] = colorsOf(accent(color));
    expect(contrast(light, LIGHT_GROUND)).toBeGreaterThanOrEqual(4.5);
    expect(contrast(dark, DARK_GROUND)).toBeGreaterThanOrEqual(4.5);
  },
);

it('a color that can be read is left as it is', () => {
  expect(colorsOf(accent('#2954c8'))[0]).toEqual([0x29, 0x54, 0xc8]);
  expect(colorsOf(accent('#8fb0ff'))[1]).toEqual([0x8f, 0xb0, 0xff]);
});

it.each(['#b3261e', '#ff9a92', '#ff0000', '#d32f2f', '#dc143c', '#e11d48', '#d9480f'])(
  '%s looks like an error',
  (color) => {
    expect(isNearErrorColor(color)).toBe(true);
  },
);

it.each(['#0b5fff', '#1a6b3c', '#7a1fa2', '#c2185b', '#8b4513', '#f57c00', '#800000', '#000000', '#ffffff'])(
  '%s does not look like an error',
  (color) => expect(isNearErrorColor(color)).toBe(false),
);

it('the grounds and the color of errors are those of the pages', () => {
  const css = readFileSync(new URL('../../src/pages/client/pages.css', import.meta.url), 'utf8');
  const source = readFileSync(new URL('../../src/formats/accent-color.ts', import.meta.url), 'utf8');
  for (const name of ['soft', 'bad']) {
    const [, ...colors] = new RegExp(`--${name}: light-dark\\((#\\w+), (#\\w+)\\)`).exec(css) ?? [];
    expect(colors).toHaveLength(2);
    for (const color of colors) {
      const parts = [1, 3, 5].map((at) => Number.parseInt(color.slice(at, at + 2), 16));
      expect(source).toContain(`[${parts.join(', ')}]`);
    }
  }
});
