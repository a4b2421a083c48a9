/** The page of `irscope view`, on a real run: texts, links, panels, keys, screen readers, and names that are markup. */

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import * as fs from "node:fs";
import * as os from "node:os";
import * as path from "node:path";
import { ROOT, SCREENSHOTS, VENV_PYTHON } from "../../../scripts/lib/paths.mjs";
import { OF_THE_PAGE_AROUND, violations } from "../accessibility.mjs";
import { launchBrowser } from "../browser.mjs";
import { makeHome, pictureOfFailure } from "../home.mjs";
import { load } from "../modules.mjs";
import { itNightly, nightly } from "../themes.mjs";
import { hostileStore, openPage, startView } from "../viewPage.mjs";

const { TABS } = await load("panels/registry");
const SCRIPT = `"""A small model, compiled."""

import torch


@torch.compile
def model(x, weight):
    hidden = torch.relu(x @ weight)
    return (hidden * 2).sum(dim=1)


print(model(torch.ones(16, 32), torch.ones(32, 64)).shape)
`;

describe("irscope view", () => {
  /** @type {string} */
  let home;
  /** @type {string} */
  let store;
  /** @type {string} */
  let script;
  /** @type {import("../viewPage.mjs").View} */
  let view;
  /** @type {import("playwright-core").Browser} */
  let browser;
  /** @type {import("playwright-core").Page | undefined} */
  let page;

  before(async () => {
    home = makeHome("irscope", os.tmpdir());
    store = path.join(home, "runs.db");
    script = path.join(home, "train.py");
    fs.writeFileSync(script, SCRIPT);
    irscope("run", script);
    view = await startView(store, home);
    browser = await launchBrowser();
  });

  after(async () => {
    await browser?.close();
    assert.equal(await view?.stop(), 0);
    fs.rmSync(home, { recursive: true, force: true });
  });

  afterEach(async function () {
    if (this.currentTest?.state === "failed") {
      await page?.screenshot({ path: pictureOfFailure(this.currentTest.title) });
    }
    await page?.close();
    page = undefined;
  });

  /** @param {string[]} args */
  function irscope(...args) {
    const [command = "", ...rest] = args;
    return execFileSync(VENV_PYTHON, ["-m", "irscope", command, "--store", store, ...rest], {
      cwd: ROOT,
      encoding: "utf8",
    });
  }

  /** @param {string} [more] @param {"dark" | "light" | "hc-dark" | "hc-light"} [theme] @param {string} [url] */
  async function open(more = "", theme = "dark", url = view.url) {
    const opened = await openPage(browser, `${url}${more}`, theme);
    page = opened.page;
    return opened;
  }

  for (const theme of /** @type {const} */ (["dark", "hc-light", ...nightly("light", "hc-dark")])) {
    it(`shows the newest run's source beside its summary, and its code, in ${theme}`, async () => {
      const { page, errors } = await open("", theme);
      await page.getByRole("tab", { name: "train.py", exact: true }).waitFor();
      const summary = page.frameLocator("iframe[src^='/panel/summary']");
      await summary.getByText("Nothing stops the compiler here").waitFor();
      await summary.locator("table.measured tbody tr", { hasText: "model" }).first().waitFor();
      await page.waitForTimeout(300);
      await page.screenshot({ path: path.join(SCREENSHOTS, `view-summary-${theme}.png`) });
      assert.deepEqual(await violations(page), []);
      await page.goto(`${new URL(view.url).origin}/#stage=0/0/output-code`);
      await page.locator(".tab", { hasText: "Output code" }).waitFor();
      await page.locator(".tok-keyword", { hasText: "import" }).first().waitFor();
      assert.ok((await page.locator(".column").count()) === 2);
      await page.locator(".cm-line.linked").first().waitFor();
      await page.locator(".column").first().locator(".cm-line", { hasText: "torch.relu" }).click();
      await page.locator(".column").nth(1).locator(".cm-line.counterpart").first().waitFor();
      await page.waitForTimeout(300);
      await page.screenshot({ path: path.join(SCREENSHOTS, `view-${theme}.png`) });
      assert.deepEqual(await violations(page), []);
      assert.deepEqual(errors, []);
      const background = await page.locator("body").evaluate((body) => getComputedStyle(body).backgroundColor);
      const [red = 0] = (background.match(/\d+/g) ?? []).map(Number);
      assert.ok(theme.endsWith("dark") ? red < 60 : red > 200, background);
    });
  }

  it("the token goes out of the address, and without it there is nothing to see", async () => {
    const { page } = await open();
    assert.doesNotMatch(page.url(), /token/);
    await page.reload();
    await page.locator(".row").first().waitFor();
    const stranger = await browser.newPage();
    await stranger.goto(new URL(view.url).origin);
    await stranger.getByText("This page needs the address with its token").waitFor();
    assert.equal(await stranger.locator(".row").count(), 0);
    assert.deepEqual(await violations(stranger), []);
    await stranger.getByLabel("Token").fill(/token=([\w-]+)/.exec(view.url)?.[1] ?? "");
    await stranger.keyboard.press("Enter");
    await stranger.locator(".row").first().waitFor();
    await stranger.close();
  });

  it("is walked with the keys alone", async () => {
    const { page } = await open();
    const focused = () => page.evaluate(() => document.activeElement?.textContent ?? "");
    assert.match(await focused(), /^Summary/, "what is shown");
    await page.keyboard.press("Home");
    assert.match(await focused(), /^completed run of train\.py/);
    for (let step = 0; step < 12 && !(await focused()).startsWith("compile 0/0 model"); step += 1) {
      await page.keyboard.press("ArrowDown");
    }
    assert.match(await focused(), /^compile 0\/0 model ?\d+ ops/);
    await page.keyboard.press("ArrowRight");
    await page.locator(".row", { hasText: "AOTAutograd" }).waitFor();
    await page.keyboard.type("dyn");
    assert.match(await focused(), /^Dynamo ?\d+ stages$/);
    await page.keyboard.press("ArrowRight");
    await page.locator(".row", { hasText: "Dynamo graph" }).waitFor();
    for (let step = 0; step < 6 && !(await focused()).startsWith("Dynamo graph"); step += 1) {
      await page.keyboard.press("ArrowDown");
    }
    assert.match(await focused(), /^Dynamo graph/);
    await page.keyboard.press("Alt+Enter");
    await page.locator(".tab[aria-selected=true]", { hasText: "Dynamo graph" }).waitFor();
    await page.locator(".cm-focused").waitFor();
    assert.match(page.url(), /stage=0\/0\/dynamo-graph/);
    await page.keyboard.press("Control+f");
    await page.locator(".cm-search input").first().waitFor();
    await page.keyboard.press("Escape");
    const tab = page.locator(".tab[aria-selected=true]", { hasText: "Dynamo graph" });
    await tab.focus();
    await page.keyboard.press("Delete");
    await tab.waitFor({ state: "detached" });
    const seen = new Set();
    for (let step = 0; step < 4; step += 1) {
      await page.keyboard.press("F6");
      seen.add(await page.evaluate(() => document.activeElement?.closest("nav, section")?.getAttribute("aria-label")));
    }
    assert.ok(seen.has("Runs") && seen.has("Column 1") && seen.has("Column 2"), [...seen].join());
  });

  it("opens what its address names, and what another terminal asks for", async () => {
    const { page } = await open("&stage=0/0/dynamo-graph&line=3");
    await page.locator(".tab[aria-selected=true]", { hasText: "Dynamo graph" }).waitFor();
    await page.locator(".cm-activeLineGutter", { hasText: "3" }).waitFor();
    assert.match(view.open("--open", `${script}:9`), /is already running/);
    await page.locator(".tab[aria-selected=true]", { hasText: "train.py" }).waitFor();
    await page.locator(".cm-activeLineGutter", { hasText: "9" }).waitFor();
  });

  it("compares a stage with the one before", async () => {
    const { page } = await open("&stage=0/0/post-grad-graph");
    await page.getByRole("button", { name: "Compare with the stage before" }).click();
    await page.locator(".tab[aria-selected=true]", { hasText: "↔" }).waitFor();
    await page.locator(".cm-changedLine").first().waitFor();
    await page.waitForTimeout(300);
    await page.screenshot({ path: path.join(SCREENSHOTS, "view-diff.png") });
    assert.deepEqual(await violations(page), []);
    const { page: other } = await open("&stage=0/0/dynamo-graph");
    await other.getByRole("button", { name: "Copy a link to this line" }).last().waitFor();
    await other.locator(".what", { hasText: "0/0/dynamo-graph" }).waitFor();
    const compare = other.getByRole("button", { name: "Compare with the stage before" });
    assert.equal(await compare.count(), 0, "no graph comes before it");
  });

  for (const theme of /** @type {const} */ (["dark", ...nightly("light", "hc-dark")])) {
    it(`shows every panel, readable for a screen reader, in ${theme}`, async () => {
      const { page, errors } = await open("", theme);
      const panels = (await page.locator("html").getAttribute("data-panels"))?.split(" ") ?? [];
      assert.deepEqual([...panels].sort(), ["graph", ...TABS].sort(), "as many as VS Code has");
      for (const name of panels) {
        const stage = name === "graph" ? "&stage=0/0/forward-graph" : "";
        await page.goto(
          `${new URL(view.url).origin}/#panel=${name}&compile=0/0${stage.replace("forward", "inference")}`,
        );
        const element = page.locator(`iframe[src^='/panel/${name}']`).last(); // The summary is open from the start, too.
        await element.waitFor();
        const frame = await (await element.elementHandle())?.contentFrame();
        assert.ok(frame, name);
        await frame.waitForFunction(() => (document.body?.innerText.trim().length ?? 0) > 20);
        if (name === "graph") {
          await page.locator("iframe[data-drawn][src^='/panel/graph']").waitFor();
        }
        await page.waitForTimeout(1_000);
        await page.screenshot({ path: path.join(SCREENSHOTS, `view-panel-${name}-${theme}.png`) });
        assert.deepEqual(await violations(frame, OF_THE_PAGE_AROUND), [], name);
        const focusable = await frame.locator("button, [tabindex='0'], input, select, a[href]").count();
        // The first run of a script has nothing to compare with, its pipelines were not compared, and it has one process: texts.
        assert.ok(
          focusable > 0 || ["measured", "changes", "comparison", "ranks"].includes(name),
          `${name} can be reached with the keyboard`,
        );
      }
      assert.deepEqual(errors, []);
    });
  }

  itNightly("shows a run while it goes on", async () => {
    const { page } = await open();
    const slow = path.join(home, "slow.py");
    fs.writeFileSync(
      slow,
      `import time, torch\n\n@torch.compile\ndef f(x):\n    print("a")\n    return x\n\nf(torch.ones(2))\ntime.sleep(${2})\n`,
    );
    const run = spawn(VENV_PYTHON, ["-m", "irscope", "run", "--store", store, "--lane", "fast", slow], {
      cwd: ROOT,
      stdio: "ignore",
    });
    const ended = new Promise((resolve) => run.on("close", resolve));
    await page.locator(".row[data-tone=busy]", { hasText: "slow.py" }).waitFor({ timeout: 60_000 });
    await page.locator(".row[data-tone=good]", { hasText: "slow.py" }).waitFor({ timeout: 60_000 });
    await page.locator(".row", { hasText: "slow.py" }).filter({ hasText: "1 finding" }).waitFor();
    assert.equal(await ended, 0);
  });

  it("says what to do where there is no run yet", async () => {
    const empty = await startView(path.join(home, "empty.db"), home);
    try {
      const { page, errors } = await open("", "light", empty.url);
      await page.getByRole("heading", { name: "No run yet" }).waitFor();
      await page.getByText("irscope run train.py").waitFor();
      await page.screenshot({ path: path.join(SCREENSHOTS, "view-empty.png") });
      assert.deepEqual(await violations(page), []);
      assert.deepEqual(errors, []);
    } finally {
      await empty.stop();
    }
  });

  it("names and texts that are markup are shown as text", async () => {
    const hostile = hostileStore(home);
    const other = await startView(hostile.store, home);
    try {
      const { page, errors } = await open("", "dark", other.url);
      let hacked = false;
      await page.exposeFunction("hacked", () => {
        hacked = true;
      });
      const closed = page.locator(".row[aria-expanded=false] .twist");
      while ((await closed.count()) > 0) {
        await closed.first().click();
        await page.waitForTimeout(100);
      }
      const rows = await page.locator(".row:not([aria-expanded]), .row[aria-level='1']").all();
      assert.ok(rows.length >= 6, String(rows.length));
      for (const row of rows) {
        await row.locator(".label").click({ modifiers: ["Alt"] });
        await page.waitForTimeout(150);
      }
      await page.waitForTimeout(1_500);
      await page.screenshot({ path: path.join(SCREENSHOTS, "view-hostile.png") });
      for (const frame of page.frames()) {
        assert.equal(await frame.locator("img:not(.cm-widgetBuffer), script:not([src]), b").count(), 0, frame.url());
        assert.equal(await frame.locator("a[href^='javascript:'], a[href^='command:']").count(), 0, frame.url());
      }
      assert.match(await page.locator(".tree").innerText(), /<img src=x onerror/, "it is there, as text");
      for (const frame of page.frames()) {
        assert.doesNotMatch(await frame.locator("body").innerText(), /[\u001b\u202e]/, frame.url());
      }
      assert.ok((await page.locator(".cm-specialChar", { hasText: "\\u202e" }).count()) > 0);
      assert.equal(hacked, false);
      assert.deepEqual(errors, []);
    } finally {
      await other.stop();
    }
  });
});
