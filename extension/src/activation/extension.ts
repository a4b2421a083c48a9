/** Activation: makes the parts, tells them of each other, and starts the server. */

import type * as vscode from "vscode";
import { registerAgents } from "../host/agents";
import { createChannels } from "../host/channels";
import { registerCommands } from "../commands";
import { registerDebugging } from "../host/debug";
import { Dock } from "../host/dock";
import { Documents } from "../host/documents";
import { FirstMinutes } from "../host/firstMinutes";
import { GraphPanels } from "../host/graphPanels";
import { Regions } from "../host/regions";
import { LinkedEditors } from "../linked/linkedEditors";
import { RunsTree } from "../host/runsTree";
import { Server } from "../host/server";
import { StatusItem } from "../host/statusItem";
import { setContext, TorchFiles } from "../host/torchFiles";
import { ValuePanel } from "../host/valuePanel";
import { shown as lists } from "../host/lists";

/** What `activate` gives to the tests of this extension; nothing else may rely on it. */
export interface Internals {
  server: Server;
  tree: RunsTree;
  graphs: GraphPanels;
  regions: Regions;
  linked: LinkedEditors;
  dock: Dock;
  values: ValuePanel;
  status: StatusItem;
  lists: typeof lists;
}

let server: Server | undefined;

export async function activate(context: vscode.ExtensionContext): Promise<Internals> {
  const channels = createChannels();
  setContext("irscope.serverState", "starting");
  setContext("irscope.running", false);
  server = new Server(context, channels);
  const files = new TorchFiles();
  const documents = new Documents(server);
  const graphs = new GraphPanels(context.extensionUri, server, documents);
  const dock = new Dock(context.extensionUri, server, documents, (subject) => graphs.show(subject));
  const tree = new RunsTree(server);
  const regions = new Regions(context, server);
  const linked = new LinkedEditors(server, context.globalState);
  const status = new StatusItem(server, files);
  const firstMinutes = new FirstMinutes(context, files, server);
  const commands = registerCommands({
    server,
    documents,
    graphs,
    linked,
    dock,
    tree,
    status,
    channels,
    firstMinutes,
  });
  const values = new ValuePanel(context.extensionUri);
  context.subscriptions.push(registerDebugging(context, server), registerAgents(context, server), firstMinutes, values);
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
  return { server, tree, graphs, linked, dock, regions, values, status, lists };
}

export async function deactivate(): Promise<void> {
  await server?.stop();
}
