/** IRScope: Select Pipeline… — which pipeline deep runs go through, kept in the settings, and how to install what is missing. */

import * as vscode from "vscode";
import { withoutIcons } from "../host/plainText";
import { showWithLog } from "../host/problems";
import { PipelinesRequest } from "../host/requests";
import { messageOf } from "../host/server";
import { SECTION } from "../host/settings";
import { visible } from "../panels/visible";
import type { PipelineItem, Pipelines, PipelineStatus } from "../protocol";
import { requireTrust, type Services } from "./context";
import { runFile } from "./run";
import { newList as emptyList } from "../host/lists";

export const SETTING = "pipeline";

interface Choice extends vscode.QuickPickItem {
  pipeline?: PipelineItem;
}

const COPY: vscode.QuickInputButton = {
  iconPath: new vscode.ThemeIcon("copy"),
  tooltip: vscode.l10n.t("Copy the Command That Installs It"),
};

const STATES: Record<PipelineStatus, { icon: string; text: string }> = {
  available: { icon: "pass", text: vscode.l10n.t("available") },
  untried: { icon: "loading~spin", text: vscode.l10n.t("being tried") },
  missing: { icon: "cloud-download", text: vscode.l10n.t("not installed") },
  unsupported: { icon: "circle-slash", text: vscode.l10n.t("not supported") },
};

/** A trial was made and did not end. */
const UNKNOWN = { icon: "question", text: vscode.l10n.t("not known") };

function isUnknown({ status, why }: PipelineItem): boolean {
  return status === "untried" && why !== "";
}

/** The command: selects a pipeline and offers to analyze the active file with it. */
export async function selectPipeline(services: Services): Promise<void> {
  const document = vscode.window.activeTextEditor?.document;
  const uri = document?.languageId === "python" && document.uri.scheme === "file" ? document.uri : undefined;
  const chosen = await choosePipeline(services, uri);
  if (chosen === undefined || uri === undefined) {
    return;
  }
  const analyze = vscode.l10n.t("Analyze This File");
  const text = vscode.l10n.t("Pipeline of deep runs: {0}", visible(chosen));
  void showWithLog("information", text, { [analyze]: () => runFile(services, uri, "deep", { pipeline: chosen }) });
}

/** Lets the user choose, and writes the setting. Returns the name; undefined if nothing was chosen. */
export async function choosePipeline(services: Services, uri: vscode.Uri | undefined): Promise<string | undefined> {
  if (!(await requireTrust())) {
    return undefined;
  }
  const chosen = await pickPipeline(services, uri);
  if (chosen === undefined) {
    return undefined;
  }
  if (chosen.status === "missing" || chosen.status === "unsupported") {
    await tellWhyNot(chosen);
    return undefined;
  }
  const settings = vscode.workspace.getConfiguration(SECTION, uri ?? null);
  const { Global, Workspace } = vscode.ConfigurationTarget;
  await settings.update(SETTING, chosen.name, vscode.workspace.workspaceFolders === undefined ? Global : Workspace);
  return chosen.name;
}

/** A list that shows at once what is known, and tries the rest while it is open. */
async function pickPipeline(services: Services, uri: vscode.Uri | undefined): Promise<PipelineItem | undefined> {
  const list = newList(vscode.l10n.t("Select Pipeline"), vscode.l10n.t("Which pipeline do deep runs go through?"));
  list.onDidTriggerItemButton(({ item }) => void copyCommand(item.pipeline));
  const picked = await answerOf(list, services, uri, showIn, () => list.activeItems.slice(0, 1));
  return picked[0]?.pipeline;
}

/** Lets the user choose several, and returns their names; none if nothing was chosen. */
export async function pickPipelines(services: Services, uri: vscode.Uri): Promise<string[]> {
  const list = newList(vscode.l10n.t("Compare Pipelines"), vscode.l10n.t("Which pipelines does the file go through?"));
  list.canSelectMany = true;
  return namesOf(await answerOf(list, services, uri, showSeveralIn, () => list.selectedItems));
}

/** What a file is measured against: other pipelines, and itself without its breaks. Undefined if nothing was chosen. */
export async function pickAgainst(
  services: Services,
  uri: vscode.Uri,
): Promise<{ against: string[]; withoutBreaks: boolean } | undefined> {
  const list = newList(vscode.l10n.t("Profile Against"), vscode.l10n.t("What is the file measured against?"));
  list.canSelectMany = true;
  const show = (into: vscode.QuickPick<Choice>, known: Pipelines) => {
    const pipelines = known.pipelines.filter(({ name }) => name !== DEFAULT);
    showSeveralIn(into, { ...known, pipelines, chosen: "" }, [WITHOUT_BREAKS]);
  };
  const picked = await answerOf(list, services, uri, show, () => list.selectedItems);
  return picked.length === 0
    ? undefined
    : { against: namesOf(picked), withoutBreaks: picked.some(({ pipeline }) => pipeline === undefined) };
}

const DEFAULT = "inductor";

const WITHOUT_BREAKS: Choice = {
  label: `$(discard) ${vscode.l10n.t("Without its breaks and recompilations")}`,
  detail: vscode.l10n.t("Fixes that are proven are tried in copies, which run beside the file as it is."),
};

function newList(title: string, placeholder: string): vscode.QuickPick<Choice> {
  const list = emptyList<Choice>();
  Object.assign(list, { title, placeholder, matchOnDescription: true, keepScrollPosition: true });
  return list;
}

