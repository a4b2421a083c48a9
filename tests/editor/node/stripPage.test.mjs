/** The pipeline in a page of its own: which cards are seen without scrolling, in a wide and in a narrow view. */

import assert from "node:assert/strict";
import { bundle } from "../../../scripts/build.mjs";
import { OF_THE_PAGE_AROUND, violations } from "../accessibility.mjs";
import { launchBrowser } from "../browser.mjs";
import { servePanel } from "../panelPage.mjs";
import { THEMES } from "../themes.mjs";

const SHARED = ["Bytecode", "Dynamo graph", "Pre-grad graph", "Joint graph"];
const SIDE = ["graph", "Post-grad graph", "IR before fusion", "IR after fusion", "Output code", "Kernels"];

/** @param {string} short @param {number} column @param {string} track */
function stageOf(short, column, track) {
  const title = short === "graph" ? `${track === "forward" ? "Forward" : "Backward"} graph` : short;
  const stage = `0/0/${title.toLowerCase().replaceAll(" ", "-")}${track === "backward" ? "-backward" : ""}`;
  const seen = { stage, name: stage, role: "graph", title, short: title, track, column, isGraph: false };
  const entries = [{ stage, title, language: "python", bytes: 2500, uri: `irscope:/r1/${stage}.py` }];
  const none = { beside: [], ops: [], symbols: [], passes: [{ name: "one" }], quiet: [] };
  return { ...seen, bytes: 2500, count: 1242, unit: "nodes", seconds: 7.9, entries, ...none, passes: [] };
}

/** As that of a training step: ten columns, four of them shared by the forward and the backward. */
const STAGES = [
  ...SHARED.map((title, column) => stageOf(title, column, "shared")),
  ...["forward", "backward"].flatMap((track) => SIDE.map((title, at) => stageOf(title, SHARED.length + at, track))),
];
const COMPILES = [{ id: "0/0", function: "step", uri: "", line: 0, graphOps: 61, seconds: 61.9 }];

/** @param {string} method @param {{run: string}} params */
function answer(method, { run }) {
  const runs = [{ run, script: "/train.py", lane: "deep", started: 1, seconds: 2 }];
  const kernels = [{ language: "cpp", count: 20 }];
  const pipeline = {
    run,
    pipeline: "inductor",
    compile: "0/0",
    compiles: COMPILES,
    stages: STAGES,
    kernels,
    reason: "",
    end: null,
    rank: "",
  };
  return JSON.stringify(method === "irscope/runs" ? { runs } : pipeline);
}

describe("the pipeline in a page of its own", () => {
  /** @type {import("playwright-core").Browser} */
  let browser;
  before(async () => {
    await bundle();
    browser = await launchBrowser();
  });
  after(() => browser.close());

  /** @param {keyof typeof THEMES} theme @param {{width: number, height: number}} viewport */
  async function open(theme, viewport) {
    const { kind, css } = THEMES[theme];
    const host = await servePanel("dock", { run: "r1", title: "train.py" }, answer, css, kind);
    const page = await browser.newPage({ viewport });
    await page.goto(host.url);
    const frame = page.frameLocator("iframe");
    await frame.locator(".card").first().waitFor();
    return { page, frame, host };
  }

  /** Titles of the cards that are wholly in sight. @param {import("playwright-core").FrameLocator} frame */
  function inSight(frame) {
    return frame.locator(".strip-scroll").evaluate((scroll) => {
      const edge = scroll.getBoundingClientRect();
      const seen = [...scroll.querySelectorAll(".card")].filter((card) => {
        const { left, right, top, bottom } = card.getBoundingClientRect();
        return left >= edge.left && right <= edge.right && top >= edge.top && bottom <= edge.bottom;
      });
      return seen.map((card) => card.querySelector(".card-title")?.textContent);
    });
  }

  it("shows a training step from its bytecode to its kernels at 1,340 px, with no text cut off", async () => {
    const { page, frame, host } = await open("dark", { width: 1340, height: 270 });
    assert.equal((await inSight(frame)).length, STAGES.length);
    assert.equal(await frame.locator(".more").isVisible(), false);
    const cut = await frame
      .locator(".card")
      .evaluateAll((cards) => cards.filter((card) => card.scrollHeight > card.clientHeight + 1).length);
    assert.equal(cut, 0);
    await page.close();
    host.stop();
  });

  it("goes on below where it is narrow, and says how many cards are out of sight", async () => {
    const { page, frame, host } = await open("light", { width: 400, height: 500 });
    const scroll = frame.locator(".strip-scroll");
    assert.equal(await scroll.evaluate((element) => element.scrollWidth > element.clientWidth), false);
    const more = frame.getByRole("button", { name: /^\d+ more$/ });
    const [hidden] = (await more.innerText()).split(" ");
    assert.ok(Number(hidden) > 0 && Number(hidden) < STAGES.length);
    const [below, shown] = [await more.boundingBox(), await scroll.boundingBox()];
    assert.ok(below !== null && shown !== null && below.y >= shown.y + shown.height, "it lies on no card");
    const boxes = [frame.getByLabel("Compile", { exact: true }), frame.locator(".search")].map((each) =>
      each.boundingBox(),
    );
    const [chooser, search] = await Promise.all(boxes);
    assert.ok(chooser && search && Math.abs(chooser.y - search.y) < 6, "one row is above the cards");
    assert.ok(search.x + search.width <= 400);
    const tops = (/** @type {Element[]} */ tabs) => new Set(tabs.map((tab) => tab.getBoundingClientRect().top)).size;
    assert.equal(await frame.locator(".tabs button").evaluateAll(tops), 1, "and one row has all tabs");
    const inner = page.frames().find((each) => each !== page.mainFrame());
    assert.ok(inner);
    assert.deepEqual(await violations(inner, OF_THE_PAGE_AROUND), []);
    while (await more.isVisible()) {
      await more.click();
    }
    assert.ok((await inSight(frame)).includes("Kernels"));
    await page.close();
    host.stop();
  });
});
