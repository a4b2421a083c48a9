/** Runs Mocha inside the extension host; `IRSCOPE_TEST_RESULTS` names the file that gets the counts. */

import * as fs from "node:fs";
import * as path from "node:path";
import Mocha from "mocha";

export interface Results {
  passed: number;
  failed: number;
  skipped: number;
  lines: string[];
  tests: { file: string; name: string; seconds: number }[];
  failures: { title: string; message: string }[];
  retried: string[];
}

export async function run(): Promise<void> {
  // The base reporter prints nothing: results go to the file, as a console in the extension host is nobody's terminal.
  const mocha = new Mocha({ ui: "bdd", timeout: 180_000, retries: 1, reporter: Mocha.reporters.Base, ...grep() });
  for (const file of fs
    .readdirSync(__dirname)
    .filter((name) => name.endsWith(".test.js"))
    .sort()) {
    mocha.addFile(path.join(__dirname, file));
  }
  await mocha.loadFilesAsync();
  const results: Results = { passed: 0, failed: 0, skipped: 0, lines: [], tests: [], failures: [], retried: [] };
  await new Promise<void>((resolve) => {
    mocha
      .run(() => resolve())
      .on("pass", (test) => {
        results.passed += 1;
        const file = `${path.basename(test.file ?? "", ".js")}.ts`;
        results.tests.push({ file, name: test.fullTitle(), seconds: (test.duration ?? 0) / 1000 });
        results.lines.push(`  ✓ ${test.fullTitle()} (${test.duration ?? 0} ms)`);
      })
      .on("retry", (test: Mocha.Test, error: Error) => {
        results.retried.push(test.fullTitle());
        results.lines.push(`  ${test.fullTitle()}: once more, since it failed: ${error.message}`);
      })
      .on("pending", (test) => {
        results.skipped += 1;
        results.lines.push(`  - ${test.fullTitle()}`);
      })
      .on("fail", (test, error: Error) => {
        const message = error.stack ?? error.message;
        results.failed += 1;
        results.failures.push({ title: test.fullTitle(), message });
        results.lines.push(`  ✗ ${test.fullTitle()}\n${message.replace(/^/gm, "      ")}`);
      });
  });
  const target = process.env["IRSCOPE_TEST_RESULTS"];
  if (target !== undefined) {
    fs.writeFileSync(target, JSON.stringify(results));
  }
  if (results.failed > 0) {
    throw new Error(`${results.failed} failed`);
  }
}

function grep(): { grep?: string } {
  const wanted = process.env["IRSCOPE_TEST_GREP"];
  return wanted === undefined || wanted === "" ? {} : { grep: wanted };
}
