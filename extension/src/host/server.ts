/**
 * The life of the language server: found interpreter → started → answering → restarted when the interpreter changed.
 *
 * At most one restart runs and at most one waits. A change of settings or of the selected environment restarts the
 * server only when the interpreter that results from it is not the one that runs already.
 */

import * as path from "node:path";
import * as readline from "node:readline";
import * as vscode from "vscode";
import {
  ErrorAction,
  LanguageClient,
  MessageType,
  RevealOutputChannelOn,
  ShowMessageNotification,
  State,
  type ErrorHandler,
  type ProgressToken,
  type WorkDoneProgressBegin,
  type LanguageClientOptions,
  type RequestType,
  type ServerOptions,
} from "vscode-languageclient/node";
import type { Channels } from "./channels";
import { LINK_COMMAND, withCommands } from "./hoverLinks";
import { findInterpreter, nameOf, onMayHaveChanged, type Interpreter } from "./interpreter";
import { OneAtATime } from "./oneAtATime";
import { withoutIcons } from "./plainText";
import { showWithLog } from "./problems";
import type { FileState, RunsChanged, WorkerState } from "../protocol";
import {
  FileStateNotification,
  OutputNotification,
  RunsChangedNotification,
  RunsRequest,
  TrustedNotification,
  WorkerNotification,
} from "./requests";
import { pathSetting, SECTION } from "./settings";

export type ServerState = "starting" | "ready" | "failed";

/** What kept a request from being sent; its message is for the user. */
export class ServerUnavailable extends Error {}

export class Server implements vscode.Disposable {
  private client: LanguageClient | undefined;
  private interpreter: Interpreter | undefined;
  private state: ServerState = "starting";
  private problem = "";
  private disposed = false;
  private readonly starts: OneAtATime;
  private readonly subscriptions: vscode.Disposable[] = [];

  private readonly progressReaders = new Set<(text: string) => void>();
  /** How each progress began whose begin went to a reader alone. */
  private readonly unshownProgress = new Map<ProgressToken, WorkDoneProgressBegin>();
  private readonly stateEmitter = new vscode.EventEmitter<ServerState>();
  private readonly workerEmitter = new vscode.EventEmitter<WorkerState>();
  private readonly runsEmitter = new vscode.EventEmitter<RunsChanged>();
  private readonly fileEmitter = new vscode.EventEmitter<FileState>();
  readonly onDidChangeFile = this.fileEmitter.event;
  readonly onDidChangeState = this.stateEmitter.event;
  readonly onDidChangeWorker = this.workerEmitter.event;
  readonly onDidChangeRuns = this.runsEmitter.event;

  constructor(
    private readonly context: vscode.ExtensionContext,
    private readonly channels: Channels,
  ) {
    this.starts = new OneAtATime(() => this.startWith());
    this.subscriptions.push(
      onMayHaveChanged(() => void this.restartIfInterpreterChanged()),
      vscode.workspace.onDidGrantWorkspaceTrust(() => void this.client?.sendNotification(TrustedNotification, {})),
      this.stateEmitter,
      this.workerEmitter,
      this.runsEmitter,
      this.fileEmitter,
    );
  }

  /** Starts or restarts the server, whatever runs now. */
  restart(): Promise<void> {
    return this.starts.request();
  }

  /** The interpreter of the running server, its state, and why it is not running if it is not. */
  status(): { state: ServerState; interpreter: Interpreter | undefined; problem: string } {
    return { state: this.state, interpreter: this.interpreter, problem: this.problem };
  }

  /** Sends a request once the server answers; throws ServerUnavailable if no server is running. */
  async request<Params, Result>(
    type: RequestType<Params, Result, void>,
    params: Params,
    token?: vscode.CancellationToken,
  ): Promise<Result> {
    await this.starts.idle();
    if (this.client === undefined || this.state !== "ready") {
      throw new ServerUnavailable(
        this.problem || vscode.l10n.t("The language server is not running. Show the log for the reason."),
      );
    }
    // By name: the client's typed overloads do not take a type parameter. An undefined token would count as a parameter.
    return token === undefined
      ? this.client.sendRequest<Result>(type.method, params)
      : this.client.sendRequest<Result>(type.method, params, token);
  }

