/** What has to be true before a version is published, and what its pages look like. */

import assert from "node:assert/strict";
import { problemsOf, withoutRelativeLinks } from "../../../scripts/lib/releasing.mjs";

const GOOD = {
  manifest: '{"version": "1.2.0"}',
  project: '[project]\nversion = "1.2.0"\n',
  module: '__version__ = "1.2.0"\n',
  changelog: "# Changelog\n\n## 1.2.0 (2026-12-01)\n\n- More.\n",
  changes: "",
};

describe("what is checked before a release", () => {
  it("finds nothing wrong where all is right", () => assert.deepEqual(problemsOf(GOOD), []));

  /** @type {[string, Partial<typeof GOOD>, RegExp][]} */
  const wrong = [
    ["another version in Python", { module: '__version__ = "1.1.0"\n' }, /__init__.py has version 1\.1\.0/],
    ["no version in the project", { project: "" }, /pyproject.toml has version none/],
    ["no section in the changelog", { changelog: "## 1.1.0 (2026-01-01)" }, /no section "## 1\.2\.0/],
    ["no day", { changelog: "## 1.2.0 (unreleased)" }, /says "unreleased" of 1\.2\.0/],
    ["changes", { changes: " M README.md\n" }, /not committed/],
  ];
  for (const [name, change, says] of wrong) {
    it(`names ${name}`, () => {
      const problems = problemsOf({ ...GOOD, ...change });
      assert.equal(problems.length, 1);
      assert.match(problems[0] ?? "", says);
    });
  }
});

describe("a page of a marketplace", () => {
  it("has no pictures, and links only to other sites and to itself", () => {
    const page =
      "![A picture](docs/a.png)\n\n[The docs](docs/README.md), [ELK](https://example.org), [below](#limits)\n";
    assert.equal(withoutRelativeLinks(page), "The docs, [ELK](https://example.org), [below](#limits)\n");
  });
});
