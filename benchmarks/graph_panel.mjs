/**
 * The graph panel with a large graph and the server that answers it, in a headless Chromium without a GPU: the time from
 * the command to the first picture, and frames a second while it is panned and zoomed; medians of five runs.
 *
 *   node benchmarks/graph_panel.mjs [NODES]
 *   node benchmarks/graph_panel.mjs --store FILE RUN STAGE      a stage of a real run
 *
 * The clock starts with the command, in a browser that has come to rest, with a language server that runs but was never
 * asked: the host asks it for the graph and opens the panel's page, as the extension does (`panels/ahead.ts`). It stops
 * when the panel says that it has drawn. What other work on the machine adds to it shows in the processor time beside.
 */

import { execFileSync, spawn } from "node:child_process";
import * as fs from "node:fs";
import * as os from "node:os";
import * as path from "node:path";
import { launchBrowser } from "../tests/editor/browser.mjs";
import { LspClient } from "../tests/editor/lspClient.mjs";
import { servePanel } from "../tests/editor/panelPage.mjs";
import { THEMES } from "../tests/editor/themes.mjs";
import { ROOT, VENV_PYTHON } from "../scripts/lib/paths.mjs";

const RUNS = Number(process.env["RUNS"] ?? 5);
const SECONDS = Number(process.env["SECONDS"] ?? 4);
const TICKS = 100; // Of a second, in /proc.
const home = fs.mkdtempSync(path.join(os.tmpdir(), "irscope-graph-"));
const { store, run, stage } = chosen(process.argv.slice(2));

/** @param {string[]} args */
function chosen(args) {
  if (args[0] === "--store") {
    const [, store = "", run = "", stage = ""] = args;
    return { store, run, stage };
  }
  const store = path.join(home, "runs.db");
  const made = [path.join(ROOT, "benchmarks", "graph_columns.py"), "--make", store, args[0] ?? "50000"];
  const [run = "", stage = ""] = execFileSync(VENV_PYTHON, made, { encoding: "utf8" }).trim().split(" ");
  return { store, run, stage };
}

/** A language server that is ready, as it is in an editor that is open. */
async function startServer() {
  const child = spawn(VENV_PYTHON, ["-m", "irscope_server"], { cwd: home, stdio: ["pipe", "pipe", "inherit"] });
  const client = new LspClient(child);
  const initializationOptions = { python: VENV_PYTHON, storePath: store, run: { onSave: "off" }, trusted: true };
  await client.request("initialize", {
    processId: process.pid,
    rootUri: `file://${home}`,
    capabilities: {},
    initializationOptions,
  });
  client.notify("initialized", {});
  await client.request("irscope/runs", {});
  return { client, pid: child.pid ?? 0 };
}

/** Seconds of a processor that a process has used. @param {number} pid */
function processorTime(pid) {
  const fields = fs.readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
  return (Number(fields[11]) + Number(fields[12])) / TICKS;
}

/** Seconds of a processor that the browser has used: its pages, and what puts them on the screen. @param {import("playwright-core").CDPSession} session */
async function browserTime(session) {
  const { processInfo } = await session.send("SystemInfo.getProcessInfo");
  return processInfo.reduce((all, { cpuTime }) => all + cpuTime, 0);
}

/** In the panel: pans and zooms for some seconds, a step a frame, and gives the times between the frames. */
function move(/** @type {{kind: string, seconds: number}} */ { kind, seconds }) {
  const canvas = /** @type {any} */ (globalThis).document.querySelector("#canvas");
  const { width, height } = canvas.getBoundingClientRect();
  return new Promise((resolve) => {
    /** @type {number[]} */
    const times = [];
    let last = performance.now();
    const begun = last;
    const step = (/** @type {number} */ now) => {
      times.push(now - last);
      last = now;
      const turn = Math.sin((now - begun) / 600);
      const wheel =
        kind === "zoom"
          ? { deltaY: turn * 40, clientX: width / 2, clientY: height / 2 }
          : { deltaX: turn * 30, deltaY: turn * 12, shiftKey: true };
      canvas.dispatchEvent(new WheelEvent("wheel", { ...wheel, bubbles: true, cancelable: true }));
      if (now - begun < seconds * 1000) {
        requestAnimationFrame(step);
      } else {
        resolve(times.slice(2));
      }
    };
    requestAnimationFrame(step);
  });
}

