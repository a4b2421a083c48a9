/** Every command of the extension, by its id in package.json. The server's own commands are `irscope.server.*`. */

import * as vscode from "vscode";
import type { LineOf } from "../host/documents";
import type { Place } from "../protocol";
import type { Element } from "../host/runItems";
import { chooseTarget } from "./chooseTarget";
import { comparePipelines } from "./comparePipelines";
import { guarded, type Services } from "./context";
import { goToLibraryLine } from "./libraryLine";
import { showMenu } from "./menu";
import { openArtifact, openTrace } from "./openTrace";
import { profile, profileAgainst, showTime } from "./profile";
import { cancelRun, checkWithoutCompile, runActiveFile, runFile, runWithChosenEntry } from "./run";
import { selectPipeline } from "./selectPipeline";
import { showKernel } from "./showKernel";
import { showAutotuning, showGraph, showStage } from "./showStage";
import { showTab } from "./showTab";
import { compareStage, followComparable, stepStage } from "./stepStage";
import { toggleInlayHints } from "./toggleInlayHints";

// eslint-disable-next-line @typescript-eslint/no-explicit-any -- the editor gives each command its own arguments
type Commands = Record<string, (...args: any[]) => Promise<void>>;

export function registerCommands(services: Services): vscode.Disposable {
  const { server, linked, tree, channels } = services;
  const commands: Commands = {
    ...services.firstMinutes.commands,
    "irscope.run": () => runActiveFile(services),
    "irscope.runNotebook": () => runActiveFile(services),
    // The old names of these two, so that the command palette still finds them.
    "irscope.runOnThisFile": () => runActiveFile(services),
    "irscope.runOnThisNotebook": () => runActiveFile(services),
    "irscope.checkWithoutCompile": (failed?: { uri?: string; run?: string }) => checkWithoutCompile(services, failed),
    "irscope.cancel": () => cancelRun(services),
    "irscope.chooseEntry": (argument?: { uri?: string }) => runWithChosenEntry(services, argument?.uri),
    "irscope.selectPipeline": () => selectPipeline(services),
    "irscope.chooseTarget": () => chooseTarget(),
    "irscope.comparePipelines": () => comparePipelines(services),
    "irscope.profile": (from?: { memory?: boolean }) => profile(services, from),
    "irscope.profileAgainst": () => profileAgainst(services),
    "irscope.openTrace": (trace?: vscode.Uri) => openTrace(services, trace),
    "irscope.openArtifact": (artifact?: vscode.Uri) => openArtifact(services, artifact),
    "irscope.showKernel": (place?: Partial<Place>) => showKernel(services, place),
    "irscope.goToLibraryLine": (place?: Partial<Place>) => goToLibraryLine(services, place),
    "irscope.toggleLineColours": () => linked.toggle(),
    "irscope.showStage": () => showStage(services),
    "irscope.showStageToSide": () => showStage(services, true),
    "irscope.showGraph": () => showGraph(services),
    "irscope.showAutotuning": () => showAutotuning(services),
    "irscope.showPipeline": (element?: Element) => showTab(services, "strip", element),
    "irscope.showFindings": (element?: Element) => showTab(services, "findings", element),
    "irscope.showCompileTime": (element?: Element) => showTab(services, "time", element),
    "irscope.showTime": (from?: Element | { run: string; line: number }) => showTime(services, from),
    "irscope.showMemory": (element?: Element) => showTab(services, "memory", element),
    "irscope.showChanges": (element?: Element) => showTab(services, "changes", element),
    "irscope.showComparison": (element?: Element) => showTab(services, "comparison", element),
    "irscope.showRanks": (element?: Element) => showTab(services, "ranks", element),
    "irscope.previousStage": () => stepStage(services, -1),
    "irscope.nextStage": () => stepStage(services, 1),
    "irscope.compareWithPreviousStage": () => compareStage(services),
    "irscope.toggleInlayHints": () => toggleInlayHints(),
    "irscope.showMenu": () => showMenu(services),
    "irscope.restartServer": () => server.restart(),
    "irscope.showLog": async () => channels.server.show(true),
    "irscope.showOutput": async () => channels.script.show(),
    "irscope.refreshRuns": async () => tree.refresh(),
    ...commandsOfElements(services),
  };
  return vscode.Disposable.from(
    followComparable(services),
    ...Object.entries(commands).map(([id, command]) =>
      vscode.commands.registerCommand(id, (...args: unknown[]) => guarded(services, () => command(...args))),
    ),
  );
}

/** The commands that open or run an element of the tree of runs, or a place. */
function commandsOfElements(services: Services): Commands {
  const { documents, graphs, tree } = services;
  return {
    "irscope.showRun": async ({ run, uri, line, next }: { run: string; next?: string } & Partial<Place>) =>
      next === "profile"
        ? profile(services)
        : tree.reveal(run, uri === undefined || line === undefined ? undefined : { uri, line }),
    "irscope.openStage": async (uri: string, line?: number) => {
      await documents.show(uri, line === undefined ? {} : { line });
    },
    "irscope.showPlace": (place: LineOf) => documents.open(place),
    "irscope.openSource": async (element: Element | undefined) => {
      const place = element === undefined ? undefined : sourceOf(element);
      if (place !== undefined) {
        await documents.open(place);
      }
    },
    "irscope.showStageGraph": async (element: Element | undefined) => {
      if (element?.kind === "stage") {
        const { run, stage, title } = element.item;
        graphs.show({ run, stage, title });
      }
    },
    "irscope.runAgain": async (element: Element | undefined) => {
      if (element?.kind === "run") {
        const { script, scriptUri, lane, pipeline } = element.item;
        // A module or a test has no path: it is named as the store names it.
        const entry = /^(-m|pytest) /.test(script) ? script : undefined;
        await runFile(services, vscode.Uri.parse(scriptUri), lane, { entry, pipeline });
      }
    },
  };
}

function sourceOf(element: Element): LineOf | undefined {
  switch (element.kind) {
    case "script":
    case "run":
      return { uri: element.item.scriptUri };
    case "compile":
      return { uri: element.item.uri, line: element.item.line };
    case "kernel":
      return element.item.origins[0];
    default:
      return undefined;
  }
}
