/** The value below which the share `q` (0 to 1) of the values lies, interpolated; NaN without values. */
export function quantile(values: readonly number[], q: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  const position = q * (sorted.length - 1);
  const below = sorted[Math.floor(position)] ?? Number.NaN;
  const above = sorted[Math.ceil(position)] ?? Number.NaN;
  return below + (above - below) * (position - Math.floor(position));
}

export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

/** Slope of the line through the points by least squares: y's unit per x's. */
export function slope(points: readonly { readonly x: number; readonly y: number }[]): number {
  const mean = (of: (point: { x: number; y: number }) => number) =>
    points.reduce((sum, point) => sum + of(point), 0) / points.length;
  const meanX = mean(({ x }) => x);
  const meanY = mean(({ y }) => y);
  const covariance = mean(({ x, y }) => (x - meanX) * (y - meanY));
  return covariance / mean(({ x }) => (x - meanX) ** 2);
}
