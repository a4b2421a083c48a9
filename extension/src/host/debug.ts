/**
 * Debug sessions of the type "irscope": which process the adapter is, and what a configuration means where it says nothing.
 *
 * The adapter (server/irscope_server/dap) is started like the language server: with the interpreter that is selected,
 * and out of the extension's folder alone.
 */

import * as path from "node:path";
import * as vscode from "vscode";
import { findInterpreter } from "./interpreter";
import type { Element } from "./runItems";
import type { Server } from "./server";
import { SECTION } from "./settings";

export const DEBUG_TYPE = "irscope";
const PYTHON_DEBUGGER = "ms-python.debugpy";

/** Registers the debug type and its command; `server` knows where runs are kept. */
export function registerDebugging(context: vscode.ExtensionContext, server: Server): vscode.Disposable {
  return vscode.Disposable.from(
    vscode.debug.registerDebugAdapterDescriptorFactory(DEBUG_TYPE, new AdapterFactory(context, server)),
    vscode.debug.registerDebugAdapterTrackerFactory(DEBUG_TYPE, new RunTeller(server)),
    vscode.debug.registerDebugConfigurationProvider(DEBUG_TYPE, new Configurations(server)),
    vscode.commands.registerCommand("irscope.debug", () => debugActiveFile()),
    vscode.commands.registerCommand("irscope.debugSideBySide", () => debugSideBySide()),
    vscode.commands.registerCommand("irscope.debugRun", (element?: Element) => debugRun(element)),
  );
}

class AdapterFactory implements vscode.DebugAdapterDescriptorFactory {
  constructor(
    private readonly context: vscode.ExtensionContext,
    private readonly server: Server,
  ) {}

  async createDebugAdapterDescriptor(session: vscode.DebugSession): Promise<vscode.DebugAdapterDescriptor> {
    const found = await findInterpreter(session.workspaceFolder?.uri, this.server.status().interpreter);
    if ("problem" in found) {
      throw new Error(found.problem);
    }
    const launcher = this.context.asAbsolutePath(path.join("extension", "launch_server.py"));
    const flags = ["-I", "-S", "-X", `pycache_prefix=${this.server.pycachePath()}`];
    return new vscode.DebugAdapterExecutable(found.path, [...flags, launcher, "--dap"], {
      cwd: this.context.extensionPath,
    });
  }
}

/** Tells the views of a run that a session has made: the adapter writes it to the store, past the language server. */
class RunTeller implements vscode.DebugAdapterTrackerFactory {
  constructor(private readonly server: Server) {}

  createDebugAdapterTracker(session: vscode.DebugSession): vscode.DebugAdapterTracker | undefined {
    if (session.configuration.request !== "launch") {
      return undefined;
    }
    let told = false;
    return {
      // The first stop is after the run; a session may also end without one.
      onDidSendMessage: ({ event }: { event?: string }) => {
        if (!told && (event === "stopped" || event === "terminated")) {
          told = true;
          void this.server.tellOfNewestRun();
        }
      },
    };
  }
}

class Configurations implements vscode.DebugConfigurationProvider {
  constructor(private readonly server: Server) {}

  /** F5 without a launch.json: the file that is open. */
  resolveDebugConfiguration(
    _folder: vscode.WorkspaceFolder | undefined,
    given: vscode.DebugConfiguration,
  ): vscode.DebugConfiguration | undefined {
    if (given.type !== "" && given.type !== undefined) {
      return given;
    }
    return vscode.window.activeTextEditor?.document.languageId === "python" ? launchOf("${file}") : undefined;
  }

  async resolveDebugConfigurationWithSubstitutedVariables(
    folder: vscode.WorkspaceFolder | undefined,
    given: vscode.DebugConfiguration,
  ): Promise<vscode.DebugConfiguration> {
    const resolved: vscode.DebugConfiguration = { ...given, store: textOf(given["store"]) || this.server.storePath() };
    if (given.request === "launch") {
      const found =
        textOf(given["python"]) === ""
          ? await findInterpreter(folder?.uri, this.server.status().interpreter)
          : undefined;
      if (found !== undefined && !("problem" in found)) {
        resolved["python"] = found.path;
      }
      const program = textOf(given["program"]);
      const scope = program === "" ? (folder?.uri ?? null) : vscode.Uri.file(program);
      const chosen = vscode.workspace.getConfiguration(SECTION, scope).get<string>("pipeline", "");
      resolved["pipeline"] = textOf(given["pipeline"]) || chosen;
      resolved["cwd"] = textOf(given["cwd"]) || folder?.uri.fsPath || path.dirname(program);
    }
    return resolved;
  }
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function launchOf(program: string): vscode.DebugConfiguration {
  return { type: DEBUG_TYPE, request: "launch", name: vscode.l10n.t("Debug Compilation"), program };
}

/** The script that is to be debugged: the active Python file, saved. */
async function savedScript(): Promise<vscode.Uri | undefined> {
  const document = vscode.window.activeTextEditor?.document;
  if (document?.languageId !== "python" || document.uri.scheme !== "file") {
    void vscode.window.showInformationMessage(
      vscode.l10n.t("IRScope: open the Python script first, and save it to a file."),
    );
    return undefined;
  }
  return document.isDirty && !(await document.save()) ? undefined : document.uri;
}

/** Runs the active file and debugs what was compiled. */
async function debugActiveFile(): Promise<void> {
  const script = await savedScript();
  if (script !== undefined) {
    await vscode.debug.startDebugging(vscode.workspace.getWorkspaceFolder(script), launchOf(script.fsPath));
  }
}

/**
 * Two sessions at once: debugpy in the script, ours in its compilation. The two run it in separate processes, so
 * neither can disturb the other.
 */
async function debugSideBySide(): Promise<void> {
  const script = await savedScript();
  if (script === undefined) {
    return;
  }
  if (vscode.extensions.getExtension(PYTHON_DEBUGGER) === undefined) {
    const install = vscode.l10n.t("Show Extension");
    const answer = await vscode.window.showInformationMessage(
      vscode.l10n.t("IRScope: debugging the script itself needs the extension Python Debugger."),
      install,
    );
    if (answer === install) {
      await vscode.commands.executeCommand("workbench.extensions.search", `@id:${PYTHON_DEBUGGER}`);
    }
    return;
  }
  const folder = vscode.workspace.getWorkspaceFolder(script);
  // What is left out is as the user has set it for the Python Debugger, `justMyCode` among it.
  const console = "integratedTerminal";
  const name = vscode.l10n.t("Debug Script");
  const python = { type: "debugpy", request: "launch", name, program: script.fsPath, console };
  await Promise.all([
    vscode.debug.startDebugging(folder, python),
    vscode.debug.startDebugging(folder, launchOf(script.fsPath)),
  ]);
}

/** Debugs a stored run: the one of a row of the runs' tree, else the newest of the active file. */
async function debugRun(element: Element | undefined): Promise<void> {
  const run = element?.kind === "run" ? element.item.run : "";
  const document = vscode.window.activeTextEditor?.document;
  const isScript = document?.languageId === "python" && document.uri.scheme === "file";
  await vscode.debug.startDebugging(vscode.workspace.workspaceFolders?.[0], {
    type: DEBUG_TYPE,
    request: "attach",
    name: run === "" ? vscode.l10n.t("Newest Run") : vscode.l10n.t("Run {0}", run),
    ...(run === "" ? (isScript ? { program: document.uri.fsPath } : {}) : { run }),
  });
}