/** @type {Awaited<ReturnType<typeof startServer>>} */
let server;
/** @type {Promise<any> | undefined} */
let ahead;
let payload = "";
let answered = 0;
const pages = await servePanel(
  "graph",
  { run, stage, title: "t" },
  async (method, params) => {
    const result = await (method === "irscope/graph" ? ahead : server.client.request(method, params));
    if (method === "irscope/graph") {
      [payload, answered] = [result.text, performance.now()];
    }
    return JSON.stringify(result);
  },
  THEMES.dark.css,
  THEMES.dark.kind,
);
const browser = await launchBrowser();
const session = await browser.newBrowserCDPSession();
/** @type {Record<string, number[]>} */
const found = {};
const note = (/** @type {string} */ name, /** @type {number} */ value) => (found[name] ??= []).push(value);
const milliseconds = (/** @type {() => unknown} */ work) => {
  const begun = performance.now();
  work();
  return performance.now() - begun;
};
try {
  for (let turn = 0; turn < RUNS; turn += 1) {
    server = await startServer();
    const page = await browser.newPage({ viewport: { width: 1400, height: 900 } });
    await page.waitForTimeout(1500);
    const [ours, theirs, begun] = [processorTime(server.pid), await browserTime(session), performance.now()];
    ahead = server.client.request("irscope/graph", { run, stage, asText: true });
    await page.goto(pages.url);
    const drawn = await page.waitForFunction(
      () => /** @type {any} */ (globalThis).said?.find((/** @type {any} */ each) => each.type === "drawn"),
      null,
      { timeout: 120_000, polling: 10 },
    );
    const first = performance.now() - begun;
    note("first picture, from the command, ms", first);
    note("  of it from the panel's request on, ms", (await drawn.jsonValue()).milliseconds);
    note("  of it until the server's answer was there, ms", answered - begun);
    note("  processor time of the server, ms", (processorTime(server.pid) - ours) * 1000);
    note("  processor time of the browser, ms", ((await browserTime(session)) - theirs) * 1000);
    const parsing = milliseconds(() => JSON.parse(payload));
    const python = milliseconds(() => execFileSync(VENV_PYTHON, ["-c", ""]));
    note("  for comparison: JSON.parse of the answer, ms", parsing);
    note("  for comparison: a start of Python, ms", python);
    note("  first picture in JSON.parses of the answer", first / parsing);
    note("  first picture in starts of Python", first / python);
    const panel = /** @type {import("playwright-core").Frame} */ (page.frames()[1]);
    await page.waitForTimeout(1500);
    for (const [view, button] of [
      ["as opened", ""],
      ["whole graph", "#fit"],
      ["all expanded", "#expand"],
      ["all expanded, whole", "#fit"],
    ]) {
      if (button !== "") {
        const boxes = await panel.locator("#canvas").getAttribute("data-boxes");
        await panel.locator(button ?? "").click();
        if (button === "#expand") {
          const more = (/** @type {string | null} */ before) =>
            /** @type {any} */ (globalThis).document.querySelector("#canvas").dataset.boxes !== before;
          await panel.waitForFunction(more, boxes, { timeout: 120_000 });
        }
        await page.waitForTimeout(1500);
      }
      note(`boxes, ${view}`, Number(await panel.locator("#canvas").getAttribute("data-boxes")));
      for (const kind of ["pan", "zoom"]) {
        const before = await browserTime(session);
        const times = /** @type {number[]} */ (await panel.evaluate(move, { kind, seconds: SECONDS })).sort(
          (a, b) => a - b,
        );
        const mean = times.reduce((all, each) => all + each, 0) / times.length;
        const used = ((await browserTime(session)) - before) * 1000;
        note(`${kind}, ${view}: processor time of a frame, ms`, used / times.length);
        note(`${kind}, ${view}: frames a second`, 1000 / mean);
        note(`${kind}, ${view}: p95 of a frame, ms`, times[Math.floor(times.length * 0.95)] ?? 0);
      }
    }
    await page.close();
    await server.client.end();
  }
} finally {
  await browser.close();
  pages.stop();
  fs.rmSync(home, { recursive: true, force: true });
}
const graph = JSON.parse(payload);
console.log(
  `${graph.nodes.name.length} nodes, ${graph.edges.length / 2} edges, ${(payload.length / 1e6).toFixed(1)} MB; ${os.cpus().length} cores, load ${os.loadavg()[0]?.toFixed(1)}; medians of ${RUNS} runs (least to most)`,
);
for (const [name, values] of Object.entries(found)) {
  const sorted = values.sort((a, b) => a - b);
  const words = (/** @type {number | undefined} */ value) =>
    (value ?? 0).toFixed(name.startsWith("boxes") || name.endsWith(", ms") ? 0 : 1);
  console.log(
    `  ${name.padEnd(52)} ${words(sorted[Math.floor(sorted.length / 2)]).padStart(8)}   (${words(sorted[0])} to ${words(sorted.at(-1))})`,
  );
}