  /** Tells the views of the newest run in the store, where another process has made it. */
  async tellOfNewestRun(): Promise<void> {
    try {
      const [newest] = (await this.request(RunsRequest, { limit: 1 })).runs;
      if (newest !== undefined) {
        this.runsEmitter.fire({ run: newest.run, uri: newest.scriptUri, running: false });
      }
    } catch (error) {
      this.channels.client.error(messageOf(error)); // The views show the run when they are refreshed.
    }
  }

  /** While `work` goes on, what runs say of their progress goes to `report` instead of the status bar. */
  async reportingTo<Result>(report: (text: string) => void, work: () => Promise<Result>): Promise<Result> {
    this.progressReaders.add(report);
    try {
      return await work();
    } finally {
      this.progressReaders.delete(report);
    }
  }

  dispose(): void {
    this.disposed = true;
    this.subscriptions.forEach((each) => void each.dispose());
  }

  /** Ends the server; the promise settles when its process has gone or had its chance to. */
  async stop(): Promise<void> {
    const client = this.client;
    this.client = undefined;
    if (client !== undefined && client.state !== State.Stopped) {
      await client
        .stop(3_000)
        .catch((error: unknown) => this.channels.client.warn(`Stopping the server: ${String(error)}`));
    }
    await client?.dispose().catch(() => undefined);
  }

  private async restartIfInterpreterChanged(): Promise<void> {
    await this.starts.idle();
    const found = await findInterpreter();
    const path = "problem" in found ? undefined : found.path;
    if (path !== this.interpreter?.path || this.state === "failed") {
      this.channels.client.info(`The interpreter is now ${path ?? "missing"}: restarting the server.`);
      await this.restart();
    }
  }

  private async startWith(): Promise<void> {
    this.setState("starting");
    await this.stop();
    const found = await findInterpreter();
    if ("problem" in found) {
      this.interpreter = undefined;
      this.fail(found.problem);
      return;
    }
    this.interpreter = found;
    this.channels.client.info(`Python ${found.version.join(".")}: ${nameOf(found)}`);
    const client = this.newClient(found);
    this.client = client;
    try {
      await client.start();
      this.problem = "";
      this.setState("ready");
      this.channels.client.info("The language server is ready.");
    } catch (error) {
      await this.stop();
      this.fail(vscode.l10n.t("The language server could not be started with {0}: {1}", found.path, messageOf(error)));
    }
  }

  private newClient(interpreter: Interpreter): LanguageClient {
    // -I and -S: neither the user's site-packages nor PYTHONPATH nor the working folder are seen by the server.
    const server: ServerOptions = {
      command: interpreter.path,
      // Compiled files go to the editor's storage: the extension's own folder stays as it was installed.
      args: ["-I", "-S", "-X", `pycache_prefix=${this.pycachePath()}`, launcherPath(this.context)],
      options: { cwd: this.context.extensionPath },
    };
    const options = { ...this.clientOptions(interpreter), errorHandler: restartWhenItEnds(() => client) };
    const client: LanguageClient = new LanguageClient(SECTION, "IRScope", server, options);
    client.onNotification(WorkerNotification, (state) => this.workerEmitter.fire(state));
    client.onNotification(RunsChangedNotification, (change) => this.runsEmitter.fire(change));
    client.onNotification(FileStateNotification, (state) => this.fileEmitter.fire(state));
    // In place of the client library's own boxes, which have no way to the log.
    client.onNotification(ShowMessageNotification.type, ({ type, message }) => {
      const kind = type === MessageType.Error ? "error" : type === MessageType.Warning ? "warning" : "information";
      void showWithLog(kind, message);
    });
    client.onNotification(OutputNotification, (output) => this.channels.script.append(output));
    client.onDidChangeState(({ newState }) => {
      if (client !== this.client || this.disposed) {
        return;
      }
      if (newState === State.Running) {
        this.setState("ready");
      } else if (newState === State.Stopped && this.state === "ready") {
        this.fail(vscode.l10n.t("The language server stopped. Restart it, or show the log for the reason."));
      }
    });
    return client;
  }

