/** The three output channels: what the client does, what the server says, what the script prints. */

import * as vscode from "vscode";
import type { ScriptOutput } from "../protocol";

export interface Channels extends vscode.Disposable {
  client: vscode.LogOutputChannel;
  server: vscode.LogOutputChannel;
  script: ScriptChannel;
}

export function createChannels(): Channels {
  const client = vscode.window.createOutputChannel("IRScope", { log: true });
  const server = vscode.window.createOutputChannel(vscode.l10n.t("IRScope Server"), { log: true });
  const script = new ScriptChannel();
  return {
    client,
    server,
    script,
    dispose() {
      client.dispose();
      server.dispose();
      script.dispose();
    },
  };
}

/** Prints the output of the newest run; the text of an older one is cleared when a newer run prints. */
export class ScriptChannel implements vscode.Disposable {
  private readonly channel = vscode.window.createOutputChannel(vscode.l10n.t("IRScope Script Output"));
  private run: string | undefined;

  append(output: ScriptOutput): void {
    if (output.run !== this.run) {
      this.run = output.run;
      this.channel.clear();
      this.channel.appendLine(`# run ${output.run}`);
    }
    this.channel.append(output.text);
  }

  show(): void {
    this.channel.show(true);
  }

  dispose(): void {
    this.channel.dispose();
  }
}
