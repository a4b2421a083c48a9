/** The check of imports sees what it is there for. The sources are changed in memory. */

import assert from "node:assert/strict";
import { problemsOf, readSources } from "../../../scripts/imports.mjs";
import { ROOMS } from "../../../scripts/lib/rooms.mjs";

const SOURCES = readSources();

/** @param {Record<string, string>} modules all there are, by path below extension/src */
const problemsIn = (modules) => problemsOf(new Map(Object.entries(modules)));

/** A new module in each room; `panels/*` has it in a folder that does not exist. */
const NEW_MODULES = ROOMS.map(({ folder }) => [
  folder,
  `${folder.replace("*", "another")}/added.ts`.replace(/^\.\//, ""),
]);

/** The path from one new module to another. @param {string} from @param {string} to */
function importOf(from, to) {
  return `import "${"../".repeat(from.split("/").length - 1)}./${to.replace(/\.ts$/, "")}";`;
}

describe("the imports of the extension", () => {
  it("are all allowed", () => {
    assert.ok(SOURCES.size > 150);
    assert.deepEqual(problemsOf(SOURCES), []);
  });

  it("are allowed only from the top down", () => {
    ROOMS.forEach(({ folder, rooms }, place) => {
      const below = ROOMS.slice(place + 1).map((room) => room.folder);
      assert.deepEqual(
        rooms.filter((room) => !below.includes(room)),
        [],
        folder,
      );
    });
  });
});

describe("an import that is not allowed", () => {
  for (const { folder, rooms } of ROOMS) {
    const file = NEW_MODULES.find(([room]) => room === folder)?.[1] ?? "";
    it(`is seen in ${folder}, of any other room`, () => {
      for (const [room = "", target = ""] of NEW_MODULES) {
        if (room !== folder) {
          const problems = problemsIn({ [file]: importOf(file, target), [target]: "" });
          assert.equal(problems.length, rooms.includes(room) ? 0 : 1, `${folder} imports ${room}: ${problems.join()}`);
        }
      }
    });

    it(`is seen in ${folder}, of a package`, () => {
      const problems = problemsIn({ [file]: 'import "left-pad";\nimport "fs";' });
      assert.deepEqual(problems, [
        `extension/src/${file}:1: ${folder} may not import "left-pad"`,
        `extension/src/${file}:2: ${folder} may not import "fs"`,
      ]);
    });
  }

  it("is one of vscode or of Node in what runs in a page", () => {
    for (const name of ["vscode", "vscode-languageclient/node", "node:fs"]) {
      assert.equal(problemsIn({ "panels/added.ts": `import "${name}";` }).length, 1, name);
      assert.equal(problemsIn({ "host/added.ts": `import "${name}";` }).length, 0, name);
    }
  });

  it("is one of another panel", () => {
    assert.equal(
      problemsIn({ "panels/memory/model.ts": 'import "../ranks/model";', "panels/ranks/model.ts": "" }).length,
      1,
    );
  });

  it("is one of what is not in the extension, except data", () => {
    assert.equal(problemsIn({ "panels/added.ts": 'import "../../../scripts/build.mjs";' }).length, 1);
    assert.equal(problemsIn({ "panels/added.ts": 'import "./panel.css";' }).length, 0);
  });

  it("is any import in a folder that is not listed", () => {
    for (const file of ["elsewhere/added.ts", "graph/added.ts", "panels/memory/inner/added.ts"]) {
      assert.match(problemsIn({ [file]: "" }).join(), /its folder is not a room/);
    }
  });
});

describe("a circle of imports", () => {
  const FORMS = {
    "a value": 'import { x } from "./third";',
    "a type": 'import type { X } from "./third";',
    "the type of a member": 'let x: import("./third").X;',
    "an export from": 'export * from "./third";',
    "an import in a function": 'const f = async () => (await import("./third")).x;',
    "an import for its effects": 'import "./third";',
    "an import by require": 'import third = require("./third");',
    "a reference": '/// <reference path="third.ts" />',
    "an import in a declared module": 'declare module "d" { const x: import("./third").X; }',
  };
  for (const [name, text] of Object.entries(FORMS)) {
    it(`is seen by ${name}`, () => {
      const problems = problemsIn({
        "host/first.ts": 'import "./second";',
        "host/second.ts": text,
        "host/third.ts": 'import "./first";',
      });
      assert.deepEqual(problems, [
        "These modules of extension/src import each other: host/first.ts → host/second.ts → host/third.ts → host/first.ts",
      ]);
    });
  }

  it("is seen through the index of a folder, and of a module with itself", () => {
    const index = { "commands/index.ts": 'import "./first";', "commands/first.ts": 'import ".";' };
    assert.match(problemsIn(index).join(), /index\.ts → commands\/first\.ts → /);
    assert.match(problemsIn({ "units.ts": 'import "./units";' }).join(), /units\.ts → units\.ts$/);
  });

  /** The sources with a line more in modules. @param {Record<string, string>} added @returns {string[]} */
  function problemsWith(added) {
    const changed = new Map(SOURCES);
    for (const [file, text] of Object.entries(added)) {
      changed.set(file, `${SOURCES.get(file) ?? ""}\n${text}`);
    }
    return problemsOf(changed);
  }

  it("is seen in the sources as they are, and listed once", () => {
    const problems = problemsWith({
      "commands/chooseEntry.ts": 'import { runFile } from "./run";',
      "graph/model/grouping.ts": 'import type { Cluster } from "./clusters";',
    });
    assert.equal(problems.length, 2, problems.join("\n"));
  });

  it("is the shortest one of those that one import makes", () => {
    const problems = problemsWith({ "graph/model/grouping.ts": 'import "../page/panel";' });
    assert.equal(problems.length, 2, problems.join("\n"));
    assert.match(problems[0] ?? "", /^extension\/src\/graph\/model\/grouping\.ts:\d+: graph\/model may not import/);
    assert.match(
      problems[1] ?? "",
      /: graph\/model\/grouping\.ts → graph\/page\/panel\.ts → graph\/model\/grouping\.ts$/,
    );
  });
});
