/** The demo that `npm start` opens by itself, as a newcomer sees it. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import * as fs from "node:fs";
import * as path from "node:path";
import { ROOT, SCREENSHOTS } from "../../../scripts/lib/paths.mjs";
import { OF_THE_PAGE_AROUND, violations } from "../accessibility.mjs";
import { launchBrowser } from "../browser.mjs";
import { pictureOfFailure } from "../home.mjs";
import { Workbench } from "../workbench.mjs";

const SCRIPT = path.join(ROOT, "examples", "gpt_training.py");

describe("the demo of npm start", function () {
  this.timeout(600_000);
  /** @type {import("node:child_process").ChildProcess} */
  let child;
  /** @type {Promise<unknown>} */
  let ended;
  /** @type {import("playwright-core").Browser} */
  let browser;
  /** @type {Workbench} */
  let workbench;
  let output = "";

  before(async () => {
    fs.mkdirSync(SCREENSHOTS, { recursive: true });
    const withoutCode = (process.env["PATH"] ?? "")
      .split(":")
      .filter((folder) => !fs.existsSync(path.join(folder, "code")));
    child = spawn(process.execPath, [path.join(ROOT, "scripts", "start.mjs")], {
      cwd: ROOT,
      env: { ...process.env, PATH: withoutCode.join(":") },
      stdio: ["ignore", "pipe", "pipe"],
    });
    ended = new Promise((resolve) => child.on("close", resolve));
    const address = await new Promise((/** @type {(address: string) => void} */ resolve, reject) => {
      for (const stream of [child.stdout, child.stderr]) {
        stream?.on("data", (chunk) => {
          output += chunk;
          const found = /http:\/\/127\.0\.0\.1:\S+/.exec(output);
          if (found !== null) {
            resolve(found[0]);
          }
        });
      }
      void ended.then(() => reject(new Error(`npm start ended:\n${output}`)));
    });
    browser = await launchBrowser();
    workbench = new Workbench();
    workbench.page = await browser.newPage({ viewport: { width: 1500, height: 940 }, colorScheme: "dark" });
    workbench.page.setDefaultTimeout(90_000); // What it shows comes from a server that is only just starting.
    await workbench.page.goto(address);
    await workbench.ready();
  });

  after(async () => {
    await browser?.close();
    child?.kill("SIGINT");
    await ended;
  });

  afterEach(async function () {
    if (this.currentTest?.state === "failed") {
      await workbench.page.screenshot({ path: pictureOfFailure(this.currentTest.title) });
    }
  });

  it("opens the example, its graph and its pipeline, and goes to the first finding", async () => {
    const { page } = workbench;
    await page.locator(".tab", { hasText: "gpt_training.py" }).first().waitFor({ timeout: 60_000 });
    await page.locator(".tab", { hasText: "Forward graph" }).first().waitFor({ timeout: 300_000 });
    await page.locator(".panel .action-item.checked", { hasText: "IRScope" }).waitFor({ timeout: 60_000 });
    const line =
      fs
        .readFileSync(SCRIPT, "utf8")
        .split("\n")
        .findIndex((text) => text.includes("if loss > 5")) + 1;
    await page.locator(".statusbar-item", { hasText: `Ln ${line}, Col 1` }).waitFor({ timeout: 300_000 });
    await page.locator(".squiggly-warning").first().waitFor({ timeout: 60_000 });
    assert.equal(await page.locator(".editor-group-container").count(), 2);
    assert.equal(await page.locator(".notification-toast").count(), 0, "nothing is in the way");
    await drawn(page, ".card"); // The pipeline.
    await drawn(page, "#canvas[data-scale]"); // The graph, at rest.
    await workbench.screenshot("demo");
    for (const frame of page.frames().filter((each) => each.url().includes("fake.html"))) {
      assert.deepEqual(await violations(frame, OF_THE_PAGE_AROUND), []);
    }
  });

  it("a line's kernel opens beside it", async () => {
    const { page } = workbench;
    await workbench.goToText(SCRIPT, "F.cross_entropy");
    await workbench.command("View: Hide Panel");
    await workbench.command("IRScope: Show Generated Kernel");
    const list = page.locator(".quick-input-list .monaco-list-row").first();
    const kernel = page.locator(".tab", { hasText: ".cpp" }).first();
    await list.or(kernel).first().waitFor({ timeout: 120_000 });
    if (await list.isVisible()) {
      await page.keyboard.press("Enter");
    }
    await kernel.waitFor();
    await page.waitForTimeout(1_500);
    await workbench.screenshot("demo-kernel");
  });
});

/** Waits until there is something in one of the frames of a page. @param {import("playwright-core").Page} page @param {string} what */
async function drawn(page, what) {
  for (const end = Date.now() + 120_000; Date.now() < end; await page.waitForTimeout(250)) {
    const counts = await Promise.all(
      page.frames().map((frame) =>
        frame
          .locator(what)
          .count()
          .catch(() => 0),
      ),
    );
    if (counts.some((count) => count > 0)) {
      return;
    }
  }
  assert.fail(`no frame has ${what}`);
}
