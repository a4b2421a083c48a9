/** What a user does with the mouse and the keyboard in a VS Code in the browser. */

import * as fs from "node:fs";
import * as path from "node:path";
import { SCREENSHOTS } from "../../scripts/lib/paths.mjs";
import { PATIENCE_MS } from "./until.mjs";

export class Workbench {
  /** @type {import("playwright-core").Page | undefined} */
  #page;

  get page() {
    if (this.#page === undefined) {
      throw new Error("There is no page yet.");
    }
    return this.#page;
  }

  set page(page) {
    this.#page = page;
  }

  async ready() {
    await this.page.locator(".monaco-workbench .part.editor").waitFor({ timeout: PATIENCE_MS });
    await this.page.locator(".statusbar-item").first().waitFor({ timeout: PATIENCE_MS });
  }

  /** @param {string} name */
  async screenshot(name) {
    await this.page.screenshot({ path: path.join(SCREENSHOTS, `${name}.png`) });
  }

  /** Opens a file of the folder. @param {string} place its name, and a line if it matters: `name:line` */
  async open(place) {
    const [name = ""] = place.split(":");
    const input = this.page.locator(".quick-input-widget input");
    for (let attempt = 1; ; attempt += 1) {
      const timeout = attempt < 3 ? 5_000 : PATIENCE_MS;
      await this.page.keyboard.press("Control+P");
      await input.fill(place);
      try {
        const row = this.page.locator(".quick-input-list .monaco-list-row.focused", { hasText: name }).first();
        await row.waitFor({ timeout });
        await this.page.keyboard.press("Enter");
        await this.page.locator(".tab.active", { hasText: name }).waitFor({ timeout });
        return;
      } catch (error) {
        if (attempt === 3) {
          throw error;
        }
        // The list was still being made, and what was chosen was not the file.
        await this.page.keyboard.press("Escape");
      }
    }
  }

  /** Runs a command of the palette by its exact label. @param {string} label */
  async command(label) {
    const input = this.page.locator(".quick-input-widget input");
    const rows = this.page.locator(".quick-input-list .monaco-list-row");
    const row = rows.filter({ has: this.page.getByText(label, { exact: true }) }).first();
    for (let attempt = 1; ; attempt += 1) {
      await this.page.keyboard.press("F1");
      const timeout = attempt < 3 ? 5_000 : PATIENCE_MS;
      try {
        await input.waitFor({ timeout });
        await input.fill(`>${label}`, { timeout });
        await row.click({ timeout });
        break;
      } catch (error) {
        if (attempt === 3) {
          throw error;
        }
        // The palette offers what applies at the moment it is opened; a window that was just loaded needs a while.
        // And it closes when an editor that was still opening takes the focus.
        await this.page.keyboard.press("Escape");
      }
    }
    await row.waitFor({ state: "hidden" }); // The command may show a list of its own.
  }

  /** Opens a file and puts the cursor on the first line that has a text. @param {string} file @param {string} text */
  async goToText(file, text) {
    const lines = fs.readFileSync(file, "utf8").split("\n");
    const line = lines.findIndex((each) => each.includes(text)) + 1;
    await this.open(`${path.basename(file)}:${line}`);
    await this.page.locator(".statusbar-item", { hasText: `Ln ${line},` }).waitFor();
  }

  /**
   * Takes the first entry of the list that a command shows when it is done.
   * @param {string} title the list's @param {number} patience milliseconds @param {string} [screenshot]
   */
  async pickFirst(title, patience, screenshot) {
    await this.page.locator(".quick-input-title:visible", { hasText: title }).waitFor({ timeout: patience });
    await this.page.locator(".quick-input-list .monaco-list-row").first().waitFor();
    if (screenshot !== undefined) {
      await this.page.waitForTimeout(400); // It fades in.
      await this.screenshot(screenshot);
    }
    await this.page.keyboard.press("Enter");
    await this.page.locator(".quick-input-widget").waitFor({ state: "hidden" });
  }

  /** The content of the (one) webview on the screen. */
  webview() {
    return this.page.frameLocator("iframe.webview.ready").frameLocator("iframe#active-frame");
  }

  /** The line the cursor is on, as the status bar names it. */
  async cursorLine() {
    const text = await this.page.locator(".statusbar-item", { hasText: /Ln \d+/ }).innerText();
    return Number(/Ln (\d+)/.exec(text)?.[1]);
  }

  /** @param {string} name */
  async setTheme(name) {
    await this.command("Preferences: Color Theme");
    const input = this.page.locator(".quick-input-widget input");
    await input.fill(name);
    await this.page.locator(".quick-input-list .monaco-list-row", { hasText: name }).first().click();
    await this.page.locator(".quick-input-widget").waitFor({ state: "hidden" });
  }
}
