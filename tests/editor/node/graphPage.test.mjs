/** The graph panel in a page of its own: what a screen reader gets, in three themes, and what is exported. */

import assert from "node:assert/strict";
import * as fs from "node:fs";
import * as path from "node:path";
import { ensureBuilt } from "../../../scripts/build.mjs";
import { SCREENSHOTS } from "../../../scripts/lib/paths.mjs";
import { violations } from "../accessibility.mjs";
import { launchBrowser } from "../browser.mjs";
import { servePanel } from "../panelPage.mjs";
import { LOOKS, nightly, THEMES } from "../themes.mjs";
import { until } from "../until.mjs";

const EVIL = '<img src=x onerror="alert(1)">';

/** Two layers, an input and an output, as the server sends them. @param {boolean} compared */
function graph(compared) {
  const ops = ["placeholder", "aten.mm", "aten.relu", `aten.${EVIL}`, "output"];
  const op = [0, 1, 2, 1, 3, 4];
  const nodes = op.map((_, at) => at);
  return {
    title: "Forward graph of f (0/0)",
    stageUri: "irscope:/r/0/0/forward-graph.py",
    beforeUri: compared ? "irscope:/r/0/0/joint-graph.py" : null,
    compareWith: compared ? "0/0/joint-graph" : null,
    versions: [
      { stage: "0/0/forward-graph", title: "Forward graph", pass: "tidy", before: "0/0/joint-graph", backward: false },
    ],
    nodes: {
      name: ["x", "mm", "relu", "mm_1", "odd", "output"],
      kind: [0, 2, 2, 2, 2, 3],
      op,
      original: [-1, -1, 0, -1, -1, -1],
      detail: [0, 0, 0, 0, 0, -1],
      dtype: [0, 0, 0, 0, 0, -1],
      device: [0, 0, 0, 0, 0, -1],
      bytes: [1024, 1024, 1024, 1024, 1024, null],
      moved: [null, 3072, 2048, 3072, 2048, null],
      flops: [null, 8192, null, 8192, null, null],
      module: [-1, 0, 0, 1, 1, -1],
      home: [-1, 0, 0, 1, 1, -1],
      backward: nodes.map(() => 0),
      line: nodes,
      file: nodes.map(() => 0),
      originLine: nodes,
      ...(compared ? { state: [0, 0, 2, 3, 1, 0] } : {}),
    },
    edges: [0, 1, 1, 2, 2, 3, 3, 4, 4, 5],
    ops,
    originals: [["aten.hardtanh"]],
    details: ["f32[16, 16][16, 1]cpu"],
    dtypes: ["f32"],
    devices: ["cpu"],
    modules: [
      { path: ["model", "layers", "0"], type: "Block" },
      { path: ["model", "layers", "1"], type: EVIL },
    ],
    files: ["file:///w/a.py"],
    symbols: [{ name: "s17", source: "L['x'].size()[0]", text: "16 in this compile, 2 to ∞" }],
    targets: [{ name: "a device", bandwidth: 1e9, rates: [{ dtype: "f32", flops: 1e12 }] }],
  };
}

/** The same nodes as a schedule: two are fused, two are not. */
function schedule() {
  const made = graph(false);
  return {
    ...made,
    nodes: { ...made.nodes, group: [-1, 0, 0, -1, -1, -1], places: made.nodes.name.map(() => []) },
    groups: [{ name: "mm_relu", type: "FusedSchedulerNode" }],
    decisions: [
      { first: [1], second: [2], fused: true, kind: "vertical", why: "9" },
      { first: [2], second: [3], fused: false, kind: "vertical", why: `too far apart ${EVIL}` },
    ],
  };
}

const KERNELS = {
  calls: ["cpp_fused_mm_0", "cpp_fused_relu_1"].map((name) => ({
    name,
    call: 1,
    place: { uri: `irscope:/r/${name}.cpp`, line: 3 },
  })),
  nodes: [[], [0], [0], [1], [1], []],
};

/** @param {string} method @param {{compareWith?: string}} params */
const answer = (method, params) =>
  JSON.stringify(method === "irscope/graph" ? graph(params.compareWith !== undefined) : KERNELS);

