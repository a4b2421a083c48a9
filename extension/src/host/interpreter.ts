/**
 * Which Python runs the user's scripts.
 *
 * Asked in this order: the setting `irscope.python`, the Python environments extension, the Python extension, the PATH.
 * None of the extensions is needed. An untrusted workspace is not asked: an environment inside it could be a trap, so
 * there only the user's own setting and the PATH count (VS Code itself hides the workspace's value of a restricted setting).
 */

import { execFile } from "node:child_process";
import * as fs from "node:fs/promises";
import * as path from "node:path";
import * as vscode from "vscode";
import { pathSetting } from "./settings";

export const OLDEST_PYTHON: readonly [number, number] = [3, 10];

export type InterpreterSource = "setting" | "environments" | "python" | "path";

export interface Interpreter {
  path: string;
  version: readonly [number, number];
  source: InterpreterSource;
}

/** What was asked, what went wrong, and what the user can do next. */
export interface NoInterpreter {
  problem: string;
}

/** Where an interpreter was found, for messages. */
const FOUND: Record<InterpreterSource, string> = {
  setting: vscode.l10n.t("from the setting"),
  environments: vscode.l10n.t("from the environments extension"),
  python: vscode.l10n.t("from the Python extension"),
  path: vscode.l10n.t("from the PATH"),
};

type Candidate = { path: string; source: InterpreterSource };

/** Looks for it. One that is `known`, as that of the language server, is not started again to ask for its version. */
export async function findInterpreter(scope?: vscode.Uri, known?: Interpreter): Promise<Interpreter | NoInterpreter> {
  const candidate = await firstCandidate(scope);
  if (candidate === undefined) {
    return {
      problem: vscode.l10n.t(
        'No Python was found. Set "irscope.python" to an interpreter ({0} or newer) that has torch.',
        OLDEST_PYTHON.join("."),
      ),
    };
  }
  const version = candidate.path === known?.path ? known.version : await versionOf(candidate.path);
  if (version === undefined) {
    return {
      problem: vscode.l10n.t(
        '{0} could not be started as Python. Set "irscope.python" to another interpreter.',
        nameOf(candidate),
      ),
    };
  }
  if (version[0] < OLDEST_PYTHON[0] || (version[0] === OLDEST_PYTHON[0] && version[1] < OLDEST_PYTHON[1])) {
    return {
      problem: vscode.l10n.t(
        '{0} is Python {1}; IRScope needs {2} or newer. Set "irscope.python" to a newer one that has torch.',
        nameOf(candidate),
        version.join("."),
        OLDEST_PYTHON.join("."),
      ),
    };
  }
  return { ...candidate, version };
}

/** The path, and where it is from. */
export function nameOf({ path, source }: { path: string; source: InterpreterSource }): string {
  return `${path} (${FOUND[source]})`;
}

/** Calls back when another interpreter may have been chosen; `findInterpreter` says whether it really was. */
export function onMayHaveChanged(callback: () => void): vscode.Disposable {
  const subscriptions: vscode.Disposable[] = [
    vscode.workspace.onDidChangeConfiguration((event) => {
      if (event.affectsConfiguration("irscope.python")) {
        callback();
      }
    }),
    vscode.workspace.onDidGrantWorkspaceTrust(callback),
  ];
  // The two extensions are subscribed to when they are first used, and again when one of them is installed later.
  const subscribed = new Set<string>();
  const subscribe = async (): Promise<void> => {
    for (const [id, events] of [
      [ENVIRONMENTS_EXTENSION, (api: unknown) => (api as EnvironmentsApi).onDidChangeEnvironment],
      [PYTHON_EXTENSION, (api: unknown) => (api as PythonApi).environments?.onDidChangeActiveEnvironmentPath],
    ] as const) {
      if (subscribed.has(id) || vscode.extensions.getExtension(id) === undefined) {
        continue;
      }
      subscribed.add(id);
      const api = await apiOf<unknown>(id);
      const event = api === undefined ? undefined : events(api);
      if (event !== undefined) {
        subscriptions.push(event(() => callback()));
      }
    }
  };
  subscriptions.push(
    vscode.extensions.onDidChange(() => {
      void subscribe().then(callback);
    }),
  );
  void subscribe();
  return new vscode.Disposable(() => subscriptions.forEach((each) => void each.dispose()));
}

