/** What the server answers to the panels' requests; see docs/PROTOCOL.md. Lines are 0-based, times are seconds. */

import type { Place, RunItem } from "../protocol";

export interface SubjectOf {
  run: RunItem | null;
  deep: RunItem | null;
  compile: string | null;
  stage: string | null;
}

export interface Pipeline {
  run: string;
  compile: string | null;
  compiles: CompileChoice[];
  stages: PipelineStage[];
  kernels: { language: string; count: number }[];
  reason: string;
}

export interface CompileChoice {
  id: string;
  function: string;
  place: Place;
  outcome: string;
  graphOps: number;
  seconds: number;
}

export type Track = "shared" | "forward" | "backward";

export interface PipelineStage {
  stage: string;
  name: string;
  title: string;
  short: string;
  track: Track;
  column: number;
  isGraph: boolean;
  bytes: number;
  count: number | null;
  unit: string;
  seconds: number | null;
  entries: StageEntry[];
  beside: StageEntry[];
  ops: { name: string; count: number; line: number }[];
  passes: PassItem[];
  quiet: { name: string; seconds: number; count: number }[];
}

export interface StageEntry {
  stage: string;
  title: string;
  language: string;
  bytes: number;
  uri: string;
}

export interface PassItem {
  name: string;
  subgraph: string;
  seconds: number;
  added: number;
  removed: number;
  changed: number;
  moved: boolean;
  namesAdded: string[];
  namesRemoved: string[];
  namesChanged: string[];
  stage: string;
  uri: string;
  before: string | null;
}

export interface Step {
  uri: string | null;
  line: number;
  stage: string | null;
  exact: boolean;
  reason: string;
}

export interface Findings {
  run: string;
  lane: string;
  groups: FindingGroup[];
  seconds: number;
  reason: string;
}

export interface FindingGroup {
  kind: string;
  code: string;
  title: string;
  severity: "error" | "warning" | "information" | "hint";
  message: string;
  explanation: string;
  hints: string[];
  link: string | null;
  count: number;
  seconds: number;
  graphs: number;
  fixes: number;
  places: FindingPlace[];
}

export interface FindingPlace {
  uri: string;
  line: number;
  code: string;
  message: string;
  count: number;
  compiles: string[];
  seconds: number;
  graphs: number;
  fixes: number;
  hidden: "" | "ignored" | "baseline" | "off";
}

export interface Phases {
  run: string;
  seconds: number;
  names: string[];
  labels: string[];
  compiles: CompileTimes[];
  reason: string;
}

/** Name (an index), parent (-1: none), start, seconds, own seconds, track. */
export type PhaseRow = [number, number, number, number, number, number];

export interface CompileTimes {
  id: string;
  function: string;
  place: Place;
  seconds: number;
  phases: PhaseRow[] | null;
}

export interface Memory {
  run: string;
  compile: string | null;
  function: string;
  compiles: CompileChoice[];
  plans: MemoryPlan[];
  reason: string;
}

export interface MemoryPlan {
  stage: string;
  title: string;
  uri: string;
  steps: string[];
  live: number[];
  peak: number;
  inputs: number;
  buffers: MemoryBuffer[];
}

export type Category = "returned" | "kept" | "temporary" | "borrowed";

export interface MemoryBuffer {
  name: string;
  bytes: number;
  dtype: string;
  category: Category;
  how: string;
  of: string;
  first: number;
  last: number;
  kernel: string;
  module: string;
  line: number;
  places: Place[];
}

export interface Changes {
  run: RunItem | null;
  since: RunItem | null;
  older: RunItem[];
  summary: string;
  findingsNew: ChangedFinding[];
  findingsGone: ChangedFinding[];
  findingsKept: number;
  compilesNew: ChangedCompile[];
  compilesGone: ChangedCompile[];
  compilesChanged: ChangedCompile[];
  compilesSame: number;
  kernelsNew: ChangedKernel[];
  kernelsGone: ChangedKernel[];
  kernelsChanged: ChangedKernel[];
  kernelsKept: number;
  compileSeconds: [number, number] | null;
  seconds: [number, number] | null;
  reason: string;
}

export interface ChangedFinding {
  kind: string;
  code: string;
  title: string;
  severity: string;
  message: string;
  place: Place;
  seconds: number;
}

export interface ChangedCompile {
  id: string;
  function: string;
  place: Place;
  what: string;
  stages: { title: string; left: string; right: string }[];
}

export interface ChangedKernel {
  name: string;
  language: string;
  compile: string;
  uri: string;
  places: Place[];
  other: string;
}
