/** The first minutes: the walkthrough, an example to try, and the demo of `npm start`. */

import * as vscode from "vscode";
import { StagesOfRequest } from "./requests";
import type { Server } from "./server";
import type { TorchFiles } from "./torchFiles";

const WALKTHROUGH = "irscope.irscope#irscope.firstMinutes";
const SHOWN = "irscope.walkthroughShown";
const EXAMPLE = "gpt_training.py";

/**
 * Opens the walkthrough once, when a file that uses torch is first seen; never where the user has switched that off for
 * all extensions.
 */
export class FirstMinutes implements vscode.Disposable {
  private readonly subscriptions: vscode.Disposable[];

  constructor(
    private readonly context: vscode.ExtensionContext,
    private readonly files: TorchFiles,
    server: Server,
  ) {
    this.subscriptions = [files.onDidChange(() => void this.openOnce())];
    void this.openOnce();
    if (process.env["IRSCOPE_DEMO"] === "1") {
      demo(server).catch((error: unknown) => console.error("The demo stopped:", error));
    }
  }

  readonly commands: Record<string, () => Promise<void>> = {
    "irscope.openWalkthrough": () => this.open(false),
    "irscope.openExample": () => this.openExample(),
  };

  dispose(): void {
    this.subscriptions.forEach((each) => void each.dispose());
  }

  private async openOnce(): Promise<void> {
    const wanted = vscode.workspace.getConfiguration("workbench.welcomePage.walkthroughs").get("openOnInstall", true);
    if (!this.files.current || !wanted || this.context.globalState.get(SHOWN, false)) {
      return;
    }
    await this.context.globalState.update(SHOWN, true);
    await this.open(true);
  }

  private async open(toSide: boolean): Promise<void> {
    await this.context.globalState.update(SHOWN, true);
    await vscode.commands.executeCommand("workbench.action.openWalkthrough", WALKTHROUGH, toSide);
  }

  /** A copy of the example, which may be edited and run, in the editor's storage. */
  private async openExample(): Promise<void> {
    const file = vscode.Uri.joinPath(this.context.globalStorageUri, "examples", EXAMPLE);
    if (!(await exists(file))) {
      await vscode.workspace.fs.writeFile(file, await this.example()); // One that is there may have been edited.
    }
    await vscode.window.showTextDocument(file, { preview: false });
  }

  private async example(): Promise<Uint8Array> {
    const of = (...folders: string[]): vscode.Uri =>
      vscode.Uri.joinPath(this.context.extensionUri, ...folders, "examples", EXAMPLE);
    const packed = of("extension", "bundled");
    return vscode.workspace.fs.readFile((await exists(packed)) ? packed : of());
  }
}

async function exists(file: vscode.Uri): Promise<boolean> {
  try {
    await vscode.workspace.fs.stat(file);
    return true;
  } catch {
    return false;
  }
}

/** What `npm start` shows without a click: a graph of the open file's newest run beside it, and the pipeline below. */
async function demo(server: Server): Promise<void> {
  const script = await openPython();
  await ready(server);
  const { stages } = await server.request(StagesOfRequest, { uri: script.document.uri.toString(), run: true });
  const graphs = stages.filter(({ isGraph, made }) => isGraph && made);
  const item = graphs.find(({ part }) => part === "forward") ?? graphs[0];
  if (item !== undefined) {
    await vscode.commands.executeCommand("irscope.showStageGraph", { kind: "stage", item });
  }
  const shown = await vscode.window.showTextDocument(script.document, { viewColumn: vscode.ViewColumn.One });
  await vscode.commands.executeCommand("irscope.showPipeline");
  await vscode.commands.executeCommand("workbench.action.focusFirstEditorGroup");
  const finding = await firstFinding(script.document.uri);
  const begin = finding.start.with({ character: 0 }); // The end of a long line would scroll it aside.
  shown.selection = new vscode.Selection(begin, begin);
  shown.revealRange(new vscode.Range(begin, begin), vscode.TextEditorRevealType.InCenter);
}

function firstFinding(uri: vscode.Uri): Promise<vscode.Range> {
  const find = (): vscode.Range | undefined =>
    vscode.languages
      .getDiagnostics(uri)
      .filter(({ source }) => source === "irscope")
      .sort((left, right) => left.severity - right.severity)[0]?.range;
  return new Promise((resolve) => {
    const look = (): void => {
      const found = find();
      if (found !== undefined) {
        waiting.dispose();
        resolve(found);
      }
    };
    const waiting = vscode.languages.onDidChangeDiagnostics(look);
    look();
  });
}

function openPython(): Promise<vscode.TextEditor> {
  const found = (editor: vscode.TextEditor | undefined): editor is vscode.TextEditor =>
    editor?.document.languageId === "python";
  return new Promise((resolve) => {
    const now = vscode.window.activeTextEditor;
    if (found(now)) {
      resolve(now);
      return;
    }
    const waiting = vscode.window.onDidChangeActiveTextEditor((editor) => {
      if (found(editor)) {
        waiting.dispose();
        resolve(editor);
      }
    });
  });
}

function ready(server: Server): Promise<void> {
  return new Promise((resolve) => {
    if (server.status().state === "ready") {
      resolve();
      return;
    }
    const waiting = server.onDidChangeState((state) => {
      if (state === "ready") {
        waiting.dispose();
        resolve();
      }
    });
  });
}
