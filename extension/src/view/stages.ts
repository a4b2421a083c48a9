/** Documents and their stages, as the server knows them. */

import type { StageItem } from "../protocol";
import { nameOf, sameUri } from "./address";
import { report, request } from "./server";
import { busy } from "./widgets";

export interface Text {
  text: string;
  languageId: string;
  /** For a source file: whether it is as it was in the run. */
  current?: boolean;
}

/** A text that takes longer is one that has to be made first. */
const BUSY_MS = 700;

/** The run of a stage's document; undefined for a file. */
export function runOf(uri: string): string | undefined {
  return /^irscope:\/*([^/]+)\//.exec(uri)?.[1];
}

export function titleOf(stage: StageItem): string {
  const [frame, again] = stage.stage.split("/");
  const title = stage.title || stage.name;
  return frame !== undefined && again !== undefined ? `${title} · ${frame}/${again}` : title;
}

export async function textOf(run: string, uri: string): Promise<Text> {
  if (runOf(uri) === undefined) {
    return request<Text>("view/source", { run, uri });
  }
  let done: (() => void) | undefined;
  const timer = window.setTimeout(() => (done = busy(`A compiler makes ${nameOf(uri)}; this takes seconds.`)), BUSY_MS);
  try {
    return await request<Text>("irscope/document", { uri });
  } finally {
    window.clearTimeout(timer);
    done?.();
  }
}

/** A stage or a kernel by its id, or by its name. @throws Error where the run has none */
export async function stageOf(run: string, id: string): Promise<StageItem> {
  const { compiles } = await report(run);
  const stages = compiles.flatMap((compile) => compile.stages);
  const exact = stages.find(({ stage }) => stage === id) ?? stages.find(({ name }) => name === id);
  if (exact !== undefined) {
    return exact;
  }
  const kernel = compiles.flatMap(({ kernels }) => kernels).find(({ stage, name }) => stage === id || name === id);
  if (kernel === undefined) {
    throw new Error(`The run has no stage ${id}.`);
  }
  return stageOfKernel(run, kernel.stage, kernel.uri, kernel.language);
}

/** The stage of a document; one that is made of a kernel is known by its address. */
export async function stageOfUri(run: string, uri: string): Promise<StageItem> {
  const { compiles } = await report(run);
  const found = compiles.flatMap(({ stages }) => stages).find((stage) => sameUri(stage.uri, uri));
  const kernel = compiles.flatMap(({ kernels }) => kernels).find((each) => sameUri(each.uri, uri));
  const name = decodeURIComponent(uri.replace(/^irscope:\/*[^/]+\//, "")).replace(/\.[A-Za-z]+(?:\.txt)?$/, "");
  return found ?? stageOfKernel(run, kernel?.stage ?? name, uri, kernel?.language ?? "");
}

/** The stage of a compile that a stage is compared with, of its kind: an IR and code have no lines in common. */
export async function stageBefore(
  run: string,
  { stage, language, isGraph }: StageItem,
): Promise<StageItem | undefined> {
  const { compiles } = await report(run);
  const mine = compiles.find(({ stages }) => stages.some((each) => each.stage === stage))?.stages ?? [];
  const like = mine.filter((each) => each.language === language && each.isGraph === isGraph);
  return like[like.findIndex((each) => each.stage === stage) - 1];
}

function stageOfKernel(run: string, stage: string, uri: string, language: string): StageItem {
  const title = stage.slice(stage.lastIndexOf("/") + 1);
  const kind = { name: "", role: "kernel", part: "", group: "" } as const;
  return { run, stage, ...kind, title, language, bytes: 0, uri, isGraph: false, nodes: 0, made: true };
}

/** The newest run that has something in a file. */
export async function newestOf(uri: string): Promise<string | undefined> {
  return (await request<{ run: string | null }>("view/latest", { uri })).run ?? undefined;
}
