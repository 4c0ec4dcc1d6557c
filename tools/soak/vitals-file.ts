/** Between the gateway's processes, which write it, and the soak, which reads it. */
export function vitalsFileName(pid: number): string {
  return `${pid}.json`;
}
