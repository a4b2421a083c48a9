/**
 * Colours of numbers, such that people with any kind of colour vision can tell them apart: Cividis (J. Nuñez et al., PLOS
 * ONE 13/7, 2018) for numbers on one side of zero; blue to orange through the background where both signs are there.
 */

export type Rgb = [red: number, green: number, blue: number];

export interface Scale {
  low: number;
  high: number;
  colour(value: number): Rgb;
  /** A CSS gradient from low to high. */
  gradient: string;
}

const CIVIDIS = ["#00224e", "#2a3f6d", "#575d6d", "#7c7b78", "#a59c74", "#d2c060", "#fee838"].map(parse);
const SIGNED: Record<"dark" | "light", Rgb[]> = {
  dark: ["#7cc8ff", "#2f7fc1", "#1b3b58", "#1c1c1c", "#5c3a12", "#c9741a", "#ffc078"].map(parse),
  light: ["#00305f", "#1a6fb5", "#a9cdea", "#ffffff", "#f6cfa0", "#c9690a", "#5c2a00"].map(parse),
};

/** NaN and infinities; each also has its own symbol in the picture and in the legend. */
export const MARKS: Record<"nan" | "posinf" | "neginf", { rgb: Rgb; sign: string; name: string }> = {
  nan: { rgb: parse("#d0218b"), sign: "✕", name: "NaN" },
  posinf: { rgb: parse("#8a3ffc"), sign: "▲", name: "+∞" },
  neginf: { rgb: parse("#8a3ffc"), sign: "▼", name: "−∞" },
};

/** Zero is in the middle if both signs occur, and always in a difference. */
export function scaleOf(values: (number | null)[], theme: "dark" | "light", isDifference = false): Scale {
  let low = Infinity;
  let high = -Infinity;
  for (const value of values) {
    if (value !== null) {
      low = Math.min(low, value);
      high = Math.max(high, value);
    }
  }
  if (low > high) {
    [low, high] = [0, 0];
  }
  const isSigned = (low < 0 && high > 0) || (isDifference && low < high);
  if (isSigned) {
    high = Math.max(Math.abs(low), Math.abs(high));
    low = -high;
  }
  const stops = isSigned ? SIGNED[theme] : CIVIDIS;
  const width = high - low;
  return {
    low,
    high,
    colour: (value) => between(stops, width > 0 && Number.isFinite(width) ? (value - low) / width : 0.5),
    gradient: `linear-gradient(to right, ${stops.map((rgb) => `rgb(${rgb.join(" ")})`).join(", ")})`,
  };
}

function between(stops: Rgb[], at: number): Rgb {
  const place = Math.min(Math.max(at, 0), 1) * (stops.length - 1);
  const first = Math.min(Math.floor(place), stops.length - 2);
  const a: Rgb = stops[first] ?? [0, 0, 0];
  const b: Rgb = stops[first + 1] ?? a;
  const mix = (one: number, other: number): number => Math.round(one + (other - one) * (place - first));
  return [mix(a[0], b[0]), mix(a[1], b[1]), mix(a[2], b[2])];
}

function parse(hex: string): Rgb {
  return [1, 3, 5].map((at) => Number.parseInt(hex.slice(at, at + 2), 16)) as Rgb;
}
