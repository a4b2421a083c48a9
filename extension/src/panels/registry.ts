/**
 * The tabs of the dock, in their order: declared here, and each a folder beside this file with `view.ts`.
 * Titles, tabs, rows of the page of `irscope view` and what a tab may ask the server for are derived from this.
 */

export interface Declared {
  title: string;
  /** Its requests, without `irscope/`. */
  requests: readonly string[];
  /** What the page of `irscope view` lists it below. */
  about: "run" | "compile";
  /** Only the deep lane captures it: of a script that ran in the fast lane since, the last deep run is shown. */
  isDeep: boolean;
  /** Strokes of its icon, as an SVG path in a square of 16. */
  icon: string;
}

export const REGISTRY = {
  summary: {
    title: "Summary",
    requests: ["summary"],
    about: "run",
    isDeep: true,
    icon: "M2.5 2.5h11v11h-11zM5 5.5h6M5 8h6M5 10.5h3.5",
  },
  strip: {
    title: "Pipeline",
    requests: ["pipeline", "step"],
    about: "compile",
    isDeep: true,
    icon: "M1.5 6h3.5v4H1.5zM6.3 6h3.5v4H6.3zM11 6h3.5v4H11zM5 8h1.3M9.8 8H11",
  },
  findings: {
    title: "Findings",
    requests: ["findings"],
    about: "run",
    isDeep: false,
    icon: "M8 2 14.5 13.5h-13zM8 6.5v3.5M8 11.6v.6",
  },
  time: {
    title: "Compile Time",
    requests: ["phases"],
    about: "run",
    isDeep: true,
    icon: "M2 3.5h12M2 8h7M4.5 12.5H14",
  },
  measured: {
    title: "Time",
    requests: ["measured"],
    about: "run",
    isDeep: true,
    icon: "M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11zM8 5v3.2l2.2 1.6",
  },
  memory: {
    title: "Memory",
    requests: ["memory", "memoryPlaces"],
    about: "compile",
    isDeep: true,
    icon: "M2 13V8.5h3V13M5 13V4h3v9M8 13V6.5h3V13M11 13v-3h3v3M1.5 13.5h13",
  },
  changes: {
    title: "Changes",
    requests: ["changes"],
    about: "run",
    isDeep: false,
    icon: "M8 2.5v5M5.5 5h5M5.5 12h5",
  },
  comparison: {
    title: "Comparison",
    requests: ["comparison"],
    about: "run",
    isDeep: true,
    icon: "M2.5 3h11v10h-11zM2.5 6.3h11M6.2 3v10M9.9 3v10",
  },
  ranks: {
    title: "Ranks",
    requests: ["ranks"],
    about: "run",
    isDeep: false,
    icon: "M2 3h5v4H2zM9 3h5v4H9zM2 9.5h5v4H2zM9 9.5h5v4H9z",
  },
} as const satisfies Record<string, Declared>;

export type Tab = keyof typeof REGISTRY;

export const TABS = Object.keys(REGISTRY) as Tab[];

/** The tabs that the page of `irscope view` lists below a run, or below a compile. */
export function tabsAbout(what: Declared["about"]): Tab[] {
  return TABS.filter((tab) => REGISTRY[tab].about === what);
}
