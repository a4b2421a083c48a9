/** The view in the panel area, with canned answers: every tab in dark and light, by mouse and by keyboard. */

import assert from "node:assert/strict";
import { OF_THE_PAGE_AROUND, violations } from "../accessibility.mjs";
import { FAKE, onScreen } from "../screen.mjs";
import { nightly } from "../themes.mjs";
import { until } from "../until.mjs";

const MARKUP = "<img src=x onerror=alert(1)>";
/** Tab → what is there when it is drawn. */
const TABS = {
  strip: ".card",
  findings: "tr.group",
  time: ".box",
  memory: ".area",
  changes: ".changes li",
  comparison: "table.comparison",
  ranks: ".side-by-side",
};

describe("the dock", () => {
  const workbench = onScreen({ name: "dock", viewport: { width: 1400, height: 900 }, ...FAKE });
  /** @type {import("playwright-core").FrameLocator} */
  let dock;

  /** @param {keyof typeof TABS} tab */
  async function showTab(tab) {
    await dock.locator(`#tab-${tab}`).click();
    await dock.locator(TABS[tab]).first().waitFor({ state: "attached" });
    await workbench.page.waitForTimeout(300);
  }

  it("is not offered where torch is not used", async () => {
    await workbench.open("plain.py");
    await workbench.command("Problems: Focus on Problems View");
    await workbench.page.locator(".panel .action-item", { hasText: "Problems" }).first().waitFor();
    await workbench.page.waitForTimeout(500);
    assert.equal(await workbench.page.locator(".panel .action-item", { hasText: "IRScope" }).count(), 0);
  });

  it("shows the pipeline of the file in the editor, forward above backward", async () => {
    await workbench.open("train.py:4");
    await workbench.command("IRScope: Show Pipeline");
    dock = workbench.webview();
    await dock.locator(".card").first().waitFor();
    assert.equal(await dock.locator("[role=option]").count(), 16);
    const box = async (/** @type {string} */ stage) => {
      const found = await dock.locator(`.card[data-stage="0/0/${stage}"]`).boundingBox();
      assert.ok(found);
      return found;
    };
    const [joint, forward, backward] = [
      await box("joint-graph"),
      await box("forward-graph"),
      await box("backward-graph"),
    ];
    assert.ok(joint.x + joint.width < forward.x, "the joint graph stands before the two it was cut into");
    assert.equal(Math.round(forward.x), Math.round(backward.x));
    assert.ok(forward.y + forward.height <= backward.y && joint.height > forward.height + backward.height - 4);
  });

  it("tells what each pass changed, folds away the others, and finds passes and operations", async () => {
    await dock.locator('.card[data-stage="0/0/joint-graph"]').click();
    const details = dock.locator(".details");
    assert.match(
      await details.locator(".passes li").nth(1).innerText(),
      /constant_fold_uniform_value\s+\+11\s+added\s+−11\s+removed\s+~11\s+changed/,
    );
    assert.equal(await details.locator("summary", { hasText: "12 passes changed nothing" }).count(), 1);
    assert.equal(await details.locator(".quiet li").first().isVisible(), false);
    await workbench.screenshot("dock-pipeline-dark");
    await dock.locator("input.search").fill("PATTERN_7");
    assert.match(await dock.locator(".toolbar [role=status]").innerText(), /^3 in 3 stages$/);
    assert.equal(await details.locator(".quiet li.hit").isVisible(), true);
    assert.equal(await dock.locator(".card.faded").count(), 13);
    await dock.locator("input.search").fill("softmax");
    assert.equal(await dock.locator('.card[data-stage="0/0/joint-graph"] .card-hits').innerText(), "2");
    await dock.locator("input.search").press("Escape");
    assert.equal(await dock.locator(".card.faded").count(), 0);
  });

  it("arrow keys walk the stages and open each at the line that corresponds, without taking the keyboard", async () => {
    const joint = dock.locator('.card[data-stage="0/0/joint-graph"]');
    await joint.focus();
    await joint.press("ArrowRight");
    await workbench.page.locator(".tab.active", { hasText: "forward-graph.py" }).waitFor();
    await workbench.page.locator(".tab", { hasText: "train.py" }).first().waitFor();
    assert.equal(await workbench.page.locator(".editor-group-container").count(), 2, "beside the source");
    const forward = dock.locator('.card[data-stage="0/0/forward-graph"]');
    assert.equal(await forward.getAttribute("aria-selected"), "true");
    assert.equal(await forward.evaluate((card) => card === document.activeElement), true);
    await forward.press("ArrowDown");
    await workbench.page.locator(".tab.active", { hasText: "backward-graph.py" }).waitFor();
    await dock.locator('.card[data-stage="0/0/backward-graph"]').press("Home");
    await workbench.page.locator(".tab.active", { hasText: "bytecode.py" }).waitFor();
    await workbench.screenshot("dock-stepping");
  });

  it("compares with the stage before in the editor's own comparison", async () => {
    await dock.locator('.card[data-stage="0/0/joint-graph"]').click();
    await dock.locator(".actions button", { hasText: "Compare with Previous" }).click();
    await workbench.page.locator(".tab.active", { hasText: "Pre-grad graph ↔ Joint graph" }).waitFor();
    await workbench.command("View: Close All Editors");
    await workbench.open("train.py:5");
  });

  it("findings are sorted, filtered, unfolded with the keys, and lead to their lines", async () => {
    await showTab("findings");
    const titles = async () => dock.locator("tr.group strong").allInnerTexts();
    assert.deepEqual(await titles(), [
      "Recompile limit",
      "Recompilation",
      "Graph break",
      "Missed fusion",
      "Compile error",
    ]);
    await dock.locator("th.cause button").click();
    assert.deepEqual(await titles(), [
      "Compile error",
      "Graph break",
      "Recompile limit",
      "Recompilation",
      "Missed fusion",
    ]);
    assert.equal(await dock.locator("th.cause").getAttribute("aria-sort"), "ascending");
    const broken = dock.locator("tr.group", { hasText: "GB0170" });
    await broken.focus();
    await broken.press("ArrowRight");
    assert.equal(await broken.getAttribute("aria-expanded"), "true");
    assert.equal(await dock.locator("tr.place.hidden-finding .chip").innerText(), "ignored by a comment");
    await workbench.screenshot("dock-findings-dark");
    await dock.locator("label.check input").uncheck();
    assert.equal(await dock.locator("tr.place.hidden-finding").count(), 0);
    await dock.locator("label.check input").check();
    await broken.press("ArrowDown");
    assert.equal(
      await dock
        .locator("tr.place")
        .first()
        .evaluate((row) => row === document.activeElement),
      true,
    );
    await dock.locator("input.search").fill("gb0170");
    assert.deepEqual(await titles(), ["Graph break"]);
    await dock.locator("input.search").fill("nothing like it");
    await dock.locator(".notice-text", { hasText: "No finding matches." }).waitFor();
    await dock.locator(".notice button").click();
    assert.equal((await titles()).length, 5);
    await dock.locator("tr.group", { hasText: "GB0039" }).getByRole("button", { name: "train.py:4" }).click();
    await workbench.page.locator(".tab.active", { hasText: "train.py" }).waitFor();
    await workbench.page.locator(".statusbar-item", { hasText: "Ln 4," }).waitFor();
  });

  it("compile time is a tree of boxes to zoom into, and a table", async () => {
    await showTab("time");
    const whole = dock.locator(".box").first();
    await whole.focus();
    await whole.press("ArrowDown");
    const label = async () => dock.locator(".box:focus").getAttribute("aria-label");
    assert.match((await label()) ?? "", /^loss_of ×2, 1 min 6 s 100 % of all/);
    for (let step = 0; step < 4; step += 1) {
      await dock.locator(".box:focus").press("ArrowDown");
    }
    assert.match(
      (await label()) ?? "",
      /^Code of the kernels, 50\.0 s 76 % of all, own 18\.0 s/,
      "the child that took most, each time",
    );
    const before = await dock.locator(".box:focus").boundingBox();
    await dock.locator(".box:focus").press("Enter");
    const after = await dock.locator(".box:focus").boundingBox();
    assert.ok(before && after && after.width > before.width * 1.2, `${before?.width} → ${after?.width}`);
    assert.match(await dock.locator(".statusline").innerText(), /Scheduler\.codegen\s+code of the kernels\s+50\.0 s/);
    await dock.locator(".measure-bar button", { hasText: "Zoom Out" }).click();
    await workbench.screenshot("dock-time-dark");
    await dock.locator(".measure-bar button", { hasText: "Table" }).click();
    assert.match(await dock.locator("table.measured tbody tr").nth(2).innerText(), /dynamo ×2.*1 min 6 s.*100 %/s);
    await dock.locator(".measure-bar button", { hasText: "Flame Graph" }).click();
  });

  it("compile time is zoomed by dragging over a part of it", async () => {
    await showTab("time");
    const marks = () => dock.locator(".ruler span").allInnerTexts();
    const whole = await marks();
    const chart = await dock.locator(".flame").boundingBox();
    assert.ok(chart);
    const { mouse } = workbench.page;
    await mouse.move(chart.x + chart.width * 0.25, chart.y + 10);
    await mouse.down();
    await mouse.move(chart.x + chart.width * 0.5, chart.y + 10, { steps: 4 });
    await workbench.screenshot("dock-time-dragged");
    await mouse.up();
    await until(marks, (now) => now.length > 1 && now[1] !== whole[1], `other marks than ${whole.join(", ")}`);
    await dock.locator(".measure-bar button", { hasText: "Zoom Out" }).click();
    await until(marks, (now) => now.join() === whole.join(), "all of the time again");
  });

  it("memory shows the peak and what holds it, step by step", async () => {
    await showTab("memory");
    const slider = dock.locator("[role=slider]");
    const peak = await slider.getAttribute("aria-valuetext");
    assert.match(peak ?? "", /^Call \d+ of 24, cpp_fused_mul_relu_\d+, .* [kM]B$/);
    assert.equal(await dock.locator(".holders h2 .chip").innerText(), "peak");
    await workbench.screenshot("dock-memory-dark");
    await slider.focus();
    await slider.press("Home");
    assert.match((await slider.getAttribute("aria-valuetext")) ?? "", /^Call 1 of 24, cpp_fused_mul_relu_0, 65\.5 kB$/);
    assert.deepEqual(await dock.locator("table.buffers tbody tr td:first-child").allInnerTexts(), ["buf0"]);
    const box = await slider.boundingBox();
    assert.ok(box);
    await workbench.page.mouse.click(box.x + (box.width * 10.5) / 24, box.y + box.height / 2);
    assert.match((await slider.getAttribute("aria-valuetext")) ?? "", /^Call 11 of 24/);
    await dock.locator(".segmented button", { hasText: "Backward" }).click();
    assert.equal(await slider.getAttribute("aria-valuetext"), peak, "the other plan begins at its peak");
    await dock.locator("table.buffers .lines button").first().click();
    await workbench.page.locator(".notification-toast, .tab.active", { hasText: "train.py" }).first().waitFor();
  });

  it("changes tell what was fixed, what is new, and compare kernels", async () => {
    await showTab("changes");
    assert.match(await dock.locator(".summary").innerText(), /^1 new finding · 1 finding fixed/);
    assert.equal(await dock.locator("li.better .sign[aria-label=fixed]").count(), 1);
    assert.equal(await dock.locator("li.worse .sign[aria-label=new]").count(), 1);
    assert.match(await dock.locator("table.measured").innerText(), /two runs\s+−33\.0 s\s+1 min 39 s\s+1 min 6 s/);
    await workbench.screenshot("dock-changes-dark");
    await dock.locator("button", { hasText: "Compare" }).last().click();
    await workbench.page.locator(".tab.active", { hasText: "before ↔ now" }).waitFor();
    await workbench.command("View: Close All Editors");
    await workbench.open("train.py:5");
  });

  it("names that are markup are text everywhere", async () => {
    for (const tab of /** @type {(keyof typeof TABS)[]} */ (Object.keys(TABS))) {
      await showTab(tab);
      if (tab === "strip") {
        await dock.locator('.card[data-stage="0/0/joint-graph"]').click();
      } else if (tab === "findings") {
        await dock.locator("tr.group", { hasText: "GB0170" }).waitFor();
      } else if (tab === "time") {
        await dock.locator(".box", { hasText: "<img" }).hover();
      }
      assert.ok((await dock.locator("body").innerText()).includes(MARKUP), tab);
      assert.equal(await dock.locator("img, [onerror]").count(), 0, tab);
    }
  });

  it("axe finds nothing in any tab", async () => {
    const found = [];
    for (const theme of [...nightly("Light Modern", "Dark High Contrast"), "Dark Modern"]) {
      await workbench.setTheme(theme);
      await workbench.page.waitForTimeout(800);
      for (const tab of /** @type {(keyof typeof TABS)[]} */ (Object.keys(TABS))) {
        await showTab(tab);
        if (theme !== "Dark Modern") {
          await workbench.screenshot(`dock-${tab}-${theme.toLowerCase().replaceAll(" ", "-")}`);
        }
        found.push(
          ...(await violations(await workbench.webviewFrame(), OF_THE_PAGE_AROUND)).map(
            (each) => `${tab}, ${theme}: ${each}`,
          ),
        );
      }
    }
    assert.deepEqual(found, []);
  });

  it("the tabs take arrow keys, and a chosen run stays until the editor is followed again", async () => {
    await dock.locator("#tab-ranks").click();
    await dock.locator("#tab-ranks").press("ArrowRight"); // From the last one to the first.
    assert.equal(await dock.locator("#tab-summary").getAttribute("aria-selected"), "true");
    await dock.locator("#tab-summary").press("ArrowRight");
    assert.equal(await dock.locator("#tab-strip").getAttribute("aria-selected"), "true");
    assert.equal(await dock.locator("#tab-strip").evaluate((tab) => tab === document.activeElement), true);
    await dock.locator('select[aria-label="Compile"]').selectOption("0/1");
    await dock.locator('.card[data-track="backward"]').first().waitFor({ state: "detached" });
    await dock.locator('select[aria-label="Compile"]').selectOption("0/0");
    await dock.locator('.card[data-track="backward"]').first().waitFor();
  });

  /** Its text is in the middle, and there is nothing to search. @param {string} tab */
  async function looksEmpty(tab) {
    const search = dock.locator("#page input[type=search]:visible");
    await until(
      () => search.count(),
      (count) => count === 0,
      `no search: ${tab}`,
    );
    const heights = await dock
      .locator("#page, #page .notice")
      .evaluateAll((boxes) => boxes.map((box) => box.getBoundingClientRect().height));
    assert.ok(Math.min(...heights) > Math.max(...heights) / 2, `in the middle: ${tab}, ${heights.join(" of ")}`);
  }

  it("a run that has nothing of it says what to do", async () => {
    await workbench.open("slow.py");
    await dock.locator(".notice-text", { hasText: "No stages to show." }).waitFor();
    await dock.locator(".notice-detail", { hasText: "the fast lane" }).waitFor();
    await looksEmpty("pipeline");
    await workbench.screenshot("dock-empty");
    for (const tab of /** @type {(keyof typeof TABS)[]} */ ([
      "findings",
      "time",
      "measured",
      "memory",
      "changes",
      "comparison",
      "ranks",
    ])) {
      await dock.locator(`#tab-${tab}`).click();
      await dock.locator("#page .notice-text").waitFor();
      assert.notEqual(await dock.locator("#page .notice-detail").innerText(), "", tab);
      await looksEmpty(tab);
    }
    assert.deepEqual(await violations(await workbench.webviewFrame(), OF_THE_PAGE_AROUND), []);
  });
});
