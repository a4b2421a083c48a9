/** One place per fact: what package.json declares is what the documents and the code say. */

import assert from "node:assert/strict";
import * as fs from "node:fs";
import * as path from "node:path";
import { ROOT } from "../../../scripts/lib/paths.mjs";

const read = (/** @type {string} */ name) => fs.readFileSync(path.join(ROOT, name), "utf8");
const manifest = JSON.parse(read("package.json"));

describe("the manifest", () => {
  it("has the settings of docs/PROTOCOL.md, with their defaults", () => {
    const rows = [...read("docs/PROTOCOL.md").matchAll(/^\| `([\w.]+)` \| [^|]*(?:\\\|[^|]*)*\| `([^`]+)` \|/gm)];
    const documented = Object.fromEntries(rows.map(([, key, value]) => [key, JSON.parse(value ?? "")]));
    delete documented["trusted"]; // Not a setting: the editor knows it.
    assert.ok(Object.keys(documented).length >= 7, "the table was found");
    const declared = Object.entries(manifest.contributes.configuration.properties)
      .filter(([key]) => key !== "irscope.trace.server") // The client library's own.
      .map(([key, { default: value }]) => [key.replace(/^irscope\./, ""), value]);
    assert.deepEqual(Object.fromEntries(declared), documented);
  });

  it("restricts each setting that chooses what is run, or where, in an untrusted workspace", () => {
    const { untrustedWorkspaces, virtualWorkspaces } = manifest.capabilities;
    assert.equal(untrustedWorkspaces.supported, "limited");
    assert.equal(virtualWorkspaces.supported, false);
    for (const key of [
      "python",
      "storePath",
      "run.onSave",
      "run.deepWhenIdle",
      "run.entry",
      "run.entryOf",
      "run.launchConfiguration",
      "run.useLaunchConfigurations",
      "run.args",
      "run.cwd",
      "run.env",
    ]) {
      assert.ok(untrustedWorkspaces.restrictedConfigurations.includes(`irscope.${key}`), key);
    }
  });

  it("mentions in menus and views no command that it does not declare", () => {
    const declared = new Set(
      manifest.contributes.commands.map((/** @type {{command: string}} */ each) => each.command),
    );
    const used = [
      ...JSON.stringify([manifest.contributes.menus, manifest.contributes.viewsWelcome]).matchAll(
        /\birscope\.(?:show|run|cancel|choose|restart|refresh|open)\w*(?=[")])/g,
      ),
    ];
    for (const [command] of used) {
      assert.ok(declared.has(command) || command === "irscope.runs" || command === "irscope.running", command);
    }
  });

  it("offers a launch.json that debugs the script and its compilation side by side", () => {
    const [{ path: file, language }] = manifest.contributes.snippets;
    assert.equal(language, "jsonc");
    const [snippet] = Object.values(JSON.parse(read(file)));
    // As it stands in the file when the user has taken the first suggestion.
    const text = snippet.body.join("\n").replaceAll("${1:\\${file\\}}", "${file}").replaceAll("$1", "${file}");
    const { configurations, compounds } = JSON.parse(text);
    assert.deepEqual(
      configurations.map((/** @type {{type: string}} */ each) => each.type),
      ["debugpy", manifest.contributes.debuggers[0].type],
    );
    for (const configuration of configurations) {
      assert.equal(configuration.program, "${file}");
      assert.ok(compounds[0].configurations.includes(configuration.name));
    }
  });

  it("can be installed from any registry: no address is in the lock file", () => {
    assert.doesNotMatch(read("package-lock.json"), /"resolved"|https?:\/\/registry/);
    const { name, version } = JSON.parse(read("package-lock.json"));
    assert.deepEqual({ name, version }, { name: manifest.name, version: manifest.version });
    assert.match(read("pyproject.toml"), new RegExp(`^version = "${manifest.version.replaceAll(".", "\\.")}"`, "m"));
  });
});
