/** The colours of texts in the page of `irscope view`: those of the grammars, whatever a text holds. */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import * as fs from "node:fs";
import * as os from "node:os";
import * as path from "node:path";
import textmate from "vscode-textmate";
import { ROOT, SCREENSHOTS, VENV_PYTHON } from "../../../scripts/lib/paths.mjs";
import { launchBrowser } from "../browser.mjs";
import { makeHome } from "../home.mjs";
import { load } from "../modules.mjs";
import { contributes, grammarOf, SAMPLES } from "../textmate.mjs";
import { until } from "../until.mjs";
import { openPage, startView } from "../viewPage.mjs";

const { CLASSES, numberIn, THEME, Tokens } = await load("view/highlighting/scopes", "view/highlighting/tokens");

/** @typedef {[text: string, className: string]} Coloured */

const OUTPUT_CODE = `\
cpp_fused_0 = async_compile.cpp_pybinding(['const float*'], r'''
#include <torch/csrc/inductor/cpp_prefix.h>
extern "C" void kernel(const float* in_ptr0)
''')
triton_0 = async_compile.triton('triton_0', '''
import triton
def triton_0(in_ptr0, xnumel, XBLOCK : tl.constexpr):
    xoffset = tl.program_id(0) * XBLOCK
''', device_str='cuda')
text = other.cpp('''
int x;
''')
`;

/** 5 MB of PTX; lines of 100,000 letters; and lines that take long. */
const HUGE = [
  ...Array.from({ length: 100_000 }, (_, at) => `\tld.global.v4.b32 { %r${at}, %r2 }, [ %rd1 + ${at} ];`),
  `\tmov.u32 %r1, ${"%r2, ".repeat(20_000)};`,
  ..."_ @(".split("").map((unit) => unit.repeat(19_000)),
  "\tmov.u32 %r1, %r2;",
].join("\n");

/** What the grammar says of a text with the engine that VS Code uses. @param {string} language @param {string} text */
async function expected(language, text) {
  const { grammar, colours } = await grammarOf(language, THEME);
  /** @type {Coloured[]} */
  const found = [];
  let stack = textmate.INITIAL;
  for (const line of text.split("\n")) {
    const { tokens, ruleStack } = grammar.tokenizeLine2(line, stack);
    stack = ruleStack;
    for (let at = 0; at < tokens.length; at += 2) {
      const colour = colours[((tokens[at + 1] ?? 0) >>> 15) & 0x1ff];
      const className = CLASSES[numberIn(colour)];
      if (className !== "") {
        found.push([line.slice(tokens[at], tokens[at + 2]), className]);
      }
    }
  }
  return found.filter(([token]) => token !== "");
}

