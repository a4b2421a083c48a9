/** One place per fact: what package.json declares is what the documents and the code say. */

import assert from "node:assert/strict";
import * as fs from "node:fs";
import * as path from "node:path";
import { ROOT } from "../../../scripts/lib/paths.mjs";

const read = (/** @type {string} */ name) => fs.readFileSync(path.join(ROOT, name), "utf8");
const manifest = JSON.parse(read("package.json"));

describe("the manifest", () => {
  it("names no address, since the project has none", () => {
    assert.doesNotMatch(read("package.json") + read("pyproject.toml") + read("docs/ci.md"), /OWNER/);
    assert.deepEqual([manifest.repository, manifest.bugs, manifest.homepage], [undefined, undefined, undefined]);
  });

  it("has the settings of docs/settings.md, with their defaults", () => {
    const sections = [...read("docs/settings.md").matchAll(/^## `irscope\.([\w.]+)`\n\n.*?, default `([^`]+)`/gm)];
    const documented = Object.fromEntries(sections.map(([, key, value]) => [key, JSON.parse(value ?? "")]));
    assert.ok(Object.keys(documented).length >= 7, "the sections were found");
    const declared = Object.entries(manifest.contributes.configuration.properties).map(([key, row]) => [
      key.replace(/^irscope\./, ""),
      row.default,
    ]);
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
      "fixes.trySeconds",
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

  it("describes each setting, and docs/settings.md says the same", () => {
    const page = read("docs/settings.md");
    /** @type {Record<string, any>} */
    const settings = manifest.contributes.configuration.properties;
    assert.ok(Object.keys(settings).length >= 25, "none is lost");
    for (const [name, setting] of Object.entries(settings)) {
      const text = setting.markdownDescription.replace(/`#([\w.]+)#`/g, "`$1`");
      assert.ok(page.includes(`## \`${name}\``) && page.includes(text), `docs/settings.md describes ${name}`);
      assert.ok((setting.markdownDescription ?? "").length > 20, `${name} has a markdownDescription`);
      assert.equal(typeof setting.order, "number", `${name} has an order`);
      assert.equal(setting.markdownEnumDescriptions?.length, setting.enum?.length, `${name} describes its values`);
      assert.notEqual(setting.default, undefined, `${name} has a default`);
    }
  });

  it("shows what it adds to menus and views only where torch is used", () => {
    const { menus, views, keybindings = [] } = manifest.contributes;
    const entries = [...Object.values(menus), ...Object.values(views), keybindings].flat();
    assert.ok(entries.length > 20);
    for (const { command, id, when = "" } of entries) {
      assert.match(when, /irscope|false|editorLangId == python|resourceScheme|isWorkspaceTrusted/, command ?? id);
    }
    const everywhere = menus["editor/context"].filter(
      (/** @type {{when: string}} */ { when }) => !/irscope/.test(when),
    );
    assert.deepEqual(everywhere, [], "no entry in the context menu of other files");
  });

  it("has a walkthrough whose commands and pictures exist", () => {
    const declared = new Set(
      manifest.contributes.commands.map((/** @type {{command: string}} */ each) => each.command),
    );
    const [walkthrough] = manifest.contributes.walkthroughs;
    assert.ok(walkthrough.steps.length >= 4);
    for (const { id, description, media, completionEvents } of walkthrough.steps) {
      const used = [
        ...description.matchAll(/command:(irscope\.\w+)/g),
        ...completionEvents.join().matchAll(/onCommand:(irscope\.\w+)/g),
      ];
      for (const [, command = ""] of used) {
        assert.ok(declared.has(command), `${id}: ${command}`);
      }
      const files = [
        media.svg,
        media.markdown,
        ...(typeof media.image === "object" ? Object.values(media.image) : [media.image]),
      ];
      const named = files.filter((file) => file !== undefined);
      assert.ok(named.length > 0, id);
      assert.ok(
        (media.altText ?? media.markdown ?? "").length > 10,
        `${id} has a text for those who do not see the picture`,
      );
      for (const file of named) {
        assert.ok(fs.statSync(path.join(ROOT, file)).size < 200_000, file);
      }
    }
  });

  it("declares no command that no test in the extension host is about", () => {
    const folder = path.join(ROOT, "tests", "editor", "api");
    const tests = fs.readdirSync(folder).map((name) => fs.readFileSync(path.join(folder, name), "utf8"));
    for (const { command } of manifest.contributes.commands) {
      assert.ok(
        tests.some((text) => text.includes(`"${command}"`)),
        command,
      );
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
    // What package.json of ms-python.debugpy declares for launch, as far as we use it or might.
    const declared = ["program", "console", "justMyCode", "cwd", "env", "args", "python", "stopOnEntry", "subProcess"];
    const consoles = ["externalTerminal", "integratedTerminal", "internalConsole"];
    const [python] = configurations;
    assert.equal(python.request, "launch");
    const own = Object.keys(python).filter((key) => !["type", "request", "name"].includes(key));
    assert.deepEqual(own.filter((key) => !declared.includes(key)), []); // prettier-ignore
    assert.ok(consoles.includes(python.console));
    const [, literal = ""] =
      /const python = \{ type: "debugpy", ([^}]*) \}/.exec(read("extension/src/host/debug.ts")) ?? [];
    assert.deepEqual(literal.split(", ").map((part) => part.split(":")[0]), ["request", "name", ...own]); // prettier-ignore
  });

  it("offers in launch.json what the debugger takes, as docs/DEBUGGER.md lists it", () => {
    const { launch } = manifest.contributes.debuggers[0].configurationAttributes;
    const rows = [...read("docs/DEBUGGER.md").matchAll(/^\| (`[^|]*) \| (?:launch|both) \|/gm)];
    const names = rows.flatMap(([, cell = ""]) => [...cell.matchAll(/`(\w+)`/g)].map(([, name = ""]) => name));
    // What other clients send; VS Code has a button for one, and the other device is not for debugging.
    const others = ["noDebug", "stopOnEntry", "target"];
    assert.ok(names.length > 10, names.join());
    assert.deepEqual(names.filter((name) => !others.includes(name)).sort(), Object.keys(launch.properties).sort());
  });

  it("can be installed from any registry: no address is in the lock file", () => {
    assert.doesNotMatch(read("package-lock.json"), /"resolved"|https?:\/\/registry/);
    const { name, version } = JSON.parse(read("package-lock.json"));
    assert.deepEqual({ name, version }, { name: manifest.name, version: manifest.version });
    assert.match(read("pyproject.toml"), new RegExp(`^version = "${manifest.version.replaceAll(".", "\\.")}"`, "m"));
  });
});
