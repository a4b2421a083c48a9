/** The ranks of a job: what is shown, in which order, with which text. */

import * as units from "../../units";
import type {
  RankBucket,
  RankCompile,
  RankItem,
  RankOverlap,
  RankRuntime,
  Ranks,
  RankStage,
  RankStatement,
  RankWait,
} from "../results";

/** What the numbers count: the ranks of a job, or the processes of a script. */
export function nounOf(ranks: RankItem[]): "rank" | "process" {
  return ranks.some(({ process }) => process !== "") ? "process" : "rank";
}

/** The heads of the table of ranks; *alike* only where a run stands for others. */
export function headsOf({ ranks }: Ranks): string[] {
  const first = nounOf(ranks) === "rank" ? ["Rank"] : ["Process", "Which"];
  const heads = [...first, "Outcome", "Compiles", "Kernels", "Collectives", "Sends", "Holds"];
  return ranks.some(({ alike }) => alike !== "") ? [...heads, "Alike"] : heads;
}

/** The cells of a rank, as many as there are heads. */
export function cellsOf(one: RankItem, heads: string[]): string[] {
  const sent = one.sentBytes === null ? "symbolic" : units.size(one.sentBytes);
  const memory = one.memory === null ? "–" : units.size(one.memory);
  const cells = [
    String(one.rank),
    ...(one.process === "" ? [] : [one.process]),
    one.outcome,
    String(one.compiles),
    String(one.kernels),
  ];
  return [...cells, String(one.collectives), sent, memory, one.alike === "" ? "–" : shortened(one.alike)].slice(
    0,
    heads.length,
  );
}

const MOST_SPANS = 8;

/** `0-6, 8-14` as it is, and only the first of many spans, with how many are left out. */
export function shortened(spans: string): string {
  const all = spans.split(", ");
  const more = all.length - MOST_SPANS;
  return more <= 1 ? spans : `${all.slice(0, MOST_SPANS).join(", ")}, and ${more} more`;
}

/** The ranks that can be put beside the first. */
export function choices({ ranks, first }: Ranks): { value: string; text: string }[] {
  const noun = nounOf(ranks);
  return ranks
    .filter(({ rank }) => rank !== first)
    .map((one) => ({ value: String(one.rank), text: nameOf(one, noun) }));
}

/** `rank 0`, or `rank 0 and 1,022 like it` where its run stands for others. */
export function nameOf({ rank, others }: RankItem, noun: string): string {
  return others === 0 ? `${noun} ${rank}` : `${noun} ${rank} and ${units.count(others)} like it`;
}

/** `2 of 5 compiles differ`. */
export function summaryOf({ compiles, other, divergences, world, ranks, first }: Ranks): string {
  if (other === null) {
    if (world > 1 && ranks.length === 1 && ranks[0]?.alike === "") {
      return `Rank ${first} alone was compiled`;
    }
    return divergences.length === 0 && world > 0 ? "All ranks compiled the same" : "";
  }
  const differing = compiles.filter(differs).length;
  return differing === 0
    ? `${units.count(compiles.length, "compile")}, all the same`
    : `${differing} of ${units.count(compiles.length, "compile")} ${differing === 1 ? "differs" : "differ"}`;
}

export function differs({ left, right, outcome, stages }: RankCompile): boolean {
  return left === "" || right === "" || outcome !== "" || stages.some(({ same }) => !same);
}

/** What is said about a compile beside its name. */
export function compileText(one: RankCompile, first: number, other: number): string {
  if (one.left === "" || one.right === "") {
    return `only on rank ${one.left === "" ? other : first}`;
  }
  return one.outcome !== "" ? one.outcome.replaceAll("-", " ").replace(", ", " ↔ ") : differs(one) ? "" : "the same";
}

export const SIGNS: Record<RankStatement["sign"], string> = {
  "": " ",
  changed: "~",
  left: "−",
  right: "+",
  skipped: "⋮",
};

/** What a row is, for a screen reader. */
export function wordOf({ sign, left }: RankStatement, first: number, other: number): string {
  switch (sign) {
    case "changed":
      return "differs";
    case "left":
      return `only on rank ${first}`;
    case "right":
      return `only on rank ${other}`;
    case "skipped":
      return `${units.count(Number(left), "statement")} that ${left === "1" ? "is" : "are"} the same`;
    case "":
      return "the same";
  }
}

/** `12 statements differ`. */
export function stageText({ same, rows, more }: RankStage): string {
  if (same) {
    return "the same";
  }
  const differing = rows.filter(({ sign }) => sign !== "" && sign !== "skipped").length;
  return `${units.count(differing, "statement")}${more > 0 ? " or more" : ""} ${differing === 1 && more === 0 ? "differs" : "differ"}`;
}

export const OVERLAP_HEADS = ["Collective", "Calls", "Group", "Sends", "Beside it"];

/** The cells of a row of collectives after its first one, which has links. */
export function overlapCells({ calls, ranks, sentBytes, beside }: RankOverlap): string[] {
  const sent = sentBytes === null ? "symbolic" : units.size(sentBytes);
  return [String(calls), ranks === null ? "–" : units.count(ranks, "rank"), sent, beside];
}

export const BUCKET_HEADS = ["Bucket", "Part", "Parameters", "Sends", "Beside it"];

/** The cells of a bucket after its first one. */
export function bucketCells({ part, parameters, bytes, beside }: RankBucket): string[] {
  return [part, String(parameters), bytes === null ? "symbolic" : units.size(bytes), beside];
}

export const RUNTIME_HEADS = ["Collective", "Issued by", "For", "Calls", "Bytes", "Beside it"];

/** The cells of a collective of the runtime after its first one, which has a link. */
export function runtimeCells({ issuer, module, calls, bytes, beside }: RankRuntime): string[] {
  return [issuer, module === "" ? "–" : module, String(calls), bytes === null ? "symbolic" : units.size(bytes), beside];
}

/** Before the link to the line that the last rank was in. */
export function waitText({ calls, seconds, longest, late, lateCalls, typical, before }: RankWait): string {
  const who = `rank ${late} was the last to arrive, ${lateCalls} of ${units.count(calls, "time")}`;
  const much = `typically ${units.duration(typical)}, at most ${units.duration(longest)} in a call`;
  return `ranks waited ${units.duration(seconds)}, ${much}; ${who}${before.uri === "" ? "" : ", and was in"}`;
}
