/** The panel of a value: it shows what the debug session that is stopped has at the frame that is chosen. */

import * as vscode from "vscode";
import { DEBUG_TYPE } from "./debug";
import { fill, tabIcon } from "./panelHost";
import type { Request } from "../panels/ahead";
import type { ToPanel } from "../panels/messages";

/** The request of a panel → the request of the debug adapter that answers it. */
const REQUESTS: Record<string, string> = { "irscope/picture": "irscopePicture" };

/** What a menu of the variables view passes about the clicked variable. */
interface VariableMenu {
  sessionId?: string;
  variable?: { name?: string; evaluateName?: string; __vscodeVariableMenuContext?: string };
}

export class ValuePanel implements vscode.Disposable {
  private panel: vscode.WebviewPanel | undefined;
  private expression = "value";
  private readonly subscriptions: vscode.Disposable[];
  private readonly drawn = new vscode.EventEmitter<string>();
  /** Something is on the screen; for tests. */
  readonly onDidDraw = this.drawn.event;

  constructor(private readonly extensionUri: vscode.Uri) {
    this.subscriptions = [
      this.drawn,
      vscode.commands.registerCommand("irscope.showValue", (from?: VariableMenu) => this.show(from)),
      // The chosen frame changes after each step.
      vscode.debug.onDidChangeActiveStackItem(() => this.follow()),
      vscode.debug.onDidTerminateDebugSession((session) => {
        if (session.type === DEBUG_TYPE) {
          this.follow();
        }
      }),
    ];
  }

  dispose(): void {
    vscode.Disposable.from(...this.subscriptions).dispose();
    this.panel?.dispose();
  }

  private show(from: VariableMenu | undefined): void {
    this.expression = expressionOf(from);
    if (this.panel !== undefined) {
      this.panel.reveal(undefined, true);
      this.tell();
      return;
    }
    const title = vscode.l10n.t("Value");
    const panel = vscode.window.createWebviewPanel("irscope.values", title, vscode.ViewColumn.Beside);
    panel.iconPath = tabIcon(this.extensionUri, "graph");
    panel.onDidDispose(() => (this.panel = undefined));
    this.panel = panel;
    fill(
      panel.webview,
      this.extensionUri,
      { name: "values", title },
      {
        ready: () => this.tell(),
        requests: Object.keys(REQUESTS),
        ask: (request) => this.ask(request),
        drawn: (what) => this.drawn.fire(what),
      },
    );
  }

  private async ask({ method, params }: Request): Promise<unknown> {
    const request = REQUESTS[method] ?? "";
    const item = vscode.debug.activeStackItem;
    const session = item?.session ?? vscode.debug.activeDebugSession;
    if (session === undefined || session.type !== DEBUG_TYPE) {
      throw new Error(
        vscode.l10n.t("No value session is stopped. Debug a script with “values”: true, and stop at a node."),
      );
    }
    const frame = item instanceof vscode.DebugStackFrame ? { frameId: item.frameId } : {};
    return session.customRequest(request, { ...params, ...frame });
  }

  /** It shows something of its frame: the panel reads it again. */
  private follow(): void {
    this.post({ type: "changed", run: "", running: false });
  }

  /** The subject's stage is the expression: a panel of values has no other. */
  private tell(): void {
    this.post({ type: "subject", subject: { run: "", stage: this.expression, title: vscode.l10n.t("Value") } });
  }

  private post(message: ToPanel): void {
    void this.panel?.webview.postMessage(message);
  }
}

/** From a variable that is a node its name; from anywhere in the documents of a stage the word at the cursor. */
function expressionOf(from: VariableMenu | undefined): string {
  const variable = from?.variable;
  if (variable !== undefined) {
    return variable.__vscodeVariableMenuContext === "node" ? (variable.name ?? "value") : "value";
  }
  const editor = vscode.window.activeTextEditor;
  const range = editor?.document.getWordRangeAtPosition(editor.selection.active, /[A-Za-z_]\w*/);
  const word = range !== undefined && editor?.document.uri.scheme === "debug" ? editor.document.getText(range) : "";
  return /_\d+$|^[a-z_]+$/.test(word) && !KEYWORDS.has(word) ? word : "value";
}

const KEYWORDS = new Set([
  "def",
  "return",
  "class",
  "import",
  "from",
  "self",
  "torch",
  "ops",
  "aten",
  "default",
  "None",
]);
