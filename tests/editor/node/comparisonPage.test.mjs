/** The comparison of pipelines in a page of its own: legible in a wide and in a narrow view, each stage a link. */

import assert from "node:assert/strict";
import path from "node:path";
import { bundle } from "../../../scripts/build.mjs";
import { SCREENSHOTS } from "../../../scripts/lib/paths.mjs";
import { OF_THE_PAGE_AROUND, violations } from "../accessibility.mjs";
import { launchBrowser } from "../browser.mjs";
import { servePanel } from "../panelPage.mjs";
import { looksOf, THEMES } from "../themes.mjs";
import { until } from "../until.mjs";

const MARKUP = "<img src=x onerror=alert(1)>";
const UNTOLD = "What is captured of it does not include its kernels.";

/** @param {number | null} value */
const figure = (value, why = "") => ({ value, why });
/** @param {number} median */
const time = (median) => ({ median, low: 0.93 * median, high: 1.2 * median, rounds: 9, why: "" });
const NO_TIME = { median: null, low: null, high: null, rounds: 0, why: "The program runs as Python." };

/** @typedef {{what: string, why: string, place: {uri: string, line: number}}[]} Told */

/** @param {string} pipeline @param {string} title @param {string[]} stages @param {object} more */
function made(pipeline, title, stages, more = {}) {
  return {
    pipeline, title, run: `run-${pipeline}`, problem: "", operators: figure(61), taken: figure(60), fused: figure(0),
    kernels: figure(null, UNTOLD), libraryCalls: figure(null, UNTOLD), movedBytes: figure(81920, "operations of the last graph, each by itself"),
    compileSeconds: figure(1.3), call: time(1.31e-4), eager: time(2.4e-4), difference: figure(1.19e-7), relativeDifference: figure(3.2e-8),
    gone: /** @type {Told} */ ([]), left: /** @type {Told} */ ([]),
    stages: stages.map((title) => ({ compile: "0/0", title, uri: `irscope:/run-${pipeline}/0/0/${title.replaceAll(" ", "-")}.py` })),
    ...more,
  }; // prettier-ignore
}

const PLACE = { uri: "file:///home/me/train.py", line: 9 };
const PIPELINES = [
  made("inductor", "Inductor", ["Dynamo graph", "Post-grad graph", "IR after fusion", "Output code"], {
    fused: figure(41),
    kernels: figure(12),
    libraryCalls: figure(4),
    movedBytes: figure(40960, "kernels"),
    gone: [{ what: "add_3", why: "Removed by dead code elimination.", place: PLACE }],
  }),
  made("torchscript", "TorchScript", ["Traced graph", "Frozen graph", "Optimized graph"]),
  made("export", "torch.export", ["Exported program", "Exported program after decompositions"], {
    problem: "The script ended with an error.",
    left: [{ what: MARKUP, why: `${MARKUP} was refused.`, place: PLACE }],
  }),
  made("openxla", "OpenXLA", [], {
    run: "",
    problem: "The package torchax is missing.",
    ...Object.fromEntries(
      ["operators", "taken", "fused", "movedBytes", "compileSeconds", "difference", "relativeDifference"].map(
        (name) => [name, figure(null, "The package torchax is missing.")],
      ),
    ),
    call: NO_TIME,
    eager: NO_TIME,
  }),
];

const NAMES = ["inductor", "aotinductor", "dynamo", "export", "onnx", "openvino", "openxla", "torchscript"];
const PROGRAMS = Array.from({ length: 100 }, (_, program) =>
  ["Dynamo graph", "Inference graph", "Output code", "Kernel"].map((title) => ({
    compile: `${program}/0`,
    title,
    uri: `irscope:/many/${program}/0/${title.replaceAll(" ", "-")}.py`,
  })),
).flat();
const LEFT = Array.from({ length: 100 }, (_, index) => ({
  what: `transformer_encoder_layer_with_a_long_name_${index}`,
  why: "graph-break: the function calls what the compiler does not know, so it runs as Python.",
  place: { uri: PLACE.uri, line: index },
}));
const CROWDED = NAMES.map((name) => ({
  ...made(name, name, []),
  stages: PROGRAMS,
  left: LEFT,
  gone: LEFT.slice(0, 9),
  movedBytes: figure(123_456_789_012, "kernels"),
  operators: figure(1_234_567),
  taken: figure(1_234_566),
}));
/** Of the panel, in pixels. */
const HEIGHT = 600;
const CASES = { nothing: [], two: PIPELINES.slice(0, 2), failed: PIPELINES, crowded: CROWDED };

