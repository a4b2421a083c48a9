/** IRScope: Go to Previous Stage, Go to Next Stage, Compare with Previous Stage — from a stage's document along the pipeline. */

import * as vscode from "vscode";
import { columnOf, partsOf, SCHEME, showSource, wireUri } from "../host/documents";
import { visible } from "../panels/visible";
import { withoutLinks } from "../host/plainText";
import { StepRequest, SubjectOfRequest } from "../host/requests";
import type { Server } from "../host/server";
import { setContext } from "../host/torchFiles";
import type { Step as Neighbour } from "../panels/results";
import type { Services } from "./context";

type Step = Neighbour & { uri: string };

/** Opens the stage before or behind, at the line that corresponds; before the first one that is the user's own. */
export async function stepStage(services: Services, by: 1 | -1): Promise<void> {
  const editor = stageEditor();
  const step = editor && (await stepFrom(services, editor, by));
  if (editor === undefined || step === undefined) {
    return;
  }
  await open(services, step, editor.viewColumn ?? vscode.ViewColumn.Active);
}

async function open(services: Services, { uri, line }: Step, column: vscode.ViewColumn): Promise<void> {
  const target = vscode.Uri.parse(uri, true);
  if (target.scheme === SCHEME) {
    await services.documents.show(uri, { line, column });
  } else {
    await showSource(uri, { line, column: columnOf(target) ?? column });
  }
}

/** The editor's own comparison of a stage with the one before, where both are in one language. */
export async function compareStage(services: Services): Promise<void> {
  const editor = stageEditor();
  const step = editor && (await stepFrom(services, editor, -1));
  if (editor === undefined || step === undefined) {
    return;
  }
  if (!step.alike) {
    void vscode.window.showInformationMessage(UNLIKE);
    return;
  }
  const [left, right] = [vscode.Uri.parse(step.uri, true), editor.document.uri];
  const title = visible(`${nameOf(left)} ↔ ${nameOf(right)}`);
  await vscode.commands.executeCommand("vscode.diff", left, right, title);
}

const UNLIKE = vscode.l10n.t(
  "IRScope: the stage before is in another language, so no lines can be compared. Go to Previous Stage shows the lines that correspond.",
);

/** Keeps the context key for `when` clauses: whether the stage in front can be compared with the one before. */
export function followComparable({ server }: Pick<Services, "server">): vscode.Disposable {
  let asked = 0;
  return vscode.window.onDidChangeActiveTextEditor(async (editor) => {
    const mine = (asked += 1);
    const isStage = editor !== undefined && partsOf(editor.document.uri) !== undefined;
    const step = isStage ? await neighbour(server, editor, -1).catch(() => undefined) : undefined;
    if (mine === asked) {
      setContext("irscope.isComparable", step?.alike === true);
    }
  });
}

function stageEditor(): vscode.TextEditor | undefined {
  const editor = vscode.window.activeTextEditor;
  if (editor !== undefined && partsOf(editor.document.uri) !== undefined) {
    return editor;
  }
  void vscode.window.showInformationMessage(vscode.l10n.t("IRScope: open a stage first (IRScope: Show Stage…)."));
  return undefined;
}

async function stepFrom({ server }: Services, editor: vscode.TextEditor, by: 1 | -1): Promise<Step | undefined> {
  const found = await neighbour(server, editor, by);
  if (found?.uri === null) {
    void vscode.window.showInformationMessage(`IRScope: ${withoutLinks(found.reason)}`);
  }
  return found?.uri ? { ...found, uri: found.uri } : undefined;
}

async function neighbour(server: Server, editor: vscode.TextEditor, by: 1 | -1): Promise<Neighbour | undefined> {
  const { run, stage } = await server.request(SubjectOfRequest, { uri: wireUri(editor.document.uri) });
  const line = editor.selection.active.line;
  return run === null || stage === null
    ? undefined
    : await server.request(StepRequest, { run: run.run, stage, line, by });
}

function nameOf(uri: vscode.Uri): string {
  return uri.path.slice(uri.path.lastIndexOf("/") + 1);
}
