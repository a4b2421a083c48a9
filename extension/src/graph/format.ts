/** Numbers for people. */

export function bytes(value: number): string {
  return scaled(value, 1000, ["B", "kB", "MB", "GB", "TB"]);
}

export function flops(value: number): string {
  return scaled(value, 1000, ["FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP"]);
}

/** @param micros microseconds */
export function time(micros: number): string {
  return scaled(micros * 1000, 1000, ["ns", "µs", "ms", "s"]);
}

export function count(value: number): string {
  return value.toLocaleString("en");
}

/** `1 node`, `12 nodes`. */
export function counted(value: number, one: string): string {
  return `${count(value)} ${one}${value === 1 ? "" : "s"}`;
}

function scaled(value: number, step: number, units: readonly string[]): string {
  let at = 0;
  let rest = value;
  while (rest >= step && at < units.length - 1) {
    rest /= step;
    at += 1;
  }
  const digits = rest >= 100 || Number.isInteger(rest) ? 0 : rest >= 10 ? 1 : 2;
  return `${rest.toFixed(digits)} ${units[at] ?? ""}`;
}
