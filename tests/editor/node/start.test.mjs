/** `npm start` on a machine that is set up: findings in the terminal, then the desktop editor or one in the browser. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import * as fs from "node:fs";
import * as path from "node:path";
import { ROOT } from "../../../scripts/lib/paths.mjs";
import { makeHome } from "../home.mjs";

describe("npm start", function () {
  this.timeout(400_000);
  /** @type {string} */
  let home;

  before(() => {
    home = makeHome("start");
  });

  after(() => fs.rmSync(home, { recursive: true, force: true }));

  it("prints the findings and opens the desktop editor where there is one", async () => {
    const code = path.join(home, "code");
    fs.writeFileSync(code, `#!/bin/sh\nprintf '%s\\n' "$@" > '${home}/arguments'\n`, { mode: 0o755 });
    const { exit, output } = await start([], { PATH: `${home}:${process.env["PATH"]}` }).ended;
    assert.equal(exit, 0, output);
    assert.match(output, /GB0170/);
    const args = fs.readFileSync(path.join(home, "arguments"), "utf8").split("\n");
    assert.ok(args.includes(`--extensionDevelopmentPath=${ROOT}`), args.join(" "));
    const workspace = args.find((argument) => argument.endsWith(".code-workspace")) ?? "";
    const { folders, settings } = JSON.parse(fs.readFileSync(workspace, "utf8"));
    assert.deepEqual(folders, [{ path: path.join(ROOT, "examples") }]);
    assert.equal(settings["irscope.python"], path.join(ROOT, ".venv", "bin", "python"));
  });

  it("else serves one in the browser, with a token, until Ctrl-C", async () => {
    const withoutCode = (process.env["PATH"] ?? "")
      .split(":")
      .filter((folder) => !fs.existsSync(path.join(folder, "code")));
    const running = start([], { PATH: withoutCode.join(":") });
    const address = await running.until(/http:\/\/127\.0\.0\.1:\S+/);
    const url = new URL(address);
    assert.equal((await fetch(url.origin)).status, 401);
    assert.equal((await fetch(address, { redirect: "manual" })).status, 302);
    const before = children(running.child.pid ?? 0);
    assert.ok(before.length > 0);
    running.child.kill("SIGINT");
    const { exit } = await running.ended;
    assert.equal(exit, 0);
    await assert.rejects(fetch(url.origin), "nothing listens any more");
    assert.deepEqual(before.filter(isAlive), [], "no process is left");
  });

  it("refuses what it does not know", async () => {
    const { exit, output } = await start(["--twice"], {}).ended;
    assert.equal(exit, 2);
    assert.match(output, /Usage: npm start/);
  });
});

/** @param {string[]} args @param {NodeJS.ProcessEnv} env */
function start(args, env) {
  const child = spawn(process.execPath, [path.join(ROOT, "scripts", "start.mjs"), ...args], {
    cwd: ROOT,
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  const watchers = /** @type {(() => void)[]} */ ([]);
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (chunk) => {
      output += chunk;
      watchers.forEach((look) => look());
    });
  }
  const ended = new Promise((/** @type {(end: {exit: number | null, output: string}) => void} */ resolve) => {
    child.on("close", (exit) => resolve({ exit, output }));
  });
  /** @param {RegExp} pattern @returns {Promise<string>} */
  const until = (pattern) =>
    new Promise((resolve, reject) => {
      watchers.push(() => {
        const found = pattern.exec(output);
        if (found !== null) {
          resolve(found[0]);
        }
      });
      void ended.then(() => reject(new Error(`ended without ${pattern}:\n${output}`)));
    });
  return { child, ended, until };
}

/** The processes below one, at any depth. @param {number} root @returns {number[]} */
function children(root) {
  /** @type {Map<number, number[]>} */
  const below = new Map();
  for (const name of fs.readdirSync("/proc").filter((each) => /^\d+$/.test(each))) {
    try {
      const parent = Number(/\) \S (\d+)/.exec(fs.readFileSync(`/proc/${name}/stat`, "utf8"))?.[1]);
      below.set(parent, [...(below.get(parent) ?? []), Number(name)]);
    } catch {
      // It has ended meanwhile.
    }
  }
  const found = [root];
  for (const pid of found) {
    found.push(...(below.get(pid) ?? []));
  }
  return found.slice(1);
}

/** @param {number} pid */
function isAlive(pid) {
  return fs.existsSync(`/proc/${pid}`) && !/\) Z /.test(fs.readFileSync(`/proc/${pid}/stat`, "utf8"));
}
