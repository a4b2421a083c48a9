/** The panel of a value in a page of its own, with pictures from a real value process: by mouse and keyboard, in three themes. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import * as fs from "node:fs";
import * as os from "node:os";
import * as path from "node:path";
import * as readline from "node:readline";
import { ensureBuilt } from "../../../scripts/build.mjs";
import { ROOT, SCREENSHOTS, VENV_PYTHON } from "../../../scripts/lib/paths.mjs";
import { OF_THE_PAGE_AROUND, violations } from "../accessibility.mjs";
import { launchBrowser } from "../browser.mjs";
import { servePanel } from "../panelPage.mjs";
import { LOOKS, nightly, THEMES } from "../themes.mjs";
import { until } from "../until.mjs";

const BOOT = path.join(ROOT, "compiler", "irscope", "driver", "boot.py");
/** What stands in the file of values, one tensor behind the other. @type {Record<string, {shape: number[], at: (n: number) => number}>} */
const TENSORS = {
  value: { shape: [2, 3, 12, 20], at: (n) => Math.sin(n / 7) * (1 + Math.floor(n / 240)) },
  broken: {
    shape: [8, 8],
    at: (n) => (n === 9 ? NaN : n === 18 ? Infinity : n === 27 ? -Infinity : n - 20),
  },
  large: { shape: [700, 900], at: (n) => (n === 123_456 ? 1000 : (n % 900) / 900) },
  scalar: { shape: [], at: () => 2.5 },
  row: { shape: [40], at: (n) => n * n },
  compiled: { shape: [12, 20], at: (n) => Math.sin(n / 9) * (n === 105 ? 1.5 : 1) },
  eager: { shape: [12, 20], at: (n) => Math.sin(n / 9) },
  float64: { shape: [12, 20], at: (n) => Math.sin(n / 9) },
};

/** Starts a value process on the tensors above. @param {string} folder */
function valueProcess(folder) {
  const file = path.join(folder, "values.bin");
  const parts = [];
  /** @type {Record<string, object>} */
  const tensors = {};
  let offset = 0;
  for (const [name, { shape, at }] of Object.entries(TENSORS)) {
    const count = shape.reduce((a, b) => a * b, 1);
    const data = Buffer.from(Float32Array.from({ length: count }, (_, n) => at(n)).buffer);
    tensors[name] = { kind: "tensor", dtype: "float32", shape, offset, bytes: data.length };
    parts.push(data);
    offset += data.length;
  }
  fs.writeFileSync(file, Buffer.concat(parts));
  const child = spawn(VENV_PYTHON, [BOOT, "values"], { stdio: ["pipe", "pipe", "inherit"] });
  const lines = readline.createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const ready = lines.next();
  /** @type {Promise<unknown>} */
  let last = ready;
  return {
    stop: () => child.kill(),
    /** @param {string} _method @param {{expression: string, view: object}} params @returns {Promise<string>} */
    answer(_method, { expression, view }) {
      const mine = last.then(async () => {
        child.stdin.write(`${JSON.stringify({ text: expression, file, tensors, view })}\n`);
        const answer = JSON.parse((await lines.next()).value ?? "{}");
        if (answer.error !== undefined) {
          throw new Error(answer.error);
        }
        const compared = ["compiled", "eager", "float64"];
        return JSON.stringify({
          expression,
          node: "mm_1",
          stage: "0/0/forward-graph",
          compared,
          picture: answer.picture,
        });
      });
      last = mine.catch(() => undefined);
      return mine;
    },
  };
}

