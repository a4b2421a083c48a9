/** Numbers and units read as the table says that the Python module is held to as well. */

import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { ROOT } from "../../../scripts/lib/paths.mjs";
import { load } from "../modules.mjs";

const units = await load("units");

describe("units", () => {
  const cases = JSON.parse(fs.readFileSync(path.join(ROOT, "tests", "units.json"), "utf8"));
  delete cases.ratio; // only the terminal and stages have these
  for (const [name, table] of Object.entries(cases)) {
    it(name, () => {
      for (const [given, text] of table) {
        assert.equal(units[name](...given), text, `${name}(${given})`);
      }
    });
  }

  it("the size of a stage", () => {
    assert.equal(units.stageSize({ bytes: 34_000, nodes: 1, made: true }), "1 node, 34 kB");
    assert.equal(units.stageSize({ bytes: 0, nodes: null, made: true }), "0 B");
    assert.equal(units.stageSize({ bytes: 0, nodes: null, made: false }), "made when it is opened");
  });

  it("the time of day, with the date of another day", () => {
    const noon = new Date(2026, 4, 3, 12, 0);
    const same = units.clock(noon.getTime() / 1000, noon);
    assert.match(same, /12:00/);
    const later = new Date(2026, 4, 4, 12, 0);
    assert.equal(units.clock(noon.getTime() / 1000, later), `${noon.toLocaleDateString()} ${same}`);
  });
});
