/** Activation: makes the parts, tells them of each other, and starts the server. */

import type * as vscode from "vscode";
import { createChannels } from "./channels";
import { registerCommands } from "./commands";
import { registerDebugging } from "./debug";
import { Dock } from "./dock";
import { Documents } from "./documents";
import { GraphPanels } from "./graphPanel";
import { Regions } from "./regions";
import { LinkedEditors } from "./linked/linkedEditors";
import { RunsTree } from "./runsTree";
import { Server } from "./server";
import { StatusItem } from "./statusItem";
import { setContext, TorchFiles } from "./torchFiles";

/** What `activate` gives to the tests of this extension; nothing else may rely on it. */
export interface Internals {
  server: Server;
  tree: RunsTree;
  graphs: GraphPanels;
  regions: Regions;
  linked: LinkedEditors;
  dock: Dock;
}

let server: Server | undefined;

export async function activate(context: vscode.ExtensionContext): Promise<Internals> {
  const channels = createChannels();
  setContext("irscope.serverState", "starting");
  setContext("irscope.running", false);
  server = new Server(context, channels);
  const files = new TorchFiles();
  const documents = new Documents(server);
  const graphs = new GraphPanels(context, server, documents);
  const dock = new Dock(context.extensionUri, server, documents, (_, { run, stage, title }) => {
    void graphs.show({ run, stage: stage ?? "", title });
  });
  const tree = new RunsTree(server);
  const regions = new Regions(context, server);
  const linked = new LinkedEditors(server, context.globalState);
  const status = new StatusItem(server, files);
  const commands = registerCommands({ server, documents, graphs, linked, dock, tree, status, channels });
  context.subscriptions.push(registerDebugging(context, server));
  const runs = server.onDidChangeRuns(() => files.activate());
  context.subscriptions.push(
    commands,
    runs,
    status,
    regions,
    tree,
    dock,
    graphs,
    linked,
    documents,
    files,
    server,
    channels,
  );
  // Not awaited: the editor is not kept waiting for a Python interpreter.
  void server.restart();
  return { server, tree, graphs, linked, dock, regions };
}

export async function deactivate(): Promise<void> {
  await server?.stop();
}