describe("the panel of a value", () => {
  /** @type {import("playwright-core").Browser} */
  let browser;
  /** @type {ReturnType<typeof valueProcess>} */
  let values;
  /** @type {string} */
  let folder;
  /** @type {(() => unknown)[]} */
  const ends = [];

  before(async () => {
    fs.mkdirSync(SCREENSHOTS, { recursive: true });
    folder = fs.mkdtempSync(path.join(os.tmpdir(), "irscope-values-"));
    values = valueProcess(folder);
    await ensureBuilt();
    browser = await launchBrowser();
  });

  after(async () => {
    values?.stop();
    await browser?.close();
    fs.rmSync(folder, { recursive: true, force: true });
  });

  afterEach(async () => {
    await Promise.all(ends.splice(0).map((end) => end()));
  });

  /** @param {string} expression @param {keyof typeof THEMES} [theme] @param {{width: number, height: number}} [viewport] */
  async function panel(expression, theme = "dark", viewport = { width: 1100, height: 720 }) {
    const { kind, css } = THEMES[theme];
    const subject = { run: "", stage: expression, title: "Value" };
    const host = await servePanel("values", subject, (method, params) => values.answer(method, params), css, kind);
    const page = await browser.newPage({ viewport });
    ends.push(
      () => page.close(),
      () => host.stop(),
    );
    await page.goto(host.url);
    const frame = page.frameLocator("iframe");
    await frame.locator(".heatmap, .notice").first().waitFor({ timeout: 60_000 });
    const inner = page.frames().find((each) => each.url().endsWith("/panel"));
    assert.ok(inner);
    return { page, frame, inner };
  }

  /** @param {import("playwright-core").FrameLocator} frame @param {RegExp} pattern */
  const reads = (frame, pattern) =>
    until(
      () => frame.locator(".readout").innerText(),
      (text) => pattern.test(text),
      String(pattern),
    );

  it("shows a slice of four dimensions, by keyboard alone", async () => {
    const { page, frame } = await panel("value");
    await reads(frame, /^\[0, 0, 0, 0\] = 0$/);
    await frame.locator(".heatmap").focus();
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowRight");
    await reads(frame, /^\[0, 0, 1, 1\] = 0\.14112$/);
    const index = frame.getByLabel("Index of dimension 1, of 3");
    await index.fill("2");
    await index.press("Enter");
    await reads(frame, /^\[0, 2, 1, 1\] = /);
    const elements = 2 * 240 + 21;
    await reads(frame, new RegExp(`= ${Number((Math.sin(elements / 7) * 3).toPrecision(5))}$`.replace(".", "\\.")));
    assert.equal(await index.evaluate((each) => each === each.ownerDocument.activeElement), true);
    await frame.getByLabel("Rows").selectOption("0");
    await reads(frame, /^\[1, 2, 0, 1\] = /);
    assert.equal(await frame.getByLabel("Index of dimension 2, of 12").count(), 1);
  });

  it("looks closer at a large tensor, whose picture is no larger than a screen", async () => {
    const { page, frame } = await panel("large");
    assert.equal(
      await frame
        .locator("canvas")
        .evaluate((/** @type {HTMLCanvasElement} */ each) => each.width * each.height <= 192 * 192),
      true,
    );
    await frame.getByLabel("A cell of several elements is").selectOption("largest");
    await frame.locator("text=the element of the largest magnitude").waitFor();
    assert.equal(
      await frame.locator(".scale-legend .code").nth(1).innerText(),
      "1000",
      "an outlier is not averaged away",
    );
    await frame.locator(".heatmap").focus();
    const zoomedTo = [
      /^rows 0–349, columns 0–449 /,
      /^rows 88–262, columns 114–338 /,
      /^rows 132–219, columns 171–283 /,
    ];
    for (let zoomed = 0; zoomed < 3; zoomed += 1) {
      await page.keyboard.press("+");
      await frame.locator(".picture-side .dim").last().filter({ hasText: zoomedTo[zoomed] }).waitFor();
    }
    assert.match(
      await frame.locator(".picture-side .dim").last().innerText(),
      /^rows \d+–\d+, columns \d+–\d+ of 700 × 900$/,
    );
    assert.equal(await frame.locator(".heatmap").evaluate((each) => each === each.ownerDocument.activeElement), true);
    await page.keyboard.press("0");
    await frame.locator("text=700 × 900; a cell is").waitFor();
  });

  it("shows what compiled code has, and how far it is off", async () => {
    const { page, frame, inner } = await panel("value");
    await frame.getByLabel("Compare").selectOption("compiled - float64");
    await frame.locator("h2", { hasText: "compiled - float64" }).waitFor();
    await frame.locator(".heatmap").hover({ position: { x: 5, y: 5 } });
    await page.screenshot({ path: path.join(SCREENSHOTS, "value-difference-dark.png") });
    const off = Math.sin(105 / 9) * 0.5;
    await frame.locator(".heatmap").focus();
    for (const key of [...Array(5).fill("ArrowRight"), ...Array(5).fill("ArrowDown")]) {
      await page.keyboard.press(key);
    }
    const [, told] = /= (.*)$/.exec(await reads(frame, /^\[5, 5\] = /)) ?? [];
    assert.ok(Math.abs(Number(told) - off) < 1e-4, `${told}, not ${off}`);
    assert.deepEqual(await violations(inner, OF_THE_PAGE_AROUND), []);
  });

  it("at another frame shows what was typed again, and no comparison that was chosen at the one before", async () => {
    const { page, frame } = await panel("value");
    const stepped = () =>
      page.evaluate(() => {
        const inner = document.querySelector("iframe")?.contentWindow;
        inner?.postMessage({ type: "changed", run: "", running: false }, "*");
      });
    await frame.locator("input.search").fill("row * 2");
    await frame.locator("input.search").press("Enter");
    await frame.locator("h2", { hasText: "row * 2" }).waitFor();
    await frame.locator("h2").evaluate((each) => each.setAttribute("data-old", ""));
    await stepped();
    await frame.locator("h2:not([data-old])", { hasText: "row * 2" }).waitFor();
    await frame.getByLabel("Compare").selectOption("eager");
    await frame.locator("h2", { hasText: "eager" }).waitFor();
    await stepped();
    await frame.locator("h2", { hasText: "mm_1" }).waitFor();
  });

  it("tells what cannot be shown, and stays usable", async () => {
    const { frame } = await panel("nothing + 1");
    await frame.locator(".notice", { hasText: "no value of 'nothing' here" }).waitFor();
    await frame.getByRole("button", { name: "Try Again" }).waitFor();
  });

  it("shows scalars and rows", async () => {
    const { frame } = await panel("scalar");
    await reads(frame, /^\[\] = 2\.5$/);
    const other = await panel("row");
    await other.frame.locator(".heatmap").focus();
    await other.page.keyboard.press("ArrowRight");
    await other.page.keyboard.press("ArrowRight");
    await reads(other.frame, /^\[2\] = 4$/);
  });

  for (const [theme, width] of LOOKS) {
    it(`fits into ${width} px, in ${theme}: picture, histogram, statistics and comparison`, async () => {
      for (const name of ["value", "broken", "large", "difference"]) {
        const { page, frame } = await panel(name === "difference" ? "value" : name, theme, { width, height: 700 });
        await frame.locator(".heatmap").waitFor();
        if (name === "difference") {
          await frame.getByLabel("Compare").selectOption("compiled - float64");
          await frame.locator("h2", { hasText: "compiled - float64" }).waitFor();
        }
        const wider = await frame
          .locator("*")
          .evaluateAll((all) =>
            all.filter((each) => each.scrollWidth > each.clientWidth && each.matches(".body, body")),
          );
        assert.equal(wider.length, 0, `${name} does not scroll sideways`);
        await page.screenshot({ path: path.join(SCREENSHOTS, `value-${name}-${theme}-${width}.png`) });
        await frame.locator(".body").evaluate((each) => each.scrollTo(0, 10_000));
        await page.screenshot({ path: path.join(SCREENSHOTS, `value-${name}-${theme}-${width}-end.png`) });
      }
    });
  }

  for (const theme of /** @type {const} */ (["contrast", ...nightly("dark", "light")])) {
    it(`marks what is not finite by sign and word, and axe finds nothing wrong, in ${theme}`, async () => {
      const { page, frame, inner } = await panel("broken", theme);
      await reads(frame, /^\[0, 0\] = -20$/);
      assert.equal(await frame.locator(".signs span").count(), 3);
      assert.deepEqual(await frame.locator(".scale-legend .not-finite").allInnerTexts(), ["✕\nNaN", "▲\n+∞", "▼\n−∞"]);
      assert.equal(await frame.locator(".alarming").count(), 3);
      assert.deepEqual(await violations(inner, OF_THE_PAGE_AROUND), []);
      await page.screenshot({ path: path.join(SCREENSHOTS, `value-${theme}.png`) });
      const sliced = await panel("value", theme, { width: 620, height: 900 });
      assert.deepEqual(await violations(sliced.inner, OF_THE_PAGE_AROUND), []);
      await sliced.page.screenshot({ path: path.join(SCREENSHOTS, `value-slices-${theme}.png`) });
    });
  }
});
