/** The first minutes: the walkthrough, an example to try, and the demo of `npm start`. */

import * as fs from "node:fs/promises";
import * as path from "node:path";
import * as vscode from "vscode";
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
  ) {
    this.subscriptions = [files.onDidChange(() => void this.openOnce())];
    void this.openOnce();
    if (process.env["IRSCOPE_DEMO"] === "1") {
      void demo();
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
    const folder = vscode.Uri.joinPath(this.context.globalStorageUri, "examples").fsPath;
    const file = path.join(folder, EXAMPLE);
    await fs.mkdir(folder, { recursive: true });
    const text = await this.example();
    await fs.writeFile(file, text, { flag: "wx" }).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== "EEXIST") {
        throw error; // One that is there may have been edited.
      }
    });
    await vscode.window.showTextDocument(vscode.Uri.file(file), { preview: false });
  }

  private async example(): Promise<Buffer> {
    const packed = this.context.asAbsolutePath(path.join("extension", "bundled", "examples", EXAMPLE));
    return fs.readFile(packed).catch(() => fs.readFile(this.context.asAbsolutePath(path.join("examples", EXAMPLE))));
  }
}

/** What `npm start` shows without a click: the pipeline of the open file's newest compile below it, a graph beside it. */
async function demo(): Promise<void> {
  for (const command of ["irscope.showPipeline", "irscope.showNewestGraph"]) {
    await vscode.commands.executeCommand(command);
  }
}
