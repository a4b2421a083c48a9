/**
 * `npm start` on a machine that is set up: findings in the terminal, then the desktop editor, or one in the browser with
 * the demo that a newcomer sees.
 */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import * as fs from "node:fs";
import * as path from "node:path";
import { CACHE, ROOT } from "../../../scripts/lib/paths.mjs";
import { OF_THE_PAGE_AROUND, violations } from "../accessibility.mjs";
import { launchBrowser, openEditor } from "../browser.mjs";
import { makeHome, pictureOfFailure } from "../home.mjs";
import { itNightly } from "../themes.mjs";
import { PATIENCE_MS, until } from "../until.mjs";
import { Workbench } from "../workbench.mjs";

/** Not the user's own; it stays, so that the examples need not be run again. */
const STORE = path.join(CACHE, "start", "tests", "runs.db");
const SCRIPT = "gpt_training.py";

/** How long the batches of the example are, one after the other. */
const STEPS = "(17, 17, 25, 33, 17, 25)";

describe("npm start", () => {
  /** @type {string} */
  let home;

  before(() => {
    home = makeHome("start");
  });

  after(() => fs.rmSync(home, { recursive: true, force: true }));

  itNightly("prints the findings and opens the desktop editor where there is one", async () => {
    const code = path.join(home, "code");
    fs.writeFileSync(code, `#!/bin/sh\nprintf '%s\\n' "$@" > '${home}/arguments'\n`, { mode: 0o755 });
    const { exit, output } = await start([], { PATH: `${home}:${process.env["PATH"]}` }).ended;
    assert.equal(exit, 0, output);
    assert.match(output, /GB0170/);
    const args = fs.readFileSync(path.join(home, "arguments"), "utf8").split("\n");
    assert.ok(args.includes(`--extensionDevelopmentPath=${ROOT}`), args.join(" "));
    const workspace = args.find((argument) => argument.endsWith(".code-workspace")) ?? "";
    const { folders, settings } = JSON.parse(fs.readFileSync(workspace, "utf8"));
    assert.deepEqual(folders, [{ path: path.join(ROOT, "examples") }]);
    assert.equal(settings["irscope.python"], path.join(ROOT, ".venv", "bin", "python"));
    assert.equal(settings["irscope.storePath"], STORE, "that of the command line");
  });

  it("refuses what it does not know", async () => {
    const { exit, output } = await start(["--twice"], {}).ended;
    assert.equal(exit, 2);
    assert.match(output, /Usage: npm start/);
  });

  itNightly("shows the first finding in a page while the editor for the browser is being built", async () => {
    const running = start([], { PATH: withoutCode(), XDG_CACHE_HOME: path.join(home, "nothing-built") });
    let browser;
    try {
      const address = await running.until(/http:\/\/127\.0\.0\.1:\S+(?=\s)/);
      browser = await launchBrowser();
      const page = await browser.newPage({ viewport: { width: 1340, height: 840 }, colorScheme: "dark" });
      page.setDefaultTimeout(PATIENCE_MS);
      await page.goto(address);
      await page.getByText("if loss > 5").first().waitFor();
      await page
        .getByText(/graph is cut here/)
        .first()
        .waitFor();
      await page.screenshot({ path: path.join(ROOT, ".screenshots", "start-view.png") });
    } finally {
      await browser?.close();
      const before = children(running.child.pid ?? 0);
      process.kill(-(running.child.pid ?? 0), "SIGINT"); // As a terminal does for Ctrl-C.
      await running.ended;
      await until(
        async () => before.filter(isAlive).map(commandOf),
        (left) => left.length === 0,
        "no process is left",
        10_000,
      );
    }
    const cache = path.join(home, "nothing-built", "irscope");
    const unfinished = fs.readdirSync(cache).filter((name) => name.includes(".partial-"));
    assert.deepEqual(unfinished, [], "what was built in part is removed");
    assert.doesNotMatch((await running.ended).output, /Starting VS Code/, "the editor was still being built");
  });

  describe("where there is no desktop editor", () => {
    /** @type {ReturnType<typeof start>} */
    let running;
    let address = "";
    /** @type {import("playwright-core").Browser} */
    let browser;
    const workbench = new Workbench();
    let script = "";

    before(async () => {
      script = path.join(home, "examples", SCRIPT);
      fs.mkdirSync(path.dirname(script));
      // As in rendering.test.mjs, whose kernels these are, too; the tests above run both examples whole.
      const source = fs.readFileSync(path.join(ROOT, "examples", SCRIPT), "utf8");
      assert.ok(source.includes(STEPS));
      fs.writeFileSync(script, source.replace(STEPS, "(17, 17)"));
      running = start([], { PATH: withoutCode(), IRSCOPE_EXAMPLES: path.dirname(script) });
      address = await running.until(/http:\/\/127\.0\.0\.1:\S+(?=\s)/);
      browser = await launchBrowser();
    });

    after(async () => {
      await browser?.close();
      running?.child.kill("SIGINT");
      await running?.ended;
    });

    afterEach(async function () {
      if (this.currentTest?.state === "failed") {
        for (const page of browser.contexts().flatMap((context) => context.pages())) {
          await page.screenshot({ path: pictureOfFailure(this.currentTest.title) }).catch(() => undefined);
        }
      }
    });

    it("serves one in the browser, with a token", async () => {
      assert.equal((await fetch(new URL(address).origin)).status, 401);
      assert.equal((await fetch(address, { redirect: "manual" })).status, 302);
    });

    it("opens the example, its graph and its pipeline, and goes to the first finding", async () => {
      const page = await browser.newPage({
        viewport: { width: 1500, height: 940 },
        colorScheme: "dark",
        reducedMotion: "reduce",
      });
      workbench.page = page;
      page.setDefaultTimeout(PATIENCE_MS); // What it shows comes from a server that is only just starting.
      await openEditor(page, address);
      await workbench.ready();
      await page.locator(".tab", { hasText: "gpt_training.py" }).first().waitFor({ timeout: 60_000 });
      await page.locator(".tab", { hasText: "Forward graph" }).first().waitFor({ timeout: 300_000 });
      await page.locator(".panel .action-item.checked", { hasText: "IRScope" }).waitFor({ timeout: 60_000 });
      const line =
        fs
          .readFileSync(script, "utf8")
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
      await workbench.goToText(script, "F.cross_entropy");
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

    it("ends with Ctrl-C, and leaves nothing", async () => {
      const before = children(running.child.pid ?? 0);
      assert.ok(before.length > 0);
      running.child.kill("SIGINT");
      const { exit } = await running.ended;
      assert.equal(exit, 0);
      await assert.rejects(fetch(new URL(address).origin), "nothing listens any more");
      await until(
        async () => before.filter(isAlive).map(commandOf),
        (left) => left.length === 0,
        "no process is left",
        10_000,
      );
    });
  });
});

/** The PATH without the desktop editor's command. */
function withoutCode() {
  const folders = (process.env["PATH"] ?? "").split(":");
  return folders.filter((folder) => !fs.existsSync(path.join(folder, "code"))).join(":");
}

/** @param {string[]} args @param {NodeJS.ProcessEnv} env */
function start(args, env) {
  const child = spawn(process.execPath, [path.join(ROOT, "scripts", "start.mjs"), ...args], {
    cwd: ROOT,
    env: { ...process.env, IRSCOPE_STORE: STORE, ...env },
    stdio: ["ignore", "pipe", "pipe"],
    detached: true, // A process group of its own, which gets a Ctrl-C as a whole.
  });
  let output = "";
  const watchers = /** @type {(() => void)[]} */ ([]);
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (chunk) => {
      output += chunk;
      watchers.forEach((look) => look());
    });
  }
  const ended = new Promise((/** @type {(end: {exit: number | null, output: string}) => void} */ resolve) => {
    child.on("close", (exit) => resolve({ exit, output }));
  });
  /** @param {RegExp} pattern @returns {Promise<string>} */
  const until = (pattern) =>
    new Promise((resolve, reject) => {
      watchers.push(() => {
        const found = pattern.exec(output);
        if (found !== null) {
          resolve(found[0]);
        }
      });
      void ended.then(() => reject(new Error(`ended without ${pattern}:\n${output}`)));
    });
  return { child, ended, until };
}

