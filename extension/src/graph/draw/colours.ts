/** What the colour of a node says. The colours and families are those of `irscope graph`, too: see looks.ts. */

import * as units from "../../units";
import {
  CATEGORIES,
  CHANGES,
  CONSTANT,
  FAMILIES,
  INPUT,
  OTHERS,
  PARAMETER,
  SCALE,
  type Lightness,
} from "../model/looks";
import { ADDED, CALL, CHANGED, GET_ATTR, GONE, OUTPUT, type Model } from "../model/model";

export type { Lightness } from "../model/looks";

export type ColourMode = "operation" | "dtype" | "device" | "bytes" | "time" | "kernel" | "change" | "none";

export interface Swatch {
  colour: string;
  text: string;
  /** Shown beside the colour, where a letter fits. */
  sign?: string;
}

export interface Colouring {
  mode: ColourMode;
  /** Which of the swatches a node has; -1: none. */
  of(node: number): number;
  swatches: Swatch[];
  /** What a node's second line says in this mode. */
  text(node: number): string;
  /** The swatches are the steps of a scale. */
  isScale: boolean;
  /** Shown above the legend if the colours need a word. */
  heading?: string;
}

const PATTERNS = FAMILIES.map(({ pattern }) => (pattern === "" ? undefined : new RegExp(pattern, "i")));
const IS_PARAMETER = new RegExp(PARAMETER);

export function colouring(model: Model, mode: ColourMode, lightness: Lightness): Colouring {
  const palette = CATEGORIES[lightness];
  const base = { mode, isScale: false, text: (node: number) => model.shape(node) };
  switch (mode) {
    case "operation":
      return { ...base, ...byOperation(model, palette) };
    case "dtype":
      return {
        ...base,
        ...categories(model.graph.dtypes, palette, lightness),
        of: (node) => model.graph.nodes.dtype[node] ?? -1,
      };
    case "device":
      return {
        ...base,
        ...categories(model.graph.devices, palette, lightness),
        of: (node) => model.graph.nodes.device[node] ?? -1,
        text: (node) => model.device(node) || model.shape(node),
      };
    case "kernel":
      return { ...base, ...byKernel(model, palette, lightness) };
    case "bytes":
      return scale(model, mode, lightness, (node) => model.graph.nodes.bytes[node] ?? undefined, units.size);
    case "time":
      return {
        ...scale(
          model,
          mode,
          lightness,
          (node) => model.micros(node),
          (value) => units.duration(value / 1e6),
        ),
        heading: estimateHeading(model),
      };
    case "change": {
      const { added, gone, changed } = CHANGES[lightness];
      const swatches = [
        { text: "added", colour: added, sign: "+" },
        { text: "removed", colour: gone, sign: "−" },
        { text: "changed", colour: changed, sign: "~" },
      ];
      return { ...base, swatches, of: (node) => [-1, 0, 1, 2][model.state(node)] ?? -1 };
    }
    default:
      return { ...base, swatches: [], of: () => -1 };
  }
}

/** A colour for each family of operations. */
function byOperation(
  model: Model,
  palette: readonly string[],
): Partial<Colouring> & Pick<Colouring, "swatches" | "of"> {
  const swatches = FAMILIES.map(({ name, colour }) => ({ text: name, colour: palette[colour] ?? "" }));
  const ofOp = model.graph.ops.map((op) => {
    const family = PATTERNS.findIndex((pattern) => pattern?.test(op) === true);
    return family < 0 ? OTHERS : family;
  });
  const kinds = (node: number): number => {
    switch (model.kind(node)) {
      case CALL:
        return ofOp[model.graph.nodes.op[node] ?? -1] ?? -1;
      case GET_ATTR:
        return CONSTANT;
      case OUTPUT:
        return -1;
      default:
        return IS_PARAMETER.test(model.name(node)) ? CONSTANT : INPUT;
    }
  };
  return { swatches, of: kinds };
}

/** A colour for each kernel. */
function byKernel(
  model: Model,
  palette: readonly string[],
  lightness: Lightness,
): Partial<Colouring> & Pick<Colouring, "swatches" | "of"> {
  const of = (node: number): string => model.kernelCalls?.[model.kernels(node)[0] ?? -1]?.name ?? "";
  const counts = new Map((model.kernelCalls ?? []).map(({ name }) => [name, 0]));
  for (let node = 0; node < model.count; node += 1) {
    counts.set(of(node), (counts.get(of(node)) ?? 0) + 1);
  }
  counts.delete("");
  // The names with most nodes have the colours that are told apart best.
  const names = [...counts].sort((left, right) => right[1] - left[1]).map(([name]) => name);
  const numbers = new Map(names.map((name, at) => [name, at]));
  return {
    ...categories(names, palette, lightness),
    of: (node) => numbers.get(of(node)) ?? -1,
    text: (node) => {
      if (model.kind(node) !== CALL) {
        return model.shape(node);
      }
      const name = of(node).replace(/^(?:(?:cpp|triton_[a-z]+)_fused_+|extern_kernels\.)/, "");
      return name || (model.kernelCalls === undefined ? "…" : "no kernel");
    },
  };
}

