/** The debug adapter, driven by the protocol's own test client, as the extension starts it. */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import * as fs from "node:fs";
import * as path from "node:path";
import { DebugClient } from "@vscode/debugadapter-testsupport";
import { ROOT, VENV_PYTHON } from "../../../scripts/lib/paths.mjs";
import { makeHome } from "../home.mjs";
import { PATIENCE_MS } from "../until.mjs";

const LAUNCHER = path.join(ROOT, "extension", "launch_server.py");
const MAKE_RUN = `
import sys, pathlib
sys.path.insert(0, sys.argv[1])
from dap_runs import small_run
small_run(pathlib.Path(sys.argv[2]) / "runs.db", pathlib.Path(sys.argv[2]))
`;

describe("the debug adapter and the official test client", () => {
  /** @type {string} */
  let home;
  /** @type {DebugClient} */
  let client;

  before(() => {
    home = makeHome("debug");
    execFileSync(VENV_PYTHON, ["-c", MAKE_RUN, path.join(ROOT, "tests", "protocol"), home]);
    // The test client gives its executable one argument, so the flags that the extension gives stand in a script.
    const words = `[sys.executable, "-I", "-S", ${JSON.stringify(LAUNCHER)}, "--dap"]`;
    const start = `import os, sys\nos.execv(sys.executable, ${words})\n`;
    fs.writeFileSync(path.join(home, "start.py"), start);
  });

  after(() => fs.rmSync(home, { recursive: true, force: true }));

  beforeEach(async () => {
    client = new DebugClient(VENV_PYTHON, path.join(home, "start.py"), "irscope");
    client.defaultTimeout = PATIENCE_MS; // against an adapter that hangs; how long it takes to start is no subject here
    await client.start();
  });

  afterEach(() => client.stop());

  /** @param {object} [more] */
  const attach = (more = {}) =>
    client.attachRequest(/** @type {never} */ ({ store: path.join(home, "runs.db"), ...more }));

  it("steps down five levels, and back", async () => {
    const model = path.join(home, "model.py");
    await Promise.all([
      client.waitForEvent("initialized").then(() => client.configurationDoneRequest()),
      client.initializeRequest().then(() => attach()),
      client.assertStoppedLocation("entry", { path: model, line: 11 }),
    ]);
    await Promise.all([
      client.nextRequest({ threadId: 1 }),
      client.assertStoppedLocation("step", { path: model, line: 5 }),
    ]);
    for (let depth = 0; depth < 4; depth++) {
      await Promise.all([client.stepInRequest({ threadId: 1 }), client.waitForEvent("stopped")]);
    }
    const { stackFrames } = (await client.stackTraceRequest({ threadId: 1 })).body;
    assert.deepEqual(
      stackFrames.map(({ source }) => source?.name),
      ["0/0 output-code.py", "0/0 post-grad-graph.py", "0/0 forward-graph.py", "0/0 dynamo-graph.py", "model.py"],
    );
    const { scopes } = (await client.scopesRequest({ frameId: stackFrames[1]?.id ?? 0 })).body;
    const { variables } = (await client.variablesRequest({ variablesReference: scopes[0]?.variablesReference ?? 0 }))
      .body;
    assert.equal(variables.find(({ name }) => name === "dtype")?.value, "torch.float32");
    await Promise.all([client.reverseContinueRequest({ threadId: 1 }), client.waitForEvent("stopped")]);
  });

  it("stops at a breakpoint on a line of the user", async () => {
    const model = path.join(home, "model.py");
    await Promise.all([
      client
        .waitForEvent("initialized")
        .then(() => client.setBreakpointsRequest({ source: { path: model }, breakpoints: [{ line: 6 }] }))
        .then(() => client.configurationDoneRequest()),
      client.initializeRequest().then(() => attach({ stopOn: "none" })),
      client.assertStoppedLocation("breakpoint", { path: model, line: 6 }),
    ]);
  });

  it("shows what a script prints and ends with it", async () => {
    const script = path.join(home, "hello.py");
    fs.writeFileSync(script, 'print("hello")\n');
    await Promise.all([
      client.configurationSequence(),
      client.launch({ program: script, python: VENV_PYTHON, store: path.join(home, "hello.db") }),
      client.assertOutput("stdout", "hello"),
      client.waitForEvent("terminated"),
    ]);
  });

  it("refuses what it does not know", async () => {
    await client.initializeRequest();
    await assert.rejects(client.send("illegal_request"), /Unknown request/);
    await assert.rejects(client.send("setVariable", {}), /cannot|can be looked at/);
  });
});
