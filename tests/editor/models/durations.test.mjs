/** What `npm test` says at its end of the tests that failed. */

import assert from "node:assert/strict";
import * as fs from "node:fs";
import * as os from "node:os";
import * as path from "node:path";
import { failureLines, readJUnit } from "../../../scripts/lib/durations.mjs";

const JUNIT = `<?xml version="1.0" encoding="utf-8"?><testsuites><testsuite name="pytest" errors="1" failures="1" skipped="1" tests="4">
<testcase classname="tests.a" name="test_good" time="0.1" />
<testcase classname="tests.a" name="test_bad[&lt;x&gt;]" time="1.5"><failure message="assert 1 == 2">def f():
&gt;   assert 1 == 2
E   assert 1 == 2</failure></testcase>
<testcase classname="tests.a" name="test_skipped" time="0.0"><skipped type="pytest.skip" message="why">a.py:1: why</skipped></testcase>
<testcase classname="tests.b" name="test_set_up" time="0.0"><error message="failed on setup">fixture &apos;x&apos; not found</error></testcase>
</testsuite></testsuites>`;

describe("the end of npm test", () => {
  it("names the tests of pytest that failed, with what they said", () => {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), "irscope-"));
    const file = path.join(folder, "pytest.xml");
    fs.writeFileSync(file, JUNIT);
    const report = readJUnit(file);
    fs.rmSync(folder, { recursive: true });
    assert.deepEqual(report.counts, { passed: 1, failed: 2, skipped: 1 });
    assert.deepEqual(failureLines("plain", report), [
      "Failed: plain: tests.a test_bad[<x>]",
      "    def f():",
      "    >   assert 1 == 2",
      "    E   assert 1 == 2",
      "Failed: plain: tests.b test_set_up",
      "    fixture 'x' not found",
    ]);
  });
});
