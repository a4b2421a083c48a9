/** IRScope: Show Generated Kernel — the kernels that came from the line at the cursor, beside the source. */

import * as path from "node:path";
import * as vscode from "vscode";
import type { KernelItem } from "../protocol";
import { showWithLog } from "../problems";
import { KernelsAtRequest } from "../requests";
import { activePythonFile, requireTrust, withRunProgress, type Services } from "./context";

export async function showKernel(services: Services): Promise<void> {
  const editor = activePythonFile();
  if (editor === undefined) {
    return;
  }
  const { uri } = editor.document;
  const line = editor.selection.active.line;
  const run = await requireTrust();
  const title = `kernels of ${path.basename(uri.fsPath)}, line ${line + 1}`;
  const { kernels, reason } = await withRunProgress(services, title, uri, (token) =>
    services.server.request(KernelsAtRequest, { uri: uri.toString(), line, run }, token),
  );
  if (kernels.length === 0) {
    void showWithLog("information", reason || `No kernel came from line ${line + 1}.`);
    return;
  }
  const kernel = kernels.length === 1 ? kernels[0] : await pickKernel(kernels, line);
  if (kernel !== undefined) {
    await services.documents.show(kernel.uri, {
      line: kernel.line,
      column: vscode.ViewColumn.Beside,
      preserveFocus: true,
    });
  }
}

type KernelChoice = vscode.QuickPickItem & { kernel: KernelItem };

async function pickKernel(kernels: KernelItem[], line: number): Promise<KernelItem | undefined> {
  const choices: KernelChoice[] = kernels.map((kernel) => ({
    kernel,
    label: `$(circuit-board) ${kernel.name}`,
    description: `${kernel.language} · compile ${kernel.compile}`,
    detail: originsOf(kernel),
  }));
  const chosen = await vscode.window.showQuickPick(choices, {
    title: "Show Generated Kernel",
    placeHolder: `${kernels.length} kernels came from line ${line + 1}`,
    matchOnDescription: true,
  });
  return chosen?.kernel;
}

function originsOf(kernel: KernelItem): string {
  const lines = [...new Set(kernel.origins.map((origin) => origin.line + 1))].sort((a, b) => a - b);
  return lines.length === 0 ? "" : `from line${lines.length > 1 ? "s" : ""} ${lines.join(", ")}`;
}