  private clientOptions(interpreter: Interpreter): LanguageClientOptions {
    const settings = (scope?: vscode.Uri): Record<string, unknown> => ({
      ...vscode.workspace.getConfiguration(undefined, scope ?? null).get<Record<string, unknown>>(SECTION),
      // The server gets what the settings mean on this machine, not what the user typed.
      python: interpreter.path,
      storePath: this.storePath(),
      // The configurations of the workspace file and of the user's settings, too.
      launch: vscode.workspace.getConfiguration("launch", scope ?? null).get<unknown[]>("configurations", []),
    });
    return {
      documentSelector: [
        { scheme: "file", language: "python" },
        { scheme: "untitled", language: "python" },
        { notebook: "jupyter-notebook", language: "python" },
      ],
      initializationOptions: () => ({ ...settings(), trusted: vscode.workspace.isTrusted, richHovers: true }),
      markdown: { supportHtml: true },
      synchronize: { configurationSection: SECTION },
      outputChannel: this.channels.server,
      traceOutputChannel: this.channels.server,
      revealOutputChannelOn: RevealOutputChannelOn.Never,
      initializationFailedHandler: () => false,
      stdioOptions: {
        stdout: () => undefined,
        stderr: (stream) => {
          readline.createInterface({ input: stream }).on("line", (line) => this.channels.server.info(line));
        },
      },
      middleware: {
        provideHover: async (document, position, token, next) => {
          const hover = await next(document, position, token);
          for (const content of hover?.contents ?? []) {
            if (content instanceof vscode.MarkdownString) {
              content.value = withCommands(content.value);
              content.isTrusted = { enabledCommands: [LINK_COMMAND] };
            }
          }
          return hover;
        },
        workspace: {
          configuration: (params) =>
            params.items.map(({ section, scopeUri }) => {
              const scope = scopeUri === undefined ? undefined : vscode.Uri.parse(scopeUri);
              return section === SECTION ? settings(scope) : null;
            }),
        },
        handleWorkDoneProgress: (token, params, next) => {
          const unshown = this.unshownProgress.get(token);
          if (this.progressReaders.size === 0 || params.kind === "end") {
            if (unshown !== undefined && params.kind === "report") {
              next(token, unshown); // the run goes on after who read its progress has got what it waited for
            }
            this.unshownProgress.delete(token);
            // It is shown in the status bar, which knows icons.
            const message = params.message === undefined ? {} : { message: withoutIcons(params.message) };
            const title = params.kind === "begin" ? { title: withoutIcons(params.title) } : {};
            next(token, { ...params, ...message, ...title });
          } else {
            if (params.kind === "begin") {
              this.unshownProgress.set(token, { ...params, title: withoutIcons(params.title) });
            }
            this.progressReaders.forEach((report) => report(params.message ?? ""));
          }
        },
        // documents.ts provides these, also while the server is being restarted.
        provideTextDocumentContent: () => undefined,
      },
    };
  }

  /** Where runs are kept: one file for each workspace. */
  storePath(): string {
    const chosen = pathSetting("storePath");
    if (chosen !== "") {
      return chosen;
    }
    const folder = this.context.storageUri ?? this.context.globalStorageUri;
    return path.join(folder.fsPath, "runs.sqlite");
  }

  pycachePath(): string {
    return path.join(this.context.globalStorageUri.fsPath, "pycache");
  }

  private fail(problem: string): void {
    this.problem = problem;
    this.channels.client.error(problem);
    this.setState("failed");
  }

  private setState(state: ServerState): void {
    const before = this.state;
    this.state = state;
    if (!this.disposed && before !== state) {
      this.stateEmitter.fire(state);
    }
  }
}

/**
 * A server that ends is started again, as by the client library's own handler. That one also stops the client for good
 * when a fourth message cannot be written. The editor can send as many before it learns that the server has ended, and
 * the server would stay away. Here only the end of the connection counts.
 */
function restartWhenItEnds(client: () => LanguageClient): ErrorHandler {
  let byDefault: ErrorHandler | undefined;
  return {
    error: () => ({ action: ErrorAction.Continue, handled: true }),
    closed: () => (byDefault ??= client().createDefaultErrorHandler()).closed(),
  };
}

/** The Python file that starts the server. `IRSCOPE_LAUNCHER` replaces it: for tests of this extension. */
function launcherPath(context: vscode.ExtensionContext): string {
  return process.env["IRSCOPE_LAUNCHER"] ?? context.asAbsolutePath(path.join("extension", "launch_server.py"));
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