describe("the graph panel in a page", () => {
  /** @type {import("playwright-core").Browser} */
  let browser;
  /** @type {(() => unknown)[]} */
  const ends = [];

  before(async () => {
    fs.mkdirSync(SCREENSHOTS, { recursive: true });
    await ensureBuilt();
    browser = await launchBrowser();
  });

  after(async () => {
    await browser?.close();
  });

  afterEach(() => {
    ends.splice(0).forEach((end) => end());
  });

  /** @param {keyof typeof THEMES} name @param {(method: string, params: any) => string | Promise<string>} [answers] */
  async function open(name, answers = answer) {
    const server = await servePanel(
      "graph",
      { run: "r", stage: "0/0/forward-graph", title: "T" },
      answers,
      THEMES[name].css,
      THEMES[name].kind,
    );
    ends.push(server.stop);
    const page = await browser.newPage({ viewport: { width: 900, height: 700 }, reducedMotion: "reduce" });
    ends.push(() => page.close());
    /** @type {string[]} */
    const errors = [];
    page.on("pageerror", (error) => errors.push(error.message));
    await page.goto(server.url);
    const panel = /** @type {import("playwright-core").Frame} */ (page.frames()[1]);
    await panel.locator("#tree [role=treeitem]").first().waitFor({ state: "attached" });
    const said = (/** @type {string} */ type) =>
      page.evaluate(
        (wanted) => /** @type {any} */ (globalThis).said.filter((/** @type {any} */ each) => each.type === wanted),
        type,
      );
    return { page, panel, said, errors };
  }

  for (const theme of /** @type {(keyof typeof THEMES)[]} */ (["dark", "contrast", ...nightly("light")])) {
    it(`says what it shows to a screen reader, and is legible: ${theme}`, async () => {
      const { page, panel, errors } = await open(theme);
      await panel.locator("#tree").focus();
      await panel.locator("#tree").press("ArrowDown");
      await panel.locator("#search").fill("mm");
      await panel.locator("#results [role=option]").first().waitFor();
      await page.waitForTimeout(300);
      await page.screenshot({ path: path.join(SCREENSHOTS, `graph-page-${theme}.png`) });
      assert.deepEqual(await violations(panel), []);
      assert.deepEqual(errors, []);
    });
  }

  it("the tree follows the selection into clusters and out of them", async () => {
    const { panel, said } = await open("dark");
    const tree = panel.locator("#tree");
    const selected = async () => (await panel.locator("#tree [aria-selected=true]").getAttribute("aria-label")) ?? "";
    await tree.focus();
    await tree.press("ArrowDown");
    assert.match(await selected(), /^x, placeholder, f32/);
    await tree.press("ArrowDown");
    assert.equal(await selected(), "model.layers, 4 nodes, open");
    assert.equal(await panel.locator("#tree [aria-selected=true]").getAttribute("aria-expanded"), "true");
    await tree.press("Control+ArrowDown");
    assert.equal(await selected(), "0, Block, 2 nodes, open");
    await tree.press("-");
    await panel.locator('#tree [aria-label="0, Block, 2 nodes, closed"]').waitFor({ state: "attached" });
    await tree.press("ArrowDown");
    assert.equal(await selected(), `1, ${EVIL}, 2 nodes, open`, "along the wire to the next layer");
    await tree.press("Control+ArrowDown");
    assert.match(await selected(), /^mm_1, /);
    assert.equal(await panel.locator("#path").innerText(), "model.layers\n›\n1\n›\nmm_1");
    await tree.press("k");
    await tree.press("Enter");
    await tree.press("Escape");
    assert.match(await selected(), /^1, /);
    assert.deepEqual(
      (await said("open")).map((/** @type {any} */ message) => message.place),
      [
        { uri: "irscope:/r/cpp_fused_relu_1.cpp", line: 3 },
        { uri: "file:///w/a.py", line: 3 },
      ],
    );
  });

  it("lands on the nodes of some lines of its stage, in clusters that were closed", async () => {
    const { page, panel } = await open("dark");
    const land = (/** @type {number[]} */ lines) =>
      page.evaluate(
        (at) => {
          const inner = document.querySelector("iframe")?.contentWindow;
          inner?.postMessage({ type: "land", at }, "*");
        },
        { uri: "irscope:/r/0/0/forward-graph.py", lines },
      );
    await panel.locator("#collapse").click();
    await panel.locator('#tree [aria-label^="model.layers, 4 nodes, closed"]').waitFor({ state: "attached" });
    await land([3, 4]);
    await panel.locator('#tree [aria-selected=true][aria-label^="mm_1, "]').waitFor({ state: "attached" });
    assert.equal(await panel.locator("#canvas").getAttribute("data-linked"), "2");
    await land([99]);
    await page.waitForTimeout(200);
    const selected = panel.locator("#tree [aria-selected=true]");
    assert.match((await selected.getAttribute("aria-label")) ?? "", /^mm_1, /, "nothing else is there to go to");
  });

  it("lands once there is a picture, where it was asked for before", async () => {
    const gate = { asked: () => {}, release: () => {} };
    const asked = new Promise((resolve) => (gate.asked = () => resolve(undefined)));
    const released = new Promise((resolve) => (gate.release = () => resolve(undefined)));
    const opened = open("dark", async (method, params) => {
      gate.asked();
      await released;
      return answer(method, params);
    });
    await asked;
    const page = browser
      .contexts()
      .flatMap((context) => context.pages())
      .at(-1);
    await page?.evaluate(() => {
      const at = { uri: "irscope:/r/0/0/forward-graph.py", lines: [2] };
      document.querySelector("iframe")?.contentWindow?.postMessage({ type: "land", at }, "*");
    });
    gate.release();
    const { panel } = await opened;
    await panel.locator('#tree [aria-selected=true][aria-label^="relu, "]').waitFor({ state: "attached" });
  });

  it("estimates times for no device but one that was chosen", async () => {
    const { panel } = await open("light");
    assert.equal(await panel.locator("#target").isVisible(), false);
    await panel.locator("#colour").selectOption("time");
    const legend = panel.locator("#legend");
    assert.equal(
      (await legend.innerText()).trim(),
      "This graph ran on cpu. Choose a device to estimate times for; a profile of the script measures this CPU.",
    );
    await panel.locator("#search").fill("mm_1");
    await panel.locator("#search").press("Enter");
    await panel.locator("#details-facts", { hasText: "moves" }).waitFor();
    assert.doesNotMatch(await panel.locator("#details-facts").innerText(), /lower bound/i);
    const ran = await panel.locator("#target option:disabled").innerText();
    assert.equal(ran, "this CPU (used by the run): Profile This File measures it");
    await panel.getByLabel("Estimate for").selectOption("a device");
    assert.match(await legend.innerText(), /^Lower bound on a device\. This graph ran on cpu\.\s+≤ /);
    assert.match(await panel.locator("#details-facts").innerText(), /lower bound on a device\s+3\.07 µs/i);
    assert.deepEqual(await violations(panel), []);
  });

  it("estimates times for the GPU that the run used", async () => {
    const ran = { devices: ["cuda:0"], gpu: "A Device 80GB", ranOn: "a device" };
    const answers = (/** @type {string} */ method) =>
      JSON.stringify(method === "irscope/graph" ? { ...graph(false), ...ran } : KERNELS);
    const { panel } = await open("light", answers);
    await panel.locator("#colour").selectOption("time");
    const legend = panel.locator("#legend");
    assert.match(await legend.innerText(), /^Lower bound on a device\. This graph ran on cuda:0 \(A Device 80GB\)\./);
    assert.equal(await panel.locator("#target option:checked").innerText(), "a device (used by the run)");
    await panel.getByLabel("Estimate for").selectOption("");
    assert.match(await legend.innerText(), /Choose a device/, "another choice counts");
  });

  it("says that the peak rates of the run's GPU are not known", async () => {
    const ran = { devices: ["cuda:0"], gpu: EVIL, ranOn: "" };
    const answers = (/** @type {string} */ method) =>
      JSON.stringify(method === "irscope/graph" ? { ...graph(false), ...ran } : KERNELS);
    const { panel } = await open("light", answers);
    await panel.locator("#colour").selectOption("time");
    const said = (await panel.locator("#legend").innerText()).trim();
    const rates = "The peak rates of this GPU are not known here. Choose a device to estimate times for.";
    assert.equal(said, `This graph ran on cuda:0 (${EVIL}). ${rates}`);
  });

  it("groups by kernel, and shows nothing but the matches", async () => {
    const { panel } = await open("dark");
    await panel.locator("#grouping").selectOption("kernel");
    await panel.locator('#tree [aria-label^="cpp_fused_relu_1, kernel, 2 nodes"]').waitFor({ state: "attached" });
    await panel.locator("#colour").selectOption("kernel");
    await panel.locator("#legend li", { hasText: "cpp_fused_mm_0" }).waitFor();
    await panel.locator("#search").fill("op:mm");
    assert.equal(await panel.locator("#matches").innerText(), "2");
    await panel.locator("#only").click();
    await panel.locator("#canvas[data-boxes='2']").waitFor();
    await panel.locator("#search").fill("");
    await panel.locator("#canvas:not([data-boxes='2'])").waitFor();
  });

  for (const theme of /** @type {const} */ (["dark", ...nightly("light", "contrast")])) {
    it(`a schedule shows what was fused, and what was not and why: ${theme}`, async () => {
      const { page, panel, errors } = await open(theme, (method, params) =>
        method === "irscope/graph" ? JSON.stringify(schedule()) : answer(method, params),
      );
      assert.equal(await panel.locator("#grouping").inputValue(), "fusion");
      const fused = panel.locator('#tree [aria-label^="mm_relu, fused, 2 nodes, open"]');
      const tree = panel.locator("#tree");
      await tree.focus();
      await panel.locator("#search").fill("name:relu");
      await panel.locator("#search").press("Enter");
      await fused.waitFor({ state: "attached" });
      assert.equal(await panel.locator("#details-name").innerText(), "relu");
      const links = await panel.locator("#details-links").innerText();
      assert.match(links, /fused with\s*mm\b/);
      assert.match(links, /not fused with\s*mm_1\b/);
      assert.ok(links.endsWith(` — too far apart ${EVIL}`), links);
      await page.waitForTimeout(300);
      await page.screenshot({ path: path.join(SCREENSHOTS, `graph-schedule-${theme}.png`) });
      assert.deepEqual(await violations(panel), []);
      await panel.locator("#details-links button", { hasText: "mm_1" }).last().click();
      assert.equal(await panel.locator("#details-name").innerText(), "mm_1");
      assert.deepEqual(errors, []);
    });
  }

  for (const [theme, width] of LOOKS) {
    it(`everything has its place at ${width} pixels, and the legend is below the picture: ${theme}`, async () => {
      const { page, panel, errors } = await open(theme);
      await page.setViewportSize({ width, height: 700 });
      await panel.locator("#search").fill("mm");
      await panel.locator("#search").press("Enter");
      await panel.locator("#tree").focus();
      await panel.locator("#details").waitFor();
      await page.waitForTimeout(300);
      await page.screenshot({ path: path.join(SCREENSHOTS, `graph-page-${theme}-${width}.png`) });
      const places = await panel.evaluate(() => {
        const { document } = /** @type {any} */ (globalThis);
        const wanted = "#toolbar input, #toolbar > .group button, #toolbar label, #matches, #legend, #canvas, #details";
        const shown = [...document.querySelectorAll(wanted)].filter((/** @type {any} */ each) => !each.hidden);
        return shown.map((/** @type {any} */ each) => {
          const { left, top, right, bottom } = each.getBoundingClientRect();
          return { name: each.id || each.textContent, left, top, right, bottom };
        });
      });
      assert.ok(places.length >= 13, JSON.stringify(places));
      for (const [at, one] of places.entries()) {
        assert.ok(one.left >= 0 && one.right <= width && one.right > one.left, `${one.name} is inside of the panel`);
        for (const other of places.slice(at + 1)) {
          const apart =
            one.right <= other.left || other.right <= one.left || one.bottom <= other.top || other.bottom <= one.top;
          assert.ok(apart, `${one.name} and ${other.name} do not overlap`);
        }
      }
      const heights = places.filter(({ name }) => ["search", "matches", "only", "export"].includes(name));
      assert.equal(new Set(heights.map(({ top, bottom }) => Math.round((top + bottom) / 2))).size, 1, "in one row");
      const narrowest = await panel.evaluate(() => {
        const selects = [
          .../** @type {any} */ (globalThis).document.querySelectorAll("#choices label:not([hidden]) select"),
        ];
        return Math.min(...selects.map((each) => each.clientWidth));
      });
      assert.ok(narrowest >= 90, `${narrowest} pixels are enough for what is chosen`);
      assert.equal(await panel.getByRole("button", { name: "Only Matches" }).count(), 1, "an icon has its name");
      assert.equal(await panel.getByRole("button", { name: "Export…" }).count(), 1);
      assert.deepEqual(await violations(panel), []);
      assert.deepEqual(errors, []);
    });
  }

  it("says what an operation was decomposed from", async () => {
    const { panel } = await open("dark");
    await panel.locator("#search").fill("op:hardtanh");
    await panel.locator("#search").press("Enter");
    assert.equal(await panel.locator("#details-name").innerText(), "relu");
    assert.match(await panel.locator("#details-facts").innerText(), /decomposed from\s*aten\.hardtanh/);
  });

  it("the buttons over the picture are not the picture", async () => {
    const { page, panel } = await open("dark");
    // The first picture ends with the view that it is seen in, which is not the one in which its boxes are made.
    const atRest = panel.locator("#canvas[data-nodes][data-scale]");
    await atRest.waitFor();
    const boxes = await atRest.getAttribute("data-boxes");
    const before = Number(await atRest.getAttribute("data-scale"));
    // The first click brings the minimap, and the button stays where it is.
    const { x, y, width, height } = /** @type {{x: number, y: number, width: number, height: number}} */ (
      await panel.locator("#zoom-in").boundingBox()
    );
    await page.mouse.click(x + width / 2, y + height / 2);
    await panel.locator("#minimap").waitFor();
    await page.mouse.click(x + width / 2, y + height / 2, { clickCount: 2 });
    await panel.waitForFunction(
      (less) => Number(/** @type {any} */ (globalThis).document.querySelector("#canvas").dataset.scale) > less,
      before * 1.5,
    );
    assert.equal(await panel.locator("#canvas").getAttribute("data-boxes"), boxes, "nothing was opened beneath them");
    assert.equal(await panel.locator("#details").isHidden(), true, "nor selected");
  });

  it("is fitted again when its room changes, until somebody moves it", async () => {
    const { page, panel } = await open("dark");
    const scale = async () => Number(await panel.locator("#canvas[data-nodes][data-scale]").getAttribute("data-scale"));
    const before = await scale();
    const resized = async (/** @type {number} */ height) => {
      await page.setViewportSize({ width: 900, height });
      await panel.waitForFunction((wanted) => /** @type {any} */ (globalThis).innerHeight === wanted, height);
      return until(scale, (now) => !Number.isNaN(now), "the picture is at rest");
    };
    await page.setViewportSize({ width: 900, height: 420 });
    const smaller = await until(scale, (now) => now < before, "all of it is in view in less room");
    await panel.locator("#zoom-in").click();
    const chosen = await until(scale, (now) => now > smaller, "it zooms in");
    assert.equal(await resized(700), chosen, "what somebody chose is kept");
  });

  it("exports the picture as SVG and the graph as DOT, with foreign text as text", async () => {
    const { page, panel, said } = await open("light");
    await panel.locator("#compare").selectOption({ label: "tidy" });
    await panel.locator("#legend li", { hasText: "removed" }).waitFor();
    await panel.evaluate(() => {
      const { document } = /** @type {any} */ (globalThis);
      const grouping = document.querySelector("#grouping");
      grouping.dispatchEvent(new Event("change"));
      document.querySelector("#export-svg").click(); // While the graph is laid out again: it is saved when it is there.
    });
    await panel.locator("#export").click();
    await panel.locator("#export-dot").click();
    await panel.locator("#export").click();
    await panel.locator("#export-dot-shown").click();
    // A click does not wait for the text to be made.
    const [svg, whole, shown] = await until(
      async () => said("save"),
      (saved) => saved.length >= 3,
      "three exports",
    );
    assert.deepEqual([svg.name, whole.name], ["Forward-graph-of-f-0-0.svg", "Forward-graph-of-f-0-0.dot"]);
    const parsed = await page.evaluate((text) => {
      const root = new DOMParser().parseFromString(text, "image/svg+xml");
      const names = new Set([...root.querySelectorAll("*")].map((each) => each.nodeName));
      return { names: [...names].sort(), texts: [...root.querySelectorAll("text")].map((each) => each.textContent) };
    }, svg.text);
    assert.deepEqual(parsed.names, ["path", "polygon", "rect", "svg", "text", "title"]);
    assert.ok(parsed.texts.includes(EVIL), "the operation's name is shown as it is");
    assert.ok(
      ["+", "−", "~"].every((sign) => parsed.texts.includes(sign)),
      "changes are told without colours, too",
    );
    assert.equal(whole.text.match(/->/g)?.length, 5);
    assert.equal(whole.text.match(/subgraph cluster_/g)?.length, 3);
    assert.match(shown.text, /label="x\\nf32\[16, 16\]"/);
  });
});
