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
  const list = vscode.window.createQuickPick<Choice>();
  list.title = vscode.l10n.t("Select Pipeline");
  list.placeholder = vscode.l10n.t("Which pipeline do deep runs go through?");
  list.matchOnDescription = true;
  list.busy = true;
  list.keepScrollPosition = true;
  const asked = uri === undefined ? {} : { uri: uri.toString() };
  const show = (found: Pipelines): void => showIn(list, found);
  void fill(list, show, async (trials) => services.server.request(PipelinesRequest, { ...asked, trials }));
  list.onDidTriggerItemButton(({ item }) => void copyCommand(item.pipeline));
  const chosen = new Promise<PipelineItem | undefined>((resolve) => {
    list.onDidAccept(() => {
      const [picked] = list.activeItems;
      if (picked?.pipeline !== undefined) {
        resolve(picked.pipeline);
        list.hide();
      }
    });
    list.onDidHide(() => resolve(undefined));
  });
  list.show();
  return chosen.finally(() => list.dispose());
}

/** Lets the user choose several of those that work here, and returns their names; none if nothing was chosen. */
export async function pickPipelines(services: Services, uri: vscode.Uri): Promise<string[]> {
  const list = vscode.window.createQuickPick<Choice>();
  list.title = vscode.l10n.t("Compare Pipelines");
  list.placeholder = vscode.l10n.t("Trying which pipelines work here…");
  list.canSelectMany = true;
  list.matchOnDescription = true;
  list.busy = true;
  // Once, when all is known: the editor forgets what is selected when the items change.
  const show = (found: Pipelines): void => {
    if (!found.pipelines.some(({ status }) => status === "untried")) {
      showSeveralIn(list, found);
    }
  };
  const ask = async (trials: boolean): Promise<Pipelines> =>
    services.server.request(PipelinesRequest, { uri: uri.toString(), trials });
  void fill(list, show, ask);
  const chosen = new Promise<string[]>((resolve) => {
    list.onDidAccept(() => {
      resolve(namesOf(list.selectedItems));
      list.hide();
    });
    list.onDidHide(() => resolve([]));
  });
  list.show();
  return chosen.finally(() => list.dispose());
}

async function fill(
  list: vscode.QuickPick<Choice>,
  show: (found: Pipelines) => void,
  ask: (trials: boolean) => Promise<Pipelines>,
): Promise<void> {
  try {
    const known = await ask(false);
    show(known);
    if (known.pipelines.some(({ status }) => status === "untried")) {
      show(await ask(true));
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

/** Those that work here; that of the settings is selected. */
function showSeveralIn(list: vscode.QuickPick<Choice>, { pipelines, chosen }: Pipelines): void {
  list.placeholder = vscode.l10n.t("Which pipelines does the file go through?");
  list.items = pipelines.filter(({ status }) => status === "available").map((each) => choice(each, chosen));
  list.selectedItems = list.items.filter(({ pipeline }) => pipeline?.name === chosen);
}

function namesOf(items: readonly Choice[]): string[] {
  return items.flatMap(({ pipeline }) => (pipeline === undefined ? [] : [pipeline.name]));
}

/** Those that can be chosen first, then those that would have to be installed, then the others. */
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

function choice(pipeline: PipelineItem, chosen: string): Choice {
  const { icon, text } = STATES[pipeline.status];
  const now = pipeline.name === chosen ? ` · ${vscode.l10n.t("selected")}` : "";
  const detail = pipeline.install || pipeline.why;
  return {
    pipeline,
    label: `$(${icon}) ${withoutIcons(pipeline.title)}`,
    description: withoutIcons(`${pipeline.name} · ${text}${now}`),
    ...(detail === "" ? {} : { detail: withoutIcons(detail) }),
    ...(pipeline.install === "" ? {} : { buttons: [COPY] }),
  };
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
