/**
 * Names and texts of a malicious script, and of a store that came from elsewhere, are text wherever VS Code shows them:
 * no markup, no link, no icon, no command, and no character that turns the direction.
 */

import assert from "node:assert/strict";
import * as fs from "node:fs";
import * as path from "node:path";
import { onScreen } from "../screen.mjs";
import { PATIENCE_MS, until } from "../until.mjs";
import { hostileStore } from "../viewPage.mjs";

const RUN_MS = 120_000;
/** As a run of it would look like: the function, the exception and what it says have such a name. */
const SCRIPT = `\
import torch

NAME = "f<img src=x onerror=parent.hacked()>$(bug)[l](command:workbench.action.closeAllEditors)\\x1b[31m\\u202eevil"


def renamed(function):
    qualified = {"co_qualname": NAME} if hasattr(function.__code__, "co_qualname") else {}
    function.__code__ = function.__code__.replace(co_name=NAME, **qualified)
    return function


@torch.compile(backend="eager")
@renamed
def f(x):
    for _ in range(300):  # long enough to be seen in the status bar
        x = x.relu() * 2
    return x


f(torch.ones(8))
raise type(NAME, (Exception,), {})(NAME)
`;

describe("a malicious script in the editor", () => {
  const workbench = onScreen({
    name: "hostile",
    viewport: { width: 1500, height: 1000 },
    settings: {
      "irscope.run.onSave": "off",
      "editor.minimap.enabled": false,
      "editor.fontSize": 12,
    },
    open: (home) => {
      const folder = path.join(home, "work");
      fs.mkdirSync(path.join(folder, ".vscode"), { recursive: true });
      fs.writeFileSync(path.join(folder, "raises.py"), SCRIPT);
      const { store } = hostileStore(folder);
      fs.writeFileSync(path.join(folder, ".vscode", "settings.json"), JSON.stringify({ "irscope.storePath": store }));
      return folder;
    },
  });
  let hacked = false;

  before(async () => {
    await workbench.page.exposeFunction("hacked", () => {
      hacked = true;
    });
  });

  /** Opens a file from the explorer: quick open shows the file's name with an icon, which is VS Code's own affair. @param {string} name */
  async function open(name) {
    const { page } = workbench;
    await workbench.command("View: Show Explorer");
    await page.locator(".explorer-folders-view .monaco-list-row", { hasText: name }).dblclick();
    await page.locator(".tab.active", { hasText: name }).waitFor();
  }

  /** Nothing on the screen was made of what the script said. */
  async function isHarmless() {
    for (const frame of workbench.page.frames()) {
      const found = await frame
        .evaluate(() => ({
          elements: [...document.querySelectorAll("img[src='x'], .codicon-bug")].map((each) => each.outerHTML),
          links: [...document.querySelectorAll("a")]
            .map((each) => each.getAttribute("data-href") ?? each.getAttribute("href") ?? "")
            .filter((href) => /^(?:javascript|data):|closeAllEditors|127\.0\.0\.1:9/.test(href)),
        }))
        .catch(() => ({ elements: [], links: [] })); // A frame that has gone meanwhile.
      assert.deepEqual(found, { elements: [], links: [] }, frame.url());
    }
    assert.equal(hacked, false, "its script ran");
  }

  /** What a part of the window says, in which nothing is hidden and nothing turns. @param {string} selector */
  async function said(selector) {
    const text = (await workbench.page.locator(selector).allInnerTexts()).join("\n").replaceAll("\u00a0", " ");
    assert.doesNotMatch(text, /[\u202e\u001b]/, selector);
    return text;
  }

  /**
   * Notes in the window what a part of it says from now on, so that nothing is missed, however busy the machine is. Gives what
   * asks for all of it.
   * @param {string} selector @returns {Promise<() => Promise<string[]>>}
   */
  async function allSaid(selector) {
    const seen = await workbench.page.evaluateHandle((parts) => {
      const texts = /** @type {Set<string>} */ (new Set());
      const look = () =>
        document
          .querySelectorAll(parts)
          .forEach((each) => texts.add((each.textContent ?? "").replaceAll("\u00a0", " ")));
      new MutationObserver(look).observe(document.body, { subtree: true, childList: true, characterData: true });
      return texts;
    }, selector);
    return () => seen.evaluate((texts) => [...texts]);
  }

  it("in the status bar while it runs, and in the message at its end", async () => {
    const { page } = workbench;
    await open("raises.py");
    await page
      .locator(".codelens-decoration a, .statusbar-item[id*='irscope'] .codicon-check")
      .first()
      .waitFor({ timeout: RUN_MS });
    const phases = await allSaid(".statusbar-item[id*='irscope'], .notification-list-item");
    await workbench.command("IRScope: Analyze This File");
    const message = page.locator(".notification-list-item", { hasText: "IRScope: f<img src=x" });
    await message.first().waitFor({ timeout: RUN_MS });
    assert.match(await said(".notification-list-item"), /\$\(bug\)\[l\] \(command:workbench.action.closeAllEditors\)/);
    await workbench.screenshot("hostile-notification");
    await isHarmless();
    const seen = await phases();
    seen.forEach((each) => assert.doesNotMatch(each, /[\u202e\u001b]/));
    assert.ok(
      seen.some((each) => /f<img src=x.*\$ ?\(bug\)/.test(each)),
      `a phase was seen: ${seen.join(" | ")}`,
    );
    await workbench.command("Notifications: Clear All Notifications");
  });

  it("in the problems and in the hover", async () => {
    const { page } = workbench;
    await open("raises.py");
    await page.locator(".view-line", { hasText: "raise" }).last().locator("span span").first().click();
    await workbench.command("Show or Focus Hover");
    await page.locator(".monaco-hover:not(.hidden)", { hasText: "f<img" }).first().waitFor({ timeout: PATIENCE_MS });
    await page.waitForTimeout(600);
    assert.match(
      await said(".monaco-hover:not(.hidden)"),
      /\$\(bug\)\[l\]\(command:workbench.action.closeAllEditors\)/,
    );
    await workbench.screenshot("hostile-hover");
    await isHarmless();
    await page.keyboard.press("Escape");
    await workbench.command("Problems: Focus on Problems View");
    await page.locator(".markers-panel .monaco-list-row", { hasText: "f<img" }).first().waitFor();
    await until(
      () => said(".markers-panel"),
      (text) => text.includes("\\u202eevil"),
      "the name among the problems",
    );
    await isHarmless();
    await workbench.command("IRScope: Show Script Output");
    await page.waitForTimeout(1_000);
    await workbench.screenshot("hostile-output");
    await isHarmless();
  });

  it("in the runs' tree", async () => {
    await workbench.command("IRScope: Focus on Runs View");
    const tree = workbench.page.locator(".pane-body .monaco-list", { has: workbench.page.locator("text=/train/") });
    await tree.first().waitFor({ timeout: PATIENCE_MS });
    await tree.locator(".monaco-list-row", { hasText: "train<img" }).first().click();
    const focused = tree.locator(".monaco-list-row.focused");
    await until(
      () => focused.getAttribute("aria-expanded"),
      (expanded) => expanded === "true",
      "the click has opened the row",
    );
    const level = async (/** @type {import("playwright-core").Locator} */ row) =>
      (await row.count()) > 0 ? Number(await row.getAttribute("aria-level")) : 0;
    for (let step = 0; step < 24; step += 1) {
      const index = Number(await focused.getAttribute("data-index"));
      const next = tree.locator(`.monaco-list-row[data-index="${index + 1}"]`);
      const expanded = await focused.getAttribute("aria-expanded");
      if (expanded !== null) {
        const own = await level(focused);
        if (expanded === "false") {
          await workbench.page.keyboard.press("ArrowRight");
        }
        await until(
          () => level(next),
          (below) => below > own,
          "the row's children are there",
        );
      }
      if ((await next.count()) === 0) {
        break;
      }
      await workbench.page.keyboard.press("ArrowDown");
      await until(
        () => focused.getAttribute("data-index"),
        (now) => now === String(index + 1),
        "the next row has the focus",
      );
    }
    await workbench.screenshot("hostile-tree");
    const parts = ["0/0 f<img src=x onerror=parent.hacked()>", "$(bug)", "\\u202eevil", "\\u001b[31m", "gap<img"];
    await until(
      () => said(".pane-body .monaco-list"),
      (text) => parts.every((part) => text.includes(part)),
      parts.join(),
    );
    await isHarmless();
  });

  it("in the list of stages, also where what was typed is marked in it", async () => {
    const { page } = workbench;
    await open("raises.py");
    await page.locator(".statusbar-item[id*='irscope']").first().waitFor({ timeout: RUN_MS });
    await workbench.command("IRScope: Focus on Runs View");
    await page.locator(".pane-body .monaco-list-row", { hasText: "train<img" }).first().click();
    const stage = page.locator(".pane-body .monaco-list-row", { hasText: "Bytecode" }).first();
    for (let step = 0; step < 20 && !(await stage.isVisible()); step += 1) {
      await page.keyboard.press("ArrowRight"); // Opens a row, or goes to the first one in it.
      await page.waitForTimeout(400);
    }
    await stage.click();
    await page.locator(".tab.active", { hasText: "bytecode" }).waitFor();
    await workbench.command("IRScope: Show Stage…");
    const row = page.locator(".quick-input-list .monaco-list-row", { hasText: "Pass<img src=x" }).first();
    for (const typed of ["", "[l]", "\\"]) {
      await page.locator(".quick-input-widget input").fill(typed);
      await row.waitFor({ timeout: PATIENCE_MS });
      assert.match(await said(".quick-input-list"), /Pass<img src=x onerror=.*\$ \(bug\)\[l\]\(command:/);
      await isHarmless();
    }
    await workbench.screenshot("hostile-list");
    await page.keyboard.press("Escape");
  });

  it("in the panels", async () => {
    const { page } = workbench;
    await open("train<img");
    for (const [command, text] of /** @type {const} */ ([
      ["IRScope: Show Findings", "<script>parent.hacked"],
      ["IRScope: Show Pipeline", "f<img src=x"],
    ])) {
      await workbench.command(command);
      const frame = workbench.webview();
      await frame.getByText(text).first().waitFor({ timeout: PATIENCE_MS, state: "attached" });
      await page.waitForTimeout(500);
      assert.doesNotMatch((await frame.locator("body").textContent()) ?? "", /[\u202e\u001b]/);
      await workbench.screenshot(`hostile-${text.startsWith("<") ? "findings" : "pipeline"}`);
      await isHarmless();
    }
  });

  it("in the debugger", async () => {
    const { page } = workbench;
    await workbench.command("View: Show Run and Debug");
    await workbench.command("IRScope: Debug Stored Run");
    await page.locator(".debug-toolbar").waitFor({ timeout: PATIENCE_MS });
    await until(
      () => said(".debug-pane, .debug-viewlet .pane-body"),
      (text) => /f<img/.test(text),
      "the names in the debugger's views",
    );
    await page.waitForTimeout(1_000); // The rest of the views comes after the first.
    await said(".debug-pane, .debug-viewlet .pane-body");
    await workbench.screenshot("hostile-debug");
    assert.doesNotMatch(await said(".repl"), /\u202e/);
    await isHarmless();
    await workbench.command("Debug: Stop");
    await page.locator(".debug-toolbar").waitFor({ state: "hidden" });
  });
});