describe("the comparison of pipelines in a page of its own", () => {
  /** @type {import("playwright-core").Browser} */
  let browser;
  before(async () => {
    await bundle();
    browser = await launchBrowser();
  });
  after(() => browser.close());

  /** @param {keyof typeof THEMES} theme @param {{width: number, height: number}} viewport */
  async function open(theme, viewport, pipelines = PIPELINES, reason = "") {
    const { kind, css } = THEMES[theme];
    const answer = () => JSON.stringify({ run: "r1", script: "/home/me/train.py", pipelines, reason });
    const host = await servePanel("comparison", { run: "r1", title: "train.py" }, answer, css, kind);
    const page = await browser.newPage({ viewport });
    await page.goto(host.url);
    const close = async () => {
      await page.close();
      host.stop();
    };
    return { page, frame: page.frameLocator("iframe"), close };
  }

  for (const [turn, [name, pipelines]] of Object.entries(CASES).entries()) {
    for (const [theme, width] of looksOf(turn)) {
      it(`${name}: is legible in ${theme} at ${width} px`, async () => {
        const { page, frame, close } = await open(
          theme,
          { width, height: HEIGHT },
          pipelines,
          "Select “Compare Pipelines…”.",
        );
        await frame.locator(pipelines.length === 0 ? ".notice" : "table.comparison").waitFor();
        const picture = path.join(SCREENSHOTS, `comparison-${name}-${theme}-${width}`);
        await page.screenshot({ path: `${picture}.png` });
        const inner = page.frames().find((each) => each !== page.mainFrame());
        assert.ok(inner);
        assert.deepEqual(await violations(inner, OF_THE_PAGE_AROUND), []);
        const body = frame.locator(".body");
        assert.ok(await body.evaluate((each) => each.scrollWidth <= each.clientWidth), "it does not scroll sideways");
        const cut = await frame
          .locator("td > span:first-child, th, li, .problem")
          .evaluateAll((all) => all.filter((each) => each.scrollWidth > each.clientWidth + 1 && each.clientWidth > 0));
        assert.equal(cut.length, 0, "no text is cut off");
        for (const { pipeline, problem } of pipelines) {
          const box = await frame.locator("p.problem", { hasText: pipeline }).evaluateAll((all) => {
            const last = all.at(-1)?.getBoundingClientRect();
            return last === undefined ? -1 : last.bottom;
          });
          assert.ok(problem === "" ? box === -1 : 0 < box && box < HEIGHT, `${pipeline}: ${box}`);
        }
        await body.evaluate((each) => each.scrollTo(0, 100_000));
        await page.screenshot({ path: `${picture}-end.png` });
        await close();
      });
    }
  }

  it("names of rows and pipelines stay in sight, and no row is higher than its text", async () => {
    const { frame, close } = await open("dark", { width: 1340, height: 200 });
    const head = frame.locator("thead th").last();
    await head.waitFor();
    assert.ok((await head.evaluate((each) => each.getBoundingClientRect().height)) < 60, "no empty band");
    await frame.locator(".body").evaluate((body) => body.scrollTo(0, 100));
    const top = await head.evaluate((each) => each.getBoundingClientRect().top);
    const body = await frame.locator(".body").evaluate((each) => each.getBoundingClientRect().top);
    assert.ok(Math.abs(top - body) < 2, `${top}, ${body}`);
    await close();
  });

  it("what is too much for a list is shown when it is asked for", async () => {
    const { frame, close } = await open("dark", { width: 1340, height: 700 }, CASES.crowded);
    const first = frame.locator(".compared-lists").last().locator("section").first();
    await first.getByText("96 programs more").waitFor();
    assert.equal(await first.getByRole("button").count(), 4 * 4);
    await first.getByText("96 programs more").click();
    await until(
      () => first.getByRole("button").count(),
      (count) => count === 400,
      "all stages",
    );
    await close();
  });

  it("shows a dash with its reason where there is no number, and opens each stage of each run", async () => {
    const { page, frame, close } = await open("dark", { width: 1340, height: 700 });
    const kernels = frame.locator("tr", { hasText: "Kernels" }).locator("td");
    await kernels.first().waitFor();
    assert.equal(await kernels.first().innerText(), "12");
    assert.match(await kernels.nth(1).innerText(), /^–/);
    assert.equal(await kernels.nth(1).getAttribute("title"), UNTOLD);
    assert.equal(await frame.locator("img").count(), 0, "what a store says is text");
    assert.deepEqual(await frame.locator("p.problem").allInnerTexts(), [
      "export failed. The script ended with an error.",
      "openxla failed. The package torchax is missing.",
    ]);
    assert.deepEqual(await frame.locator("thead th").allInnerTexts(), ["inductor", "torchscript", "export\nfailed"]);
    for (const { stages } of PIPELINES) {
      for (const { title, uri } of stages) {
        await frame.getByRole("button", { name: title, exact: true }).click();
        await until(
          () =>
            page.evaluate(() =>
              /** @type {any} */ (globalThis).said.filter((/** @type {any} */ each) => each.type === "open").at(-1),
            ),
          (said) => said?.place.uri === uri && said.place.line === 0,
          `${uri} is opened`,
        );
      }
    }
    await close();
  });

  it("says what to do where nothing was compared", async () => {
    const { frame, close } = await open("light", { width: 400, height: 300 }, [], "Compare them with irscope compare.");
    await frame.locator(".notice-detail", { hasText: "irscope compare" }).waitFor();
    await close();
  });
});