async function firstCandidate(scope?: vscode.Uri): Promise<Candidate | undefined> {
  const fromSetting = pathSetting("python", scope);
  if (fromSetting !== "") {
    const found = path.isAbsolute(fromSetting) ? fromSetting : await onPath(fromSetting);
    return { path: found ?? fromSetting, source: "setting" };
  }
  if (vscode.workspace.isTrusted) {
    const fromEnvironments = await environmentsExtensionPython(scope);
    if (fromEnvironments !== undefined) {
      return { path: fromEnvironments, source: "environments" };
    }
    const fromPython = await pythonExtensionPython(scope);
    if (fromPython !== undefined) {
      return { path: fromPython, source: "python" };
    }
  }
  for (const name of process.platform === "win32" ? ["python.exe"] : ["python3", "python"]) {
    const found = await onPath(name);
    if (found !== undefined) {
      return { path: found, source: "path" };
    }
  }
  return undefined;
}

const ENVIRONMENTS_EXTENSION = "ms-python.vscode-python-envs";
const PYTHON_EXTENSION = "ms-python.python";
/** An extension that does not come up in this time is passed over. */
const EXTENSION_PATIENCE_MS = 15_000;

/** The parts of ms-python.vscode-python-envs that are used here. */
interface EnvironmentsApi {
  getEnvironment(scope: vscode.Uri | undefined): Promise<{ execInfo?: { run?: { executable?: string } } } | undefined>;
  onDidChangeEnvironment?: vscode.Event<unknown>;
}

async function environmentsExtensionPython(scope?: vscode.Uri): Promise<string | undefined> {
  const api = await apiOf<EnvironmentsApi>(ENVIRONMENTS_EXTENSION);
  const environment = await attempt(() => api?.getEnvironment(scopeOrFolder(scope)));
  return environment?.execInfo?.run?.executable;
}

/** The parts of ms-python.python that are used here. */
interface PythonApi {
  environments?: {
    getActiveEnvironmentPath(resource?: vscode.Uri): { path: string };
    resolveEnvironment(environment: { path: string }): Promise<{ executable?: { uri?: vscode.Uri } } | undefined>;
    onDidChangeActiveEnvironmentPath?: vscode.Event<unknown>;
  };
}

async function pythonExtensionPython(scope?: vscode.Uri): Promise<string | undefined> {
  const environments = (await apiOf<PythonApi>(PYTHON_EXTENSION))?.environments;
  if (environments === undefined) {
    return undefined;
  }
  const resolved = await attempt(() =>
    environments.resolveEnvironment(environments.getActiveEnvironmentPath(scopeOrFolder(scope))),
  );
  return resolved?.executable?.uri?.fsPath;
}

async function apiOf<Api>(id: string): Promise<Api | undefined> {
  const extension = vscode.extensions.getExtension<Api>(id);
  return extension === undefined ? undefined : attempt(() => extension.activate());
}

/** Other people's extensions may hang or throw: neither is a reason for this one to fail. */
async function attempt<Result>(ask: () => PromiseLike<Result> | undefined): Promise<Result | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const patience = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), EXTENSION_PATIENCE_MS);
  });
  try {
    return await Promise.race([ask(), patience]);
  } catch {
    return undefined;
  } finally {
    clearTimeout(timer);
  }
}

function scopeOrFolder(scope?: vscode.Uri): vscode.Uri | undefined {
  return scope ?? vscode.workspace.workspaceFolders?.[0]?.uri;
}

async function onPath(name: string): Promise<string | undefined> {
  for (const folder of (process.env["PATH"] ?? "").split(path.delimiter)) {
    if (!path.isAbsolute(folder)) {
      continue; // A relative entry would mean another program in each folder.
    }
    const candidate = path.join(folder, name);
    try {
      await fs.access(candidate, fs.constants.X_OK);
      if ((await fs.stat(candidate)).isFile()) {
        return candidate;
      }
    } catch {
      // Not here.
    }
  }
  return undefined;
}

/** Major and minor version, or undefined when it is not a Python that starts. */
function versionOf(python: string): Promise<readonly [number, number] | undefined> {
  // eslint-disable-next-line no-restricted-syntax -- Python, and no text
  const ask = "import sys; print(sys.version_info[0], sys.version_info[1])";
  return new Promise((resolve) => {
    execFile(python, ["-I", "-S", "-c", ask], { timeout: 20_000 }, (error, stdout) => {
      const match = /^(\d+) (\d+)/.exec(stdout);
      resolve(error !== null || match === null ? undefined : [Number(match[1]), Number(match[2])]);
    });
  });
}