describe("colours in irscope view", () => {
  /** @type {string} */
  let home;
  /** @type {import("../viewPage.mjs").View} */
  let view;
  /** @type {import("playwright-core").Browser} */
  let browser;

  before(async () => {
    home = makeHome("colours", os.tmpdir());
    const store = path.join(home, "runs.db");
    const samples = Object.entries(SAMPLES).map(([name, [language, file]]) => [
      name,
      [language, fs.readFileSync(file, "utf8")],
    ]);
    const texts = { ...Object.fromEntries(samples), "output-code": ["python", OUTPUT_CODE], huge: ["ptx", HUGE] };
    const maker = path.join(ROOT, "tests", "editor", "texts_store.py");
    execFileSync(VENV_PYTHON, [maker, store, home], { input: JSON.stringify(texts) });
    view = await startView(store, home);
    browser = await launchBrowser();
  });

  after(async () => {
    await browser?.close();
    assert.equal(await view?.stop(), 0);
    fs.rmSync(home, { recursive: true, force: true });
  });

  it("every language with a grammar has a sample", () => {
    const languages = contributes.grammars.flatMap((/** @type {{language?: string}} */ each) => each.language ?? []);
    assert.deepEqual([...new Set(Object.values(SAMPLES).map(([language]) => language))].sort(), languages.sort());
  });

  for (const [name, [language, file]] of Object.entries(SAMPLES)) {
    it(`${name}: the page finds the tokens that VS Code finds`, async () => {
      const text = fs.readFileSync(file, "utf8");
      const tokens = new Tokens({ language, text, skipped: [] });
      const lines = text.split("\n");
      /** @type {Coloured[]} */
      const found = [];
      for (let chunk = 0; chunk * 100 < lines.length; chunk += 1) {
        const part = lines.slice(chunk * 100).join("\n");
        const spans = tokens.chunk(chunk);
        for (let at = 0; at < spans.length; at += 3) {
          found.push([part.slice(spans[at], spans[at + 1]), CLASSES[spans[at + 2]]]);
        }
      }
      assert.deepEqual(found, await expected(language, text));
      assert.ok(new Set(found.map(([, className]) => className)).size >= 4);
    });
  }

  /** The tokens of each line that is drawn. @param {import("playwright-core").Page} page @returns {Promise<Coloured[]>} */
  const drawn = (page) =>
    page.evaluate(() =>
      [...document.querySelectorAll(".cm-line [class*=tok-]")].map((each) => [each.textContent ?? "", each.className]),
    );

  it("a text has the classes that its grammar says, in every language", async () => {
    for (const [name, [language, file]] of Object.entries(SAMPLES)) {
      const { page, errors } = await openPage(browser, `${view.url}&stage=0/0/${name}`, "dark");
      const first = (await expected(language, fs.readFileSync(file, "utf8"))).slice(0, 20);
      await until(
        async () => (await drawn(page)).slice(0, first.length),
        (tokens) => JSON.stringify(tokens) === JSON.stringify(first),
        `the colours of ${name}: ${JSON.stringify(first)}`,
        20_000,
      );
      assert.deepEqual(errors, []);
      await page.close();
    }
  });

  it("kernels in output code have the colours of their language, other strings are strings", async () => {
    const { page, errors } = await openPage(browser, `${view.url}&stage=0/0/output-code`, "dark");
    const classOf = (/** @type {string} */ line, /** @type {string} */ token) =>
      page
        .locator(".cm-line", { hasText: line })
        .locator("[class*=tok-]", { hasText: token })
        .first()
        .getAttribute("class");
    // Each kernel is parsed by itself, and is a string until then.
    const parsed = [["#include", "#include", "tok-meta"], ["extern", "float", "tok-typeName"],
                    ["xoffset", "xoffset", "tok-variableName"], ["def triton_0", "def", "tok-keyword"]]; // prettier-ignore
    for (const [line = "", token = "", name = ""] of parsed) {
      await page.locator(".cm-line", { hasText: line }).locator(`.${name}`, { hasText: token }).first().waitFor();
      assert.equal(await classOf(line, token), name);
    }
    assert.equal(await classOf("int x;", "int x;"), "tok-string");
    await page.screenshot({ path: path.join(SCREENSHOTS, "view-output-code.png") });
    await page.locator(".cm-foldGutter span[title='Fold line']").first().click();
    await page.locator(".cm-foldPlaceholder").waitFor();
    assert.deepEqual(errors, []);
    await page.close();
  });

  it("a text of 5 MB with hostile lines is shown, coloured and searched without a pause", async () => {
    const { page, errors } = await openPage(browser, view.url, "dark");
    await page.evaluate(() => {
      /** @type {any} */ (window).pauses = [];
      new PerformanceObserver((list) =>
        list.getEntries().forEach(({ duration }) => /** @type {any} */ (window).pauses.push(duration)),
      ).observe({ entryTypes: ["longtask"] });
    });
    const goTo = (/** @type {number} */ line) =>
      page.evaluate((at) => (window.location.hash = `#stage=0/0/huge&line=${at}`), line);
    await goTo(1);
    await page.locator(".tok-definition", { hasText: "ld" }).first().waitFor();
    await goTo(50_000);
    await page.locator(".cm-line", { hasText: "+ 49999 ]" }).locator(".tok-definition").waitFor();
    await goTo(100_006);
    await page.locator(".cm-line", { hasText: "mov.u32 %r1, %r2;" }).locator(".tok-definition").last().waitFor();
    await page.screenshot({ path: path.join(SCREENSHOTS, "view-huge.png") });
    const pauses = await page.evaluate(() => /** @type {any} */ (window).pauses);
    assert.ok(Math.max(0, ...pauses) < 1_500, `pauses of ${pauses.join(", ")} ms`);
    await page.locator(".cm-content[aria-label^='Huge']").press("Control+f");
    await page.locator(".cm-search input").first().pressSequentially("%r77777");
    await page.keyboard.press("Enter");
    await page.locator(".cm-searchMatch-selected", { hasText: "%r77777" }).waitFor();
    assert.deepEqual(errors, []);
    await page.close();
  });
});
