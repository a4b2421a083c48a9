/** The comparison of pipelines in a page of its own: legible in a wide and in a narrow view, each stage a link. */

import assert from "node:assert/strict";
import path from "node:path";
import { bundle } from "../../../scripts/build.mjs";
import { SCREENSHOTS } from "../../../scripts/lib/paths.mjs";
import { OF_THE_PAGE_AROUND, violations } from "../accessibility.mjs";
import { launchBrowser } from "../browser.mjs";
import { servePanel } from "../panelPage.mjs";
import { THEMES } from "../themes.mjs";
import { until } from "../until.mjs";

const MARKUP = "<img src=x onerror=alert(1)>";
const UNTOLD = "What is captured of it does not include its kernels.";

/** @param {number | null} value */
const figure = (value, why = "") => ({ value, why });
/** @param {number} median */
const time = (median) => ({ median, low: 0.93 * median, high: 1.2 * median, rounds: 9, why: "" });
const NO_TIME = { median: null, low: null, high: null, rounds: 0, why: "The program runs as Python." };

/** @param {string} pipeline @param {string} title @param {string[]} stages @param {object} more */
function made(pipeline, title, stages, more = {}) {
  return {
    pipeline, title, run: `run-${pipeline}`, problem: "", operators: figure(61), taken: figure(60), fused: figure(0),
    kernels: figure(null, UNTOLD), libraryCalls: figure(null, UNTOLD), movedBytes: figure(81920, "operations of the last graph, each by itself"),
    compileSeconds: figure(1.3), call: time(1.31e-4), eager: time(2.4e-4), difference: figure(1.19e-7), relativeDifference: figure(3.2e-8),
    gone: [], left: [],
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

  for (const [theme, width, height] of /** @type {const} */ ([
    ["dark", 1340, 560],
    ["light", 1340, 560],
    ["dark", 400, 640],
    ["light", 400, 640],
  ])) {
    it(`is legible in ${theme} at ${width} px`, async () => {
      const { page, frame, close } = await open(theme, { width, height });
      await frame.locator("table.comparison").waitFor();
      await page.screenshot({ path: path.join(SCREENSHOTS, `comparison-${theme}-${width}.png`) });
      const inner = page.frames().find((each) => each !== page.mainFrame());
      assert.ok(inner);
      assert.deepEqual(await violations(inner, OF_THE_PAGE_AROUND), []);
      const scroll = frame.locator(".body");
      const overflows = await scroll.evaluate((body) => body.scrollWidth > body.clientWidth);
      assert.equal(overflows, width < 1000, "all pipelines are in sight where there is room");
      const cut = await frame
        .locator("td, th")
        .evaluateAll((cells) => cells.filter((cell) => cell.scrollWidth > cell.clientWidth + 1).length);
      assert.equal(cut, 0, "no text is cut off");
      await scroll.evaluate((body) => body.scrollTo(10_000, 10_000));
      const last = frame.locator("tbody th").last();
      const box = await last.evaluate((cell) => cell.getBoundingClientRect().left);
      assert.equal(box, 0, "the names of the rows stay in sight");
      assert.ok(await frame.locator("thead th").last().isVisible());
      await page.screenshot({ path: path.join(SCREENSHOTS, `comparison-${theme}-${width}-end.png`) });
      await close();
    });
  }

  it("shows a dash with its reason where there is no number, and opens each stage of each run", async () => {
    const { page, frame, close } = await open("dark", { width: 1340, height: 700 });
    const kernels = frame.locator("tr", { hasText: "Kernels" }).locator("td");
    await kernels.first().waitFor();
    assert.equal(await kernels.first().innerText(), "12");
    assert.match(await kernels.nth(1).innerText(), /^–/);
    assert.equal(await kernels.nth(1).getAttribute("title"), UNTOLD);
    assert.equal(await frame.locator("img").count(), 0, "what a store says is text");
    assert.equal(await frame.locator("th .problem").innerText(), "The package torchax is missing.");
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
