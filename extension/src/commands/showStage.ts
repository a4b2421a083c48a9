/** IRScope: Show Stage… and Show FX Graph — a choice of the stages below their compile and the part of the compiler that made them. */

import * as path from "node:path";
import * as vscode from "vscode";
import { partsOf, sameUri, wireUri } from "../host/documents";
import * as units from "../units";
import { visible } from "../panels/visible";
import { withoutIcons } from "../host/plainText";
import type { CompileStageItem, StageItem, StagesOf } from "../protocol";
import { showWithLog } from "../host/problems";
import { StagesOfRequest } from "../host/requests";
import { cursorPlace, landings, linesIn } from "./landing";
import { activePythonFile, requireTrust, withRunProgress, type Services } from "./context";
import { choosePipeline } from "./selectPipeline";
import { newList } from "../host/lists";

/**
 * Shows a stage that the user chooses, beside the source and in place of the stage that is there.
 *
 * @param asNew In an editor group of its own, to the right of the stages that are shown: stages of two pipelines side by side.
 */
export async function showStage(services: Services, asNew = false, pipeline?: string): Promise<void> {
  const place = cursorPlace();
  const found = await stagesOfActiveEditor(services, pipeline);
  if (found === undefined) {
    return;
  }
  const source = sourceOfActiveEditor();
  const title = asNew ? vscode.l10n.t("Show Stage to the Side") : vscode.l10n.t("Show Stage");
  const { stage, toSide } = await pickStage(found.stages, title, vscode.l10n.t("Which stage?"), {
    pipelines: source !== undefined,
    side: !asNew,
  });
  if (stage === ANOTHER_PIPELINE) {
    const chosen = await choosePipeline(services, source);
    if (chosen !== undefined) {
      await showStage(services, asNew || toSide, chosen);
    }
  } else if (stage !== undefined) {
    const [line] = await linesIn(services, stage, place);
    const own = asNew || toSide ? { column: columnToTheSide(), preview: false } : { column: vscode.ViewColumn.Beside };
    await services.documents.show(stage.uri, { ...own, ...(line === undefined ? {} : { line }) });
  }
}

/** To the right of all stages that are shown; if none is, beside what is active. */
function columnToTheSide(): vscode.ViewColumn {
  const shown = vscode.window.visibleTextEditors.filter(({ document }) => partsOf(document.uri) !== undefined);
  const columns = shown.flatMap(({ viewColumn }) => (viewColumn === undefined ? [] : [viewColumn]));
  return columns.length === 0 ? vscode.ViewColumn.Beside : Math.min(Math.max(...columns) + 1, vscode.ViewColumn.Nine);
}

export async function showGraph(services: Services): Promise<void> {
  const place = cursorPlace();
  const found = await stagesOfActiveEditor(services);
  if (found === undefined) {
    return;
  }
  const open = vscode.window.activeTextEditor?.document.uri.toString() ?? "";
  const shown = found.stages.find((stage) => stage.isGraph && sameUri(stage.uri, open));
  const all = found.stages.filter(({ role }) => role === "graph");
  const graphs = likelyFirst(all, await landings(services, all, place));
  const pick = (): Promise<Choice> => pickStage(graphs, vscode.l10n.t("Show FX Graph"), vscode.l10n.t("Which graph?"));
  const stage = shown ?? (graphs.length === 1 ? graphs[0] : (await pick()).stage);
  if (stage !== undefined && stage !== ANOTHER_PIPELINE) {
    const lines = await linesIn(services, stage, place);
    services.graphs.show({ run: stage.run, stage: stage.stage, title: stage.title }, { uri: stage.uri, lines });
  } else if (graphs.length === 0) {
    void showWithLog("information", vscode.l10n.t("No graph was captured in this run: the script compiled nothing."));
  }
}

/** The graphs of compiles that have the line at the cursor come first, and of these the compile with the largest one. */
function likelyFirst(graphs: CompileStageItem[], landed: { stage: CompileStageItem }[]): CompileStageItem[] {
  const most = new Map<string, number>();
  for (const { compile, nodes } of graphs) {
    most.set(compile, Math.max(most.get(compile) ?? 0, nodes ?? 0));
  }
  const there = new Set(landed.map(({ stage }) => stage.compile));
  const rank = ({ compile }: CompileStageItem): number => (most.get(compile) ?? 0) + (there.has(compile) ? 1e9 : 0);
  return [...graphs].sort((a, b) => rank(b) - rank(a));
}