/** The processes below one, at any depth. @param {number} root @returns {number[]} */
function children(root) {
  /** @type {Map<number, number[]>} */
  const below = new Map();
  for (const name of fs.readdirSync("/proc").filter((each) => /^\d+$/.test(each))) {
    try {
      const parent = Number(/\) \S (\d+)/.exec(fs.readFileSync(`/proc/${name}/stat`, "utf8"))?.[1]);
      below.set(parent, [...(below.get(parent) ?? []), Number(name)]);
    } catch {
      // It has ended meanwhile.
    }
  }
  const found = [root];
  for (const pid of found) {
    found.push(...(below.get(pid) ?? []));
  }
  return found.slice(1);
}

/** @param {number} pid */
function isAlive(pid) {
  try {
    return !/\) Z /.test(fs.readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return false;
  }
}

/** A process as a person reads it. @param {number} pid */
function commandOf(pid) {
  try {
    return `${pid} ${fs.readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ").slice(0, 300)}`;
  } catch {
    return `${pid}`;
  }
}

/** Waits until there is something in one of the frames of a page, which tell what they show instead. @param {import("playwright-core").Page} page @param {string} what */
const drawn = (page, what) =>
  until(
    () =>
      Promise.all(
        page.frames().map(async (frame) => {
          try {
            const text = await frame.evaluate(() => document.body.innerText);
            return { url: frame.url(), text, count: await frame.locator(what).count() };
          } catch {
            return { count: 0 }; // It is gone already, or is another place's.
          }
        }),
      ),
    (frames) => frames.some(({ count }) => count > 0),
    `${what} in a frame`,
  );
