/**
 * One folder of Inductor's compiled C++ kernels for all tiers, filled with those of the last run that passed.
 *
 * The deep lane lets no cache of PyTorch answer, so all stages are made every time; what is saved is the C++ compiler,
 * which for the same source and flags gives the same library. Only libraries of a run without failures are kept, so that
 * one that was written half when a test failed cannot fail the next run, too. Tests whose subject is the compile have a
 * folder to themselves. The kernels of another checkout are renamed for this one (scripts/kernel_keys.py).
 */

import { execFileSync } from "node:child_process";
import * as fs from "node:fs";
import * as os from "node:os";
import * as path from "node:path";
import { CACHE, hashOf, ROOT, VENV, VENV_PYTHON } from "./paths.mjs";

/** Beyond that many files the folder is begun again, without what no test needs any longer. */
const MOST_FILES = 3000;
/** Names the `.venv` whose torch the kept kernels were compiled with. */
const VENV_FILE = "venv.txt";

/** @param {string} torch the version of torch that is installed @returns {{folder: string, keep: () => void, remove: () => void}} */
export function kernelFolder(torch) {
  const compiler = version(process.env["CXX"] ?? "g++");
  const kept = path.join(CACHE, `kernels-${hashOf(torch, compiler)}`);
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "irscope-kernels-"));
  copyKernels(kept, folder);
  useKernelsOfAnotherCheckout(kept, folder);
  return {
    folder,
    keep: () => {
      fs.mkdirSync(CACHE, { recursive: true }); // not every tier makes it
      const partial = fs.mkdtempSync(`${kept}.partial-`);
      const count = copyKernels(folder, partial);
      fs.writeFileSync(path.join(partial, VENV_FILE), VENV);
      fs.rmSync(kept, { recursive: true, force: true });
      if (count <= MOST_FILES) {
        fs.renameSync(partial, kept);
      } else {
        fs.rmSync(partial, { recursive: true, force: true });
      }
    },
    remove: () => fs.rmSync(folder, { recursive: true, force: true }),
  };
}

/** Without this, they would be compiled again. @param {string} kept @param {string} folder */
function useKernelsOfAnotherCheckout(kept, folder) {
  const file = path.join(kept, VENV_FILE);
  const venv = fs.existsSync(file) ? fs.readFileSync(file, "utf8") : VENV;
  if (venv !== VENV) {
    try {
      const args = [path.join(ROOT, "scripts", "kernel_keys.py"), folder, venv];
      process.stderr.write(execFileSync(VENV_PYTHON, args, { encoding: "utf8" }));
    } catch (error) {
      console.error(`Kernels of ${venv} are not used: ${error instanceof Error ? error.message : error}`);
    }
  }
}

/** @param {string} from @param {string} to @returns {number} how many files */
function copyKernels(from, to) {
  let count = 0;
  for (const shelf of fs.existsSync(from) ? fs.readdirSync(from) : []) {
    if (!/^\w\w$/.test(shelf)) {
      continue; // locks, and the caches of graphs
    }
    const names = fs.readdirSync(path.join(from, shelf));
    for (const library of names.filter((name) => name.endsWith(".so"))) {
      const stem = library.slice(0, -".so".length);
      for (const name of names.filter((each) => each === library || each === `${stem}.cpp`)) {
        fs.mkdirSync(path.join(to, shelf), { recursive: true });
        fs.copyFileSync(path.join(from, shelf, name), path.join(to, shelf, name));
        count += 1;
      }
    }
  }
  return count;
}

/** @param {string} program */
function version(program) {
  try {
    return execFileSync(program, ["--version"], { encoding: "utf8" });
  } catch {
    return "";
  }
}
