/** The view in the panel area where no run has to do with what is in the editor, in a page of its own. */

import assert from "node:assert/strict";
import { bundle } from "../../../scripts/build.mjs";
import { launchBrowser } from "../browser.mjs";
import { servePanel } from "../panelPage.mjs";
import { THEMES } from "../themes.mjs";

const RUNS = ["newer", "older"].map((run) => ({
  run,
  script: `/${run}.py`,
  lane: "deep",
  pipeline: "inductor",
  started: 1,
  seconds: 2,
}));

/** @param {string} method @param {{run: string}} params */
function answer(method, { run }) {
  const pipeline = { run, compile: null, compiles: [], stages: [], kernels: [], reason: `Nothing of ${run}.` };
  return JSON.stringify(method === "irscope/runs" ? { runs: RUNS } : pipeline);
}

describe("the dock without a run of the file in the editor", () => {
  it("shows a run that is chosen, also the first of the list, until the editor is followed again", async () => {
    await bundle();
    const { kind, css } = THEMES.dark;
    const host = await servePanel("dock", { run: "older", title: "older.py" }, answer, css, kind);
    const browser = await launchBrowser();
    try {
      const page = await browser.newPage();
      await page.goto(host.url);
      const frame = page.frameLocator("iframe");
      await frame.getByText("Nothing of older.").waitFor();
      /** @param {object} message */
      const tell = (message) =>
        page.evaluate((sent) => document.querySelector("iframe")?.contentWindow?.postMessage(sent, "*"), message);
      const shows = (/** @type {string} */ run) => frame.getByText(`Nothing of ${run}.`).waitFor();
      const follows = frame.getByRole("button", { name: "Follow Editor", pressed: true });
      // A command shows another run: the editor is followed again as soon as it is about something else.
      await tell({ type: "tab", tab: "strip", focus: false, pin: { run: "asked", title: "asked.py" } });
      await shows("asked");
      await tell({ type: "subject", subject: { run: "older", title: "older.py" } });
      await follows.waitFor();
      assert.equal(await frame.getByText("Nothing of older.").count(), 0);
      await tell({ type: "subject", subject: { run: "other", title: "other.py" } });
      await shows("other");
      await tell({ type: "nothing", message: "No run has to do with this file." });
      const nothing = frame.getByText("No run has to do with this file.");
      await nothing.waitFor();
      const list = frame.getByLabel("Run", { exact: true });
      await frame.locator("option", { hasText: "Choose a run…" }).waitFor({ state: "attached" });
      assert.equal(await list.inputValue(), "", "no run is shown");
      await list.selectOption("newer");
      await frame.getByText("Nothing of newer.").waitFor();
      // In front of another file a command shows that file's run, and the editor is still not followed.
      await tell({ type: "subject", subject: { run: "older", title: "older.py" } });
      await tell({ type: "tab", tab: "strip", focus: false });
      await shows("older");
      assert.equal(await follows.count(), 0);
      await tell({ type: "nothing", message: "No run has to do with this file." });
      const toggle = frame.getByRole("button", { name: "Follow Editor" });
      await toggle.and(frame.locator("[aria-pressed=false]")).click();
      await nothing.waitFor();
      assert.equal(await frame.getByText("Nothing of older.").count(), 0);
    } finally {
      await browser.close();
      host.stop();
    }
  });
});
