/**
 * The server for agents (`irscope mcp`), as VS Code offers it to chat: which process it is, and what it may do.
 *
 * It is started with the interpreter that is selected, which needs the package `mcp`; without it the server's log says how
 * to install it.
 */

import * as path from "node:path";
import * as vscode from "vscode";
import { findInterpreter } from "./interpreter";
import type { Server } from "./server";
import { folderOf, SECTION } from "./settings";

/** The id in package.json, `contributes.mcpServerDefinitionProviders`. */
const PROVIDER = "irscope.mcp";
const ALLOW_RUN = "agents.allowRun";

/** What VS Code has since 1.101, and its types of the oldest version that this extension supports have not. */
interface AgentsApi {
  lm?: {
    registerMcpServerDefinitionProvider?: (id: string, provider: Provider) => vscode.Disposable;
  };
  McpStdioServerDefinition?: new (
    label: string,
    command: string,
    args: string[],
    env: Record<string, string>,
    version: string,
  ) => Definition;
}

interface Definition {
  cwd?: vscode.Uri;
}

interface Provider {
  onDidChangeMcpServerDefinitions: vscode.Event<void>;
  provideMcpServerDefinitions: () => Promise<Definition[]>;
}

/** Offers the server where this version of VS Code takes one; `server` knows where runs are kept. */
export function registerAgents(context: vscode.ExtensionContext, server: Server): vscode.Disposable {
  const api = vscode as unknown as AgentsApi;
  const make = api.McpStdioServerDefinition;
  if (api.lm?.registerMcpServerDefinitionProvider === undefined || make === undefined) {
    return new vscode.Disposable(() => undefined);
  }
  const changed = new vscode.EventEmitter<void>();
  const provider: Provider = {
    onDidChangeMcpServerDefinitions: changed.event,
    provideMcpServerDefinitions: async () => {
      const found = await findInterpreter();
      if ("problem" in found) {
        return [];
      }
      const launcher = context.asAbsolutePath(path.join("extension", "launch_server.py"));
      const allowed = vscode.workspace.isTrusted && mayRun();
      const args = serverArguments(launcher, server.storePath(), found.path, allowed, server.pycachePath());
      const definition = new make("IRScope", found.path, args, {}, versionOf(context));
      const folder = folderOf();
      if (folder !== undefined) {
        definition.cwd = vscode.Uri.file(folder);
      }
      return [definition];
    },
  };
  return vscode.Disposable.from(
    changed,
    api.lm.registerMcpServerDefinitionProvider(PROVIDER, provider),
    vscode.workspace.onDidGrantWorkspaceTrust(() => changed.fire()),
    vscode.workspace.onDidChangeConfiguration((event) => {
      if (event.affectsConfiguration(SECTION)) {
        changed.fire();
      }
    }),
  );
}

function mayRun(): boolean {
  return vscode.workspace.getConfiguration(SECTION).get<boolean>(ALLOW_RUN, false);
}

function serverArguments(launcher: string, store: string, python: string, allowed: boolean, pycache: string): string[] {
  const options = [`--store=${store}`, `--python=${python}`, ...(allowed ? ["--allow-run"] : [])];
  return ["-X", `pycache_prefix=${pycache}`, launcher, "--mcp", ...options];
}

/** The definition's version changes with the setting, so that VS Code starts the server again. */
function versionOf(context: vscode.ExtensionContext): string {
  const { version } = context.extension.packageJSON as { version: string };
  return `${version}${mayRun() ? "+run" : ""}`;
}
