/**
 * Numbers and units as people read them: durations, bytes, counts, FLOPs, shares.
 *
 * `compiler/irscope/vocabulary/units.py` is the same in Python; `tests/units.json` has the cases that both are held to.
 * Prefixes are decimal (1 kB is 1000 B). A number has three significant digits and no zeros at its end; what rounds up
 * to the next unit is written in that unit.
 */

const PREFIXES = ["", "k", "M", "G", "T", "P"] as const;

/** `12.3 µs`, `60 ms`, `1.8 s`, `2 min 5 s`, `1 h 2 min`. */
export function duration(seconds: number): string {
  if (seconds <= 0) {
    return "0 s";
  }
  for (const [factor, unit] of [
    [1e9, "ns"],
    [1e6, "µs"],
    [1e3, "ms"],
  ] as const) {
    const text = significant(seconds * factor);
    if (Number(text) < 1000) {
      return `${text} ${unit}`;
    }
  }
  const tenths = seconds.toFixed(1);
  if (Number(tenths) < 60) {
    return `${tenths} s`;
  }
  const whole = Math.round(seconds);
  if (whole < 3600) {
    return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  }
  const minutes = Math.round(seconds / 60);
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** `812 B`, `3.4 kB`, `12 MB`, `2 GB`. */
export function size(bytes: number): string {
  return scaled(
    bytes,
    PREFIXES.map((prefix) => `${prefix}B`),
  );
}

/** `131 kFLOP`, `2.1 GFLOP`. */
export function flops(number: number): string {
  return scaled(
    number,
    PREFIXES.map((prefix) => `${prefix}FLOP`),
  );
}

/** `1 graph`, `1,200 graphs`; without a noun `1,200`. */
export function count(number: number, one = "", many = plural(one)): string {
  const digits = number.toLocaleString("en");
  return one === "" ? digits : `${digits} ${number === 1 ? one : many}`;
}

/** What a program calls: `20 kernels`, `1 kernel and 4 library calls`, `4 library calls`. */
export function kernels(generated: number, libraryCalls = 0): string {
  return [
    ...(generated > 0 || libraryCalls === 0 ? [count(generated, "kernel")] : []),
    ...(libraryCalls > 0 ? [count(libraryCalls, "library call")] : []),
  ].join(" and ");
}

/** Like `kernels`, for a list that has both. */
export function kernelsOf(list: readonly { language: string }[]): string {
  const calls = list.filter(({ language }) => language === "extern").length;
  return kernels(list.length - calls, calls);
}

/** A share with two digits: `33 %`, `3.2 %`, `100 %`; of a whole of nothing `0 %`. */
export function percent(part: number, whole = 1): string {
  return `${significant(whole === 0 ? 0 : (100 * part) / whole, 2)} %`;
}

/** This many significant digits, all digits before the point, and no zeros at the end. */
export function significant(value: number, digits = 3): string {
  if (value === 0) {
    return "0";
  }
  const exponent = Number(value.toExponential().split("e")[1]);
  const text = value.toFixed(Math.min(100, Math.max(0, digits - 1 - exponent)));
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}

/** The time of day, with the date where it is not today. */
export function clock(secondsSinceEpoch: number, now = new Date()): string {
  const when = new Date(secondsSinceEpoch * 1000);
  const time = when.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  return when.toDateString() === now.toDateString() ? time : `${when.toLocaleDateString()} ${time}`;
}

/** `183 nodes, 34 kB`; of a stage that is made on opening, only that. */
export function stageSize(stage: { bytes: number; nodes: number | null; made: boolean }): string {
  if (!stage.made) {
    return "made when it is opened";
  }
  const nodes = stage.nodes === null ? [] : [count(stage.nodes, "node")];
  return [...nodes, size(stage.bytes)].join(", ");
}

function scaled(value: number, units: readonly string[]): string {
  let rest = value;
  for (const unit of units.slice(0, -1)) {
    const text = significant(rest);
    if (Math.abs(Number(text)) < 1000) {
      return `${text} ${unit}`;
    }
    rest /= 1000;
  }
  return `${significant(rest)} ${units.at(-1) ?? ""}`;
}

function plural(noun: string): string {
  return noun + (/(s|x|ch|sh)$/.test(noun) ? "es" : "s");
}