/** A colour for each name: no two have the same, though beyond those of the palette some are hard to tell apart. */
function categories(
  names: readonly string[],
  palette: readonly string[],
  lightness: Lightness,
): { swatches: Swatch[] } {
  return {
    swatches: names.map((text, at) => ({ text, colour: palette[at] ?? further(at - palette.length, lightness) })),
  };
}

/** Hues by the golden angle, so that those that follow each other are far apart. */
function further(at: number, lightness: Lightness): string {
  const hue = (at * 137.508 + 75) % 360;
  const [dim, bright] = lightness === "dark" ? [0.58, 0.74] : [0.3, 0.44];
  const level = at % 2 === 0 ? bright : dim;
  const strength = 0.55 * Math.min(level, 1 - level);
  const channel = (offset: number): string => {
    const k = (offset + hue / 30) % 12;
    const value = level - strength * Math.max(-1, Math.min(k - 3, 9 - k, 1));
    return Math.round(value * 255)
      .toString(16)
      .padStart(2, "0");
  };
  return `#${channel(0)}${channel(8)}${channel(4)}`;
}

/** What ran is said where it is another device than the one that times are estimated for. */
function estimateHeading({ target, graph: { devices, gpu, ranOn } }: Model): string {
  const named = devices.map((device) => (device.startsWith("cuda") ? `${device} (${gpu || "name unknown"})` : device));
  const ran = named.length === 0 ? "" : `This graph ran on ${named.join(", ")}.`;
  if (target !== undefined) {
    return `Lower bound on ${target.name}. ${ran}`.trim();
  }
  const unknown = gpu && !ranOn ? " The peak rates of this GPU are not known here." : "";
  return `${ran}${unknown} Choose a device to estimate times for${devices.includes("cpu") ? "; a profile of the script measures this CPU" : ""}.`.trim();
}

/** Five steps from the least to the most, by orders of magnitude, as sizes and times differ by those. */
function scale(
  model: Model,
  mode: ColourMode,
  lightness: Lightness,
  value: (node: number) => number | undefined,
  words: (value: number) => string,
): Colouring {
  let [least, most] = [Number.POSITIVE_INFINITY, 0];
  for (let node = 0; node < model.count; node += 1) {
    const mine = value(node) ?? 0;
    if (mine > 0) {
      [least, most] = [Math.min(least, mine), Math.max(most, mine)];
    }
  }
  const steps = SCALE[lightness];
  const ratio = most > least ? (most / least) ** (1 / steps.length) : 1;
  const bounds = steps.map((_, at) => (at === steps.length - 1 ? most : least * ratio ** (at + 1)));
  return {
    mode,
    isScale: true,
    swatches: most === 0 ? [] : steps.map((colour, at) => ({ colour, text: `≤ ${words(bounds[at] ?? most)}` })),
    of: (node) => {
      const mine = value(node) ?? 0;
      return mine <= 0
        ? -1
        : Math.max(
            0,
            bounds.findIndex((bound) => mine <= bound * (1 + 1e-9)),
          );
    },
    text: (node) => {
      const mine = value(node);
      return mine === undefined ? model.shape(node) : mine === 0 ? "0" : words(mine);
    },
  };
}

/** How many nodes of a list have each swatch. */
export function composition(colours: Colouring, nodes: Iterable<number>): number[] {
  const counts = colours.swatches.map(() => 0);
  for (const node of nodes) {
    const at = colours.of(node);
    if (at >= 0) {
      counts[at] = (counts[at] ?? 0) + 1;
    }
  }
  return counts;
}

export function changeWords(states: { added: number; gone: number; changed: number }): string {
  return [
    states.added > 0 ? `+${units.count(states.added)}` : "",
    states.gone > 0 ? `−${units.count(states.gone)}` : "",
    states.changed > 0 ? `~${units.count(states.changed)}` : "",
  ]
    .filter((part) => part !== "")
    .join(" ");
}

export function statesOf(model: Model, nodes: Iterable<number>): { added: number; gone: number; changed: number } {
  const found = { added: 0, gone: 0, changed: 0 };
  for (const node of nodes) {
    const state = model.state(node);
    found.added += Number(state === ADDED);
    found.gone += Number(state === GONE);
    found.changed += Number(state === CHANGED);
  }
  return found;
}
