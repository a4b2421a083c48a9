/** The demo that `npm start` opens by itself, as a newcomer sees it; and the pictures of the README, taken from it. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import * as fs from "node:fs";
import * as path from "node:path";
import { ROOT, SCREENSHOTS } from "../../../scripts/lib/paths.mjs";
import { OF_THE_PAGE_AROUND, violations } from "../accessibility.mjs";
import { launchBrowser } from "../browser.mjs";
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
    const page = await browser.newPage({ viewport: { width: 1500, height: 940 } });
    workbench = new Workbench(page, SCREENSHOTS);
    await page.goto(address);
    await workbench.ready();
  });

  after(async () => {
    await browser?.close();
    child?.kill("SIGINT");
    await ended;
  });

  afterEach(async function () {
    if (this.currentTest?.state === "failed") {
      await workbench?.screenshot(`failed-${this.currentTest.title.replace(/\W+/g, "-")}`);
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
    const frames = await Promise.all(
      page.frames().map((frame) =>
        frame
          .locator(".card, canvas")
          .count()
          .catch(() => 0),
      ),
    );
    assert.ok(frames.filter((count) => count > 0).length >= 2, "the graph and the pipeline are drawn");
    await page.waitForTimeout(1_500); // The graph comes to rest.
    await workbench.screenshot("demo");
    for (const frame of page.frames().filter((each) => each.url().includes("fake.html"))) {
      assert.deepEqual(await violations(frame, OF_THE_PAGE_AROUND), []);
    }
  });
});
