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

/** A graph as columns: entry `i` of each list is node `i`; numbers lead into the tables below, `-1` is *nothing*. */
export interface Graph {
  title: string;
  stageUri: string;
  /** The stage that it is compared with, where it is: then the nodes that are gone are among the nodes. */
  compareWith: string | null;
  beforeUri: string | null;
  versions: GraphVersion[];
  nodes: {
    name: string[];
    /** 0 placeholder, 1 get_attr, 2 call, 3 output. */
    kind: number[];
    op: number[];
    detail: number[];
    dtype: number[];
    device: number[];
    /** Of what it gives; null: unknown. */
    bytes: (number | null)[];
    /** Bytes that it reads and writes. */
    moved: (number | null)[];
    flops: (number | null)[];
    /** The least time on `timeOf`, in microseconds, by the roofline model. */
    micros: (number | null)[];
    /** -2: a pass or autograd made it, and nothing says for which module. */
    module: number[];
    /** 1: belongs to the backward of a joint graph. */
    backward: number[];
    /** In `stageUri`, or for a node that is gone in `beforeUri`. */
    line: number[];
    file: number[];
    originLine: number[];
    /** Only where it is compared: 0 as before, 1 added, 2 gone, 3 changed. */
    state?: number[];
    /** Of a schedule: further lines that it came from, as file, line, file, line, … */
    places?: number[][];
    /** Of a schedule: the lines of `stageUri` that tell of it, as first, last, first, last, … */
    spans?: number[][];
    /** Of a schedule: what was fused with others. */
    group?: number[];
  };
  /** From, to, from, to, … */
  edges: number[];
  ops: string[];
  details: string[];
  dtypes: string[];
  devices: string[];
  modules: { path: string[]; type: string }[];
  files: string[];
  timeOf: string;
  /** Of a schedule: the fused nodes, by name and kind. */
  groups?: { name: string; type: string }[];
  decisions?: FusionDecision[];
}

/** What Inductor decided on two nodes of its schedule, or on what they had been fused to by then; numbers of nodes. */
export interface FusionDecision {
  first: number[];
  second: number[];
  fused: boolean;
  /** `vertical`, `horizontal`, `template`. */
  kind: string;
  /** The score of what was fused, or the reason against it. */
  why: string;
}

/** A graph along the pipeline, or after a pass that changed it; `before` is the one to compare it with, if any. */
export interface GraphVersion {
  stage: string;
  title: string;
  pass: string;
  before: string;
  backward: boolean;
}

export interface GraphKernels {
  /** In the order in which they run; `call` counts the calls of one kernel. */
  calls: { name: string; call: number; place: Place | null }[];
  /** For each node of the stage the numbers of the calls that it is a part of. */
  nodes: number[][];
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
  /** Since the run before, in one line; nothing where nothing was, or where one of the two did not come to its end. */
  changed: { run: string; since: string; text: string } | null;
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
