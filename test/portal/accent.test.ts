import { expect, it } from 'vitest';
import { accent } from '../../src/pages/portal/accent.ts';

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

it.each(['#000000', '#ffffff', '#ffff00', '#0b5fff', '#f0f', '#808080', '#00ff7f', '#7a1fa2'])(
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
