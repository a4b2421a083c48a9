/**
 * `npm run test:pipelines`: the tests of pipelines whose compilers are no part of the usual installation. Each pipeline
 * has an environment, in the cache folder, which `irscope env create` makes from `.venv`.
 * `npm run test:pipelines -- onnx openvino` does some of them; `npm run test:pipelines -- onnx -k bert` hands on to pytest
 * what begins with a dash, and what follows it.
 */

import { execFileSync, spawnSync } from "node:child_process";
import * as fs from "node:fs";
import * as path from "node:path";
import { CACHE, hashOf, once, ROOT, VENV_PYTHON } from "./lib/paths.mjs";
import { bold, execute, Failure, runMain, step } from "./lib/terminal.mjs";
import { ensureVenv } from "./setup.mjs";

const ENVIRONMENTS = path.join(CACHE, "pipelines");
const TESTS = path.join("tests", "pipelines");

await runMain(async () => {
  await ensureVenv("test");
  const given = process.argv.slice(2);
  const dash = given.findIndex((each) => each.startsWith("-"));
  const names = dash < 0 ? given : given.slice(0, dash);
  const rest = dash < 0 ? [] : given.slice(dash);
  const known = requirements();
  const unknown = names.filter((name) => !(name in known));
  if (unknown.length > 0) {
    throw new Failure(
      `No pipeline with packages of its own: ${unknown.join(", ")}.`,
      `Known: ${Object.keys(known).join(", ")}.`,
    );
  }
  const failed = [];
  for (const name of names.length > 0 ? names : Object.keys(known)) {
    console.log(bold(`== ${name} ==`));
    try {
      await ensureEnvironment(name, known[name] ?? []);
    } catch (error) {
      if (!(error instanceof Failure)) {
        throw error;
      }
      console.error(error.message); // its packages may need what this machine lacks; the others can be tested
      failed.push(name);
      continue;
    }
    const file = path.join(TESTS, `test_${name}.py`);
    const env = { ...process.env, IRSCOPE_TEST_ENVIRONMENTS: ENVIRONMENTS };
    const done = spawnSync(VENV_PYTHON, ["-m", "pytest", file, ...rest], { cwd: ROOT, env, stdio: "inherit" });
    if (done.status !== 0) {
      failed.push(name);
    }
  }
  console.log(failed.length > 0 ? `Failed: ${failed.join(", ")}` : "All passed");
  return failed.length > 0 ? 1 : 0;
});

/** What pip installs for each pipeline that needs more than torch. @returns {Record<string, string[]>} */
function requirements() {
  const program = [
    "import json",
    "from irscope.pipelines.registry import pipelines",
    "usable = [one for one in pipelines().values() if one.needs and not one.unsupported]",
    "print(json.dumps({one.name: [one.torch, *(package.to_install for package in one.needs)] for one in usable}))",
  ].join("\n");
  return JSON.parse(execFileSync(VENV_PYTHON, ["-c", program], { cwd: ROOT, encoding: "utf8" }));
}

/** @param {string} name @param {string[]} packages */
async function ensureEnvironment(name, packages) {
  const folder = path.join(ENVIRONMENTS, name);
  await once(path.join(folder, ".irscope-tested"), hashOf(VENV_PYTHON, ...packages), () =>
    step(`Making the environment of ${name}`, async (report) => {
      fs.rmSync(folder, { recursive: true, force: true });
      const create = ["-m", "irscope", "env", "create", name, "--yes", "--folder", folder, "--python", VENV_PYTHON];
      await execute(VENV_PYTHON, create, { cwd: ROOT, report, next: "Check the network and pip's settings." });
    }),
  );
}
