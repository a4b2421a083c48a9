/** Typing goes on undisturbed while deep runs, with the real server and real torch, tell of one thing after the other. */

import * as assert from "node:assert/strict";
import * as fs from "node:fs";
import * as os from "node:os";
import * as path from "node:path";
import { performance } from "node:perf_hooks";
import * as vscode from "vscode";
import { RequestType } from "vscode-languageclient/node";
import { closeAll, internals, until } from "../api/help";

const TYPING_MS = 60_000;
const KEYS = 100;
const CONTROL_MS = 8_000;
const KEY_MS = 60;
const LOOK_MS = 10;
const FRAME_MS = 100;

const SCRIPT = `import torch


@torch.compile
def f(x):
    y = torch.relu(x) * 2
    print("a break")
    return (y @ y).softmax(-1).sum()


for size in (8, 16, 24):
    f(torch.ones(size, size))
`;

interface Known {
  runs: { lane: string; compiles: number }[];
}

interface Pause {
  wall: number;
  /** Milliseconds of it that the event loop's thread was at work. */
  work: number;
}

/** Of this thread alone where Node can tell (from 23.9 on), else of the process with what V8 does beside. */
const cpuUsage: typeof process.cpuUsage =
  (process as { threadCpuUsage?: typeof process.cpuUsage }).threadCpuUsage?.bind(process) ??
  process.cpuUsage.bind(process);

/**
 * Pauses of the extension host's event loop. A machine that is busy with a compile also leaves the process waiting for
 * its turn, which is nobody's fault here: such a pause has little work in it.
 */
function watchPauses(): () => Pause[] {
  const pauses: Pause[] = [];
  let last = performance.now();
  let used = cpuUsage();
  const timer = setInterval(() => {
    const wall = performance.now() - last - LOOK_MS;
    const { user, system } = cpuUsage(used);
    if (wall > FRAME_MS) {
      pauses.push({ wall, work: (user + system) / 1000 });
    }
    last = performance.now();
    used = cpuUsage();
  }, LOOK_MS);
  return () => {
    clearInterval(timer);
    return pauses.filter(({ work }) => work > FRAME_MS * 0.8);
  };
}

/** Types into a comment at the end until the time is over; returns how often. */
async function type(editor: vscode.TextEditor, milliseconds: number): Promise<number> {
  const end = Date.now() + milliseconds;
  let typed = 0;
  for (; Date.now() < end; typed += 1) {
    const { document } = editor;
    const last = document.lineAt(document.lineCount - 1).range.end;
    const text = typed % 40 === 0 ? "\n# " : "typing "[typed % 7];
    assert.ok(await editor.edit((edit) => edit.insert(last, text ?? "")), "the editor took it");
    await new Promise((resolve) => setTimeout(resolve, KEY_MS));
  }
  return typed;
}

describe("typing", function () {
  this.timeout(TYPING_MS + CONTROL_MS + 120_000);
  const launcher = process.env["IRSCOPE_LAUNCHER"];
  let folder = "";
  const autoSave = (value: string | undefined): Thenable<void> =>
    vscode.workspace.getConfiguration("files").update("autoSave", value, vscode.ConfigurationTarget.Global);

  before(async () => {
    folder = fs.mkdtempSync(path.join(os.tmpdir(), "irscope-typing-")); // Here, since a describe runs even if its tests do not.
    await closeAll();
    await autoSave("off"); // A save would start a run of its own, which takes the place of a deep one.
  });

  after(async () => {
    await vscode.commands.executeCommand("workbench.action.files.revert");
    await closeAll();
    await autoSave(undefined);
    fs.rmSync(folder, { recursive: true, force: true }); // After the editor has closed: a save makes the folder again.
    if (launcher !== undefined) {
      process.env["IRSCOPE_LAUNCHER"] = launcher;
    }
    await vscode.commands.executeCommand("irscope.restartServer");
  });

  it("drops no frame in the extension host, nor the server's loop, while deep runs go on", async () => {
    const { server } = await internals();
    assert.ok(launcher !== undefined);
    process.env["IRSCOPE_LAUNCHER"] = path.join(path.dirname(launcher), "watched.py"); // The real one.
    const serverPauses = path.join(folder, "pauses");
    process.env["IRSCOPE_TEST_PAUSES"] = serverPauses;
    await vscode.commands.executeCommand("irscope.restartServer");
    await until("the real server", () => server.status().state === "ready", 60_000);
    const script = path.join(folder, "train.py");
    fs.writeFileSync(script, SCRIPT);
    const editor = await vscode.window.showTextDocument(vscode.Uri.file(script));
    const uri = editor.document.uri.toString();
    const run = new RequestType<object, { outcome: string }, void>("irscope/run");

    const control = watchPauses();
    await type(editor, CONTROL_MS);
    const before = control();

    let typing = true;
    const outcomes: string[] = [];
    const runs = (async () => {
      while (typing) {
        outcomes.push((await server.request(run, { uri, lane: "deep" })).outcome);
      }
    })();
    const watched = watchPauses();
    const typed = await type(editor, TYPING_MS);
    const pauses = watched();
    typing = false;
    const noted = fs.readFileSync(serverPauses, "utf8").trim().split("\n");
    await server.request(new RequestType<object, object, void>("irscope/cancel"), { uri });
    await runs;

    assert.ok(typed > KEYS, `${typed} keys in a minute`);
    const { runs: known } = await server.request(new RequestType<object, Known, void>("irscope/runs"), { uri });
    const compiles = known.filter(({ lane }) => lane === "deep").map((each) => each.compiles);
    assert.ok(
      Math.max(...compiles) > 0,
      `deep runs meanwhile: ${outcomes.join(", ")}; their compiles: ${compiles.join(", ")}`,
    );
    const told = pauses.map(({ wall, work }) => `${Math.round(wall)} ms with ${Math.round(work)} ms of work`);
    assert.ok(pauses.length <= before.length, `dropped frames: ${told.join("; ")} (${before.length} without a run)`);
    assert.equal(noted[0], "watching");
    const ofServer = noted.filter((each) => each !== "watching"); // Once for each start.
    assert.deepEqual(ofServer, [], "what kept the server's event loop");
  });
});