/** Fills and shows a list; returns what is chosen when the user accepts it, nothing when the list is left. */
async function answerOf(
  list: vscode.QuickPick<Choice>,
  services: Services,
  uri: vscode.Uri | undefined,
  show: (list: vscode.QuickPick<Choice>, found: Pipelines) => void,
  chosen: () => readonly Choice[],
): Promise<readonly Choice[]> {
  const closed = new vscode.CancellationTokenSource();
  const answer = new Promise<readonly Choice[]>((resolve) => {
    list.onDidAccept(() => {
      const items = chosen();
      if (items.length > 0 || list.canSelectMany) {
        resolve(items);
        list.hide();
      }
    });
    list.onDidHide(() => resolve([]));
  });
  const asked = uri === undefined ? {} : { uri: uri.toString() };
  list.show();
  void fill(
    list,
    (found) => show(list, found),
    async (more) => services.server.request(PipelinesRequest, { ...asked, ...more }),
    closed.token,
  );
  return answer.finally(() => {
    closed.cancel();
    list.dispose();
  });
}

/** Shows what is known, then the result of each trial when it is there: all of them together take minutes. */
async function fill(
  list: vscode.QuickPick<Choice>,
  show: (found: Pipelines) => void,
  ask: (more: { trials: boolean; only?: string[] }) => Promise<Pipelines>,
  closed: vscode.CancellationToken,
): Promise<void> {
  list.busy = true;
  try {
    const known = await ask({ trials: false });
    show(known);
    for (const { name } of known.pipelines.filter(({ status }) => status === "untried")) {
      if (closed.isCancellationRequested) {
        return;
      }
      const tried = await ask({ trials: true, only: [name] });
      known.pipelines = known.pipelines.map((each) => tried.pipelines.find((one) => one.name === each.name) ?? each);
      show(known);
    }
  } catch (error) {
    list.placeholder = visible(messageOf(error));
  } finally {
    list.busy = false;
  }
}

function showIn(list: vscode.QuickPick<Choice>, { pipelines, chosen }: Pipelines): void {
  const active = list.activeItems[0]?.pipeline?.name ?? chosen;
  list.items = choices(pipelines, chosen);
  list.activeItems = list.items.filter(({ pipeline }) => pipeline?.name === active);
}

/** The pipelines that work here, or may; that of the settings is selected first. */
function showSeveralIn(list: vscode.QuickPick<Choice>, { pipelines, chosen }: Pipelines, first: Choice[] = []): void {
  const name = ({ pipeline }: Choice) => pipeline?.name ?? "";
  // The editor forgets both when the items change.
  const active = list.activeItems.map(name);
  const selected = list.items.length === 0 ? [chosen].filter(Boolean) : list.selectedItems.map(name);
  const usable = pipelines.filter(({ status }) => status === "available" || status === "untried");
  list.items = [...first, ...usable.map((each) => choice(each))];
  list.activeItems = list.items.filter((each) => active.includes(name(each)));
  list.selectedItems = list.items.filter((each) => selected.includes(name(each)));
}

function namesOf(items: readonly Choice[]): string[] {
  return items.flatMap(({ pipeline }) => (pipeline === undefined ? [] : [pipeline.name]));
}

/** Pipelines that can be chosen come first, then those that would have to be installed, then the others. */
function choices(pipelines: PipelineItem[], chosen: string): Choice[] {
  const groups: [PipelineStatus[], string][] = [
    [["available", "untried"], ""],
    [["missing"], vscode.l10n.t("not installed")],
    [["unsupported"], vscode.l10n.t("not supported here")],
  ];
  return groups.flatMap(([states, title]) => {
    const found = pipelines.filter(({ status }) => states.includes(status)).map((each) => choice(each, chosen));
    const heading = { label: title, kind: vscode.QuickPickItemKind.Separator };
    return found.length === 0 || title === "" ? found : [heading, ...found];
  });
}

function choice(pipeline: PipelineItem, chosen = ""): Choice {
  const { icon, text } = isUnknown(pipeline) ? UNKNOWN : STATES[pipeline.status];
  const now = pipeline.name === chosen ? ` · ${vscode.l10n.t("selected")}` : "";
  const detail = shortened(pipeline.install) || pipeline.why || backendsOf(pipeline);
  return {
    pipeline,
    label: `$(${icon}) ${withoutIcons(pipeline.title)}`,
    description: withoutIcons(`${pipeline.name} · ${text}${now}`),
    ...(detail === "" ? {} : { detail: withoutIcons(detail) }),
    ...(pipeline.install === "" ? {} : { buttons: [COPY] }),
  };
}

/** A command without the path of the interpreter: a line of the list does not wrap. What is copied is whole. */
function shortened(command: string): string {
  return command.replace(/^(?:"[^"]*"|'[^']*'|\S+)(?= -m pip install )/, "python");
}

/** What packages have registered for a pipeline; one that a trial has refused is left out. */
function backendsOf({ variants }: PipelineItem): string {
  const names = variants.filter(({ status }) => status !== "unsupported").map(({ name }) => name);
  return names.length === 0 ? "" : vscode.l10n.t("Registered backends: {0}", names.join(", "));
}

async function copyCommand(pipeline: PipelineItem | undefined): Promise<void> {
  if (pipeline !== undefined && pipeline.install !== "") {
    await vscode.env.clipboard.writeText(pipeline.install);
    vscode.window.setStatusBarMessage(`IRScope: ${vscode.l10n.t("The command was copied.")}`, MESSAGE_MS);
  }
}

/** Says why a pipeline cannot be chosen, with the command that installs what is missing. */
async function tellWhyNot(pipeline: PipelineItem): Promise<void> {
  const text = `${pipeline.title}: ${pipeline.why}`;
  const copy = { [vscode.l10n.t("Copy Install Command")]: () => copyCommand(pipeline) };
  await showWithLog("information", text, pipeline.install === "" ? {} : copy);
}

const MESSAGE_MS = 4_000;
