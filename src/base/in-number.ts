/** Returns a count with its noun: `1 plan`, `4 plans`. */
export function inNumber(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}
