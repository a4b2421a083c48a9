/** Stages side by side in an editor: how tests open them, and what colours their lines have. */

import { PATIENCE_MS } from "./until.mjs";

export class StageViews {
  /** @param {import("./workbench.mjs").Workbench} workbench */
  constructor(workbench) {
    this.workbench = workbench;
  }

  /** Opens a stage beside what is active. @param {string} filter @param {string} tab */
  async open(filter, tab) {
    const { page } = this.workbench;
    await this.workbench.command("IRScope: Show Stage…");
    await page.locator(".quick-input-title:visible", { hasText: "Show Stage" }).waitFor({ timeout: PATIENCE_MS });
    await page.locator(".quick-input-widget input").fill(filter);
    await page.locator(".quick-input-list .monaco-list-row", { hasText: filter }).first().waitFor();
    await page.keyboard.press("Enter");
    await page.locator(".tab.active", { hasText: tab }).waitFor({ timeout: PATIENCE_MS });
  }

  /** The group of editors with a tab. @param {string} tab */
  group(tab) {
    const { page } = this.workbench;
    return page
      .locator(".editor-group-container")
      .filter({ has: page.locator(".tab", { hasText: tab }) })
      .first();
  }

  /**
   * The background of each visible line of an editor that has a text, as computed; of the topmost decoration.
   * @param {string} tab @param {string} text @returns {Promise<string[]>}
   */
  async backgrounds(tab, text) {
    return this.group(tab).evaluate((element, wanted) => {
      const lines = [...element.querySelectorAll(".view-line")].filter((line) =>
        (line.textContent ?? "").replace(/\u00a0/g, " ").includes(wanted),
      );
      return lines.map((line) => {
        const { top } = line.getBoundingClientRect();
        const under = [...element.querySelectorAll(".view-overlays .cdr")].filter(
          (each) => Math.abs(each.getBoundingClientRect().top - top) < 2,
        );
        const colours = under.map((each) => getComputedStyle(each).backgroundColor);
        return colours.filter((colour) => colour !== "rgba(0, 0, 0, 0)").join(" ");
      });
    }, text);
  }

  /**
   * The visible lines of an editor that are marked as the cursor's counterparts: their texts, and where they begin on the
   * page. @param {string} tab
   */
  async markedLines(tab) {
    return this.group(tab).evaluate((element) => {
      const marks = [...element.querySelectorAll(".view-overlays .cdr")].filter(
        (each) => getComputedStyle(each).borderLeftWidth === "3px",
      );
      const tops = marks.map((each) => each.getBoundingClientRect().top);
      return [...element.querySelectorAll(".view-line")]
        .map((line) => ({ line, box: line.getBoundingClientRect() }))
        .filter(({ box }) => tops.some((top) => Math.abs(box.top - top) < 2))
        .sort((left, right) => left.box.top - right.box.top)
        .map(({ line, box }) => ({
          text: (line.textContent ?? "").replace(/\u00a0/g, " ").trim(),
          tokens: [...line.querySelectorAll("span span")].map((token) => {
            const { x, y, width, height } = token.getBoundingClientRect();
            return { text: token.textContent ?? "", x: x + width / 2, y: y + height / 2 };
          }),
          y: box.y + box.height / 2,
        }));
    });
  }

  /** Their texts. @param {string} tab */
  async marked(tab) {
    return (await this.markedLines(tab)).map(({ text }) => text);
  }
}