/** What autotuning tried: at the operators of the line at the cursor; if it has none, of a compile that is chosen. */
export async function showAutotuning(services: Services): Promise<void> {
  const place = cursorPlace();
  const found = await stagesOfActiveEditor(services);
  if (found === undefined) {
    return;
  }
  const tuned = found.stages.filter(({ role }) => role === "tuning");
  const landed = await landings(services, tuned, place);
  const mine = landed.length === 0 ? tuned : landed.map(({ stage }) => stage);
  const [only, another] = mine;
  const title = vscode.l10n.t("Show Autotuning");
  const pick = (): Promise<Choice> => pickStage(mine, title, vscode.l10n.t("Which compile?"));
  const stage = another === undefined ? only : (await pick()).stage;
  if (stage !== undefined && stage !== ANOTHER_PIPELINE) {
    const line = landed.find((one) => one.stage === stage)?.lines[0];
    const column = vscode.ViewColumn.Beside;
    await services.documents.show(stage.uri, { column, ...(line === undefined ? {} : { line }) });
  } else if (tuned.length === 0) {
    void showWithLog(
      "information",
      vscode.l10n.t("Nothing was autotuned in this run. Compile with mode='max-autotune' to have operators tuned."),
    );
  }
}

/** The stages of the run that the active `irscope:` document belongs to, else of the active Python file's newest run. */
async function stagesOfActiveEditor(services: Services, pipeline?: string): Promise<StagesOf | undefined> {
  const document = vscode.window.activeTextEditor?.document;
  const parts = document === undefined ? undefined : partsOf(document.uri);
  if (document !== undefined && parts !== undefined) {
    return services.server.request(StagesOfRequest, { uri: wireUri(document.uri) });
  }
  const editor = activePythonFile();
  if (editor === undefined) {
    return undefined;
  }
  const { uri } = editor.document;
  const run = await requireTrust();
  const found = await withRunProgress(
    services,
    vscode.l10n.t("stages of {0}", path.basename(uri.fsPath)),
    uri,
    (token) =>
      services.server.request(
        StagesOfRequest,
        { uri: uri.toString(), run, ...(pipeline === undefined ? {} : { pipeline }) },
        token,
      ),
  );
  if (found.stages.length === 0) {
    void showWithLog("information", found.reason || vscode.l10n.t("No stage was captured for this file."));
    return undefined;
  }
  return found;
}

/** The Python file whose stages are asked for; undefined for the document of a stage, which has a run and so a pipeline. */
function sourceOfActiveEditor(): vscode.Uri | undefined {
  const document = vscode.window.activeTextEditor?.document;
  return document !== undefined && partsOf(document.uri) === undefined ? document.uri : undefined;
}

/** What is chosen in place of a stage. */
const ANOTHER_PIPELINE = "another-pipeline";
type Picked = StageItem | typeof ANOTHER_PIPELINE | undefined;
type StageChoice = vscode.QuickPickItem & { stage?: Picked };
interface Choice {
  stage: Picked;
  /** By the item's button. */
  toSide: boolean;
}

const TO_SIDE: vscode.QuickInputButton = {
  iconPath: new vscode.ThemeIcon("split-horizontal"),
  tooltip: vscode.l10n.t("Show to the Side"),
};

/** @param offers What else the list has: another pipeline, and a button that opens an item to the side. */
async function pickStage(
  stages: CompileStageItem[],
  title: string,
  placeholder: string,
  offers: { pipelines?: boolean; side?: boolean } = {},
): Promise<Choice> {
  const buttons = offers.side === true ? [TO_SIDE] : [];
  const choices: StageChoice[] = [];
  let heading: string | undefined;
  for (const stage of stages) {
    const mine = visible(`${stage.compile} ${stage.function} · ${stage.group}`);
    if (mine !== heading) {
      heading = mine;
      choices.push({ label: mine, kind: vscode.QuickPickItemKind.Separator });
    }
    choices.push({
      stage,
      label: `$(${stage.isGraph ? "type-hierarchy-sub" : "file-code"}) ${withoutIcons(stage.title || stage.name)}`,
      description: units.stageSize(stage),
      buttons,
    });
  }
  if (offers.pipelines === true) {
    const label = `$(git-merge) ${vscode.l10n.t("Another Pipeline…")}`;
    choices.push({ label: "", kind: vscode.QuickPickItemKind.Separator }, { stage: ANOTHER_PIPELINE, label, buttons });
  }
  return chosenOf(choices, title, placeholder);
}

async function chosenOf(items: StageChoice[], title: string, placeholder: string): Promise<Choice> {
  const list = newList<StageChoice>();
  Object.assign(list, { items, title, placeholder, matchOnDescription: true });
  const chosen = await new Promise<Choice>((resolve) => {
    list.onDidAccept(() => resolve({ stage: list.activeItems[0]?.stage, toSide: false }));
    list.onDidTriggerItemButton(({ item }) => resolve({ stage: item.stage, toSide: true }));
    list.onDidHide(() => resolve({ stage: undefined, toSide: false }));
    list.show();
  });
  list.dispose();
  return chosen;
}
