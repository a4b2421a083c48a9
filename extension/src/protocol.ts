/** The messages of docs/PROTOCOL.md, as the client uses them: only types, for the panels too. Positions are LSP's: 0-based lines, UTF-16 columns. */

export type Lane = "fast" | "deep";
export type OnSave = Lane | "off";

export interface RunItem {
  run: string;
  script: string;
  scriptUri: string;
  lane: Lane;
  /** Seconds since the epoch. */
  started: number;
  /** Null while the run goes on. */
  outcome: string | null;
  message: string;
  seconds: number;
  compiles: number;
  findings: number;
  kernels: number;
}

export interface RunTree {
  item: RunItem;
  torch: string | null;
  compiles: CompileItem[];
  gaps: CaptureGap[];
}

export interface CaptureGap {
  what: string;
  why: string;
}

export interface CompileItem {
  /** PyTorch's own name of it, for example `0/1`. */
  id: string;
  function: string;
  uri: string;
  line: number;
  outcome: string;
  restarts: number;
  graphOps: number;
  seconds: number;
  stages: StageItem[];
  kernels: KernelItem[];
}

export interface StageItem {
  run: string;
  stage: string;
  name: string;
  title: string;
  language: string;
  bytes: number;
  uri: string;
  isGraph: boolean;
  /** Of a graph or of Inductor's schedule. */
  nodes: number | null;
  /** Otherwise it is made when its document is first opened, which takes seconds. */
  made: boolean;
}

export interface CompileStageItem extends StageItem {
  compile: string;
  function: string;
}

export interface Place {
  uri: string;
  line: number;
}

export interface KernelItem {
  run: string;
  stage: string;
  name: string;
  language: string;
  compile: string;
  uri: string;
  /** Where the kernel starts in `uri`. */
  line: number;
  origins: Place[];
}

export interface GraphNode {
  /** The `id` attribute of the node's group in the SVG. */
  id: string;
  name: string;
  op: string;
  /** Shape, dtype, stride and device as printed. */
  detail: string;
  origin: Place | null;
  stageUri: string;
  stageLine: number;
}

export interface Graph {
  title: string;
  dot: string;
  nodes: GraphNode[];
}

export interface WorkerState {
  state: "stopped" | "starting" | "ready" | "running" | "crashed" | "refused";
  text: string;
  python: string;
  uri: string | null;
  run: string | null;
  /** What a run that goes on is doing, in few words: `compiling kernel 12 of 40`. */
  phase?: string | null;
}

export interface RunsChanged {
  run: string;
  uri: string;
  running: boolean;
}

export interface ScriptOutput {
  run: string;
  stream: "stdout" | "stderr";
  text: string;
}

export interface FileState {
  uri: string;
  /** `noEntry`: a library module that nothing is known to run; `stale`: edited since the run whose results are shown. */
  state: "none" | "noEntry" | "noRun" | "current" | "stale";
  /** What runs it, where that is another file. */
  entry: string | null;
  /** The limit that stopped the last run, if one did. */
  limit: "seconds" | "memory" | "output" | "steady-state" | null;
  text: string;
}

export interface Entries {
  /** The document's path in its workspace folder: its key in the setting `irscope.run.entryOf`. */
  file: string;
  entry: string | null;
  candidates: { entry: string; detail: string }[];
}

export interface RunResult {
  run: string | null;
  outcome: string;
  message: string;
}

export interface KernelsAt {
  run: string | null;
  kernels: KernelItem[];
  reason: string;
}

export interface StagesOf {
  run: string | null;
  stages: CompileStageItem[];
  reason: string;
}

export type RegionKind = "compiled" | "broken" | "skipped" | "kernel";

export interface Region {
  kind: RegionKind;
  line: number;
  /** The last line, which belongs to it. */
  endLine: number;
  text: string;
  kernels: string[];
}

export interface RegionsOf {
  run: string | null;
  stale: boolean;
  regions: Region[];
}

/** A line of a Python file that lines of stages came from. */
export interface LineKey extends Place {
  /** Its number in the run: the same in all documents, neighbours have different ones. */
  number: number;
}

export interface LinkedLines {
  run: string;
  keys: LineKey[];
  /** A line of the document and the indices of its keys; without any it called something that was compiled. */
  lines: number[][];
}

export interface Counterparts {
  places: { uri: string; lines: number[] }[];
}
