/** IRScope: Go to Previous Stage, Go to Next Stage, Compare with Previous Stage — from a stage's document along the pipeline. */

import * as vscode from "vscode";
import { columnOf, partsOf, SCHEME, showSource, wireUri } from "../host/documents";
import { visible } from "../panels/visible";
import { withoutLinks } from "../host/plainText";
import { StepRequest, SubjectOfRequest } from "../host/requests";
import type { Services } from "./context";

interface Step {
  uri: string;
  line: number;
  alike: boolean;
}

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

/**
 * The editor's own comparison of a stage with the one before. An IR and code have no lines in common: what is before is
 * opened beside, at the line that corresponds, and the colours show which lines belong together.
 */
export async function compareStage(services: Services): Promise<void> {
  const editor = stageEditor();
  const step = editor && (await stepFrom(services, editor, -1));
  if (editor === undefined || step === undefined) {
    return;
  }
  const [left, right] = [vscode.Uri.parse(step.uri, true), editor.document.uri];
  if (!step.alike) {
    await open(services, step, vscode.ViewColumn.Beside);
    return;
  }
  const title = visible(`${nameOf(left)} ↔ ${nameOf(right)}`);
  await vscode.commands.executeCommand("vscode.diff", left, right, title);
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
  const { run, stage } = await server.request(SubjectOfRequest, { uri: wireUri(editor.document.uri) });
  if (run === null || stage === null) {
    return undefined;
  }
  const line = editor.selection.active.line;
  const { uri, line: target, reason, alike } = await server.request(StepRequest, { run: run.run, stage, line, by });
  if (uri === null) {
    void vscode.window.showInformationMessage(`IRScope: ${withoutLinks(reason)}`);
    return undefined;
  }
  return { uri, line: target, alike };
}

function nameOf(uri: vscode.Uri): string {
  return uri.path.slice(uri.path.lastIndexOf("/") + 1);
}
