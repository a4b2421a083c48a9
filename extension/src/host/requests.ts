/** The custom requests and notifications of docs/PROTOCOL.md, with their types. */

import { NotificationType, RequestType } from "vscode-languageclient/node";
import type { Step, SubjectOf } from "../panels/results";
import type {
  CompareResult,
  OpenTraceResult,
  ProfileResult,
  Counterparts,
  Entries,
  FileState,
  KernelsAt,
  Lane,
  LinkedLines,
  Pipelines,
  RegionsOf,
  RunItem,
  RunResult,
  RunsChanged,
  RunTree,
  ScriptOutput,
  StagesOf,
  WorkerState,
} from "../protocol";

export const RunsRequest = new RequestType<
  { uri?: string; limit?: number; eachPipeline?: boolean },
  { runs: RunItem[] },
  void
>("irscope/runs");
export const PipelinesRequest = new RequestType<{ uri?: string; trials?: boolean; only?: string[] }, Pipelines, void>(
  "irscope/pipelines",
);
export const ReportRequest = new RequestType<{ run: string }, RunTree, void>("irscope/report");
export const RunRequest = new RequestType<
  { uri: string; lane: Lane; entry?: string; pipeline?: string },
  RunResult,
  void
>("irscope/run");
export const CheckRequest = new RequestType<
  { uri: string; run?: string },
  { run: string | null; message: string },
  void
>("irscope/checkWithoutCompile");
export const OpenTraceRequest = new RequestType<{ uri: string; folder: string; run?: string }, OpenTraceResult, void>(
  "irscope/openTrace",
);
export const CompareRequest = new RequestType<{ uri: string; pipelines: string[] }, CompareResult, void>(
  "irscope/compare",
);
export const ProfileRequest = new RequestType<
  { uri: string; calls?: number; against?: string[]; withoutBreaks?: boolean; memory?: boolean },
  ProfileResult,
  void
>("irscope/profile");
export const EntriesRequest = new RequestType<{ uri: string }, Entries, void>("irscope/entries");
export const CancelRequest = new RequestType<{ uri: string }, { cancelled: boolean }, void>("irscope/cancel");
export const KernelsAtRequest = new RequestType<{ uri: string; line: number; run?: boolean }, KernelsAt, void>(
  "irscope/kernelsAt",
);
export const StagesOfRequest = new RequestType<{ uri: string; run?: boolean; pipeline?: string }, StagesOf, void>(
  "irscope/stagesOf",
);
export const RegionsRequest = new RequestType<{ uri: string }, RegionsOf, void>("irscope/regions");
export const DocumentRequest = new RequestType<{ uri: string }, { text: string; languageId: string }, void>(
  "irscope/document",
);
export const SubjectOfRequest = new RequestType<{ uri: string; line?: number }, SubjectOf, void>("irscope/subjectOf");
export const StepRequest = new RequestType<{ run: string; stage: string; line: number; by: 1 | -1 }, Step, void>(
  "irscope/step",
);

export const LinkedLinesRequest = new RequestType<{ uri: string; run: string; beside?: string[] }, LinkedLines, void>(
  "irscope/linkedLines",
);
export const CounterpartsRequest = new RequestType<
  { uri: string; line: number; run: string; among: string[] },
  Counterparts,
  void
>("irscope/counterparts");

export const TrustedNotification = new NotificationType<Record<string, never>>("irscope/trusted");
export const WorkerNotification = new NotificationType<WorkerState>("irscope/worker");
export const RunsChangedNotification = new NotificationType<RunsChanged>("irscope/runsChanged");
export const FileStateNotification = new NotificationType<FileState>("irscope/fileState");
export const OutputNotification = new NotificationType<ScriptOutput>("irscope/output");
