/**
 * Installs Python packages with uv, which takes seconds where pip takes a minute; with pip where uv cannot be had or fails.
 * uv reads none of pip's settings (index, certificate, constraints), so they are handed on.
 */

import * as fs from "node:fs";
import * as path from "node:path";
import { fileURLToPath } from "node:url";
import { ROOT, VENV, VENV_PYTHON } from "./paths.mjs";
import { execute } from "./terminal.mjs";

const UV = path.join(path.dirname(VENV_PYTHON), process.platform === "win32" ? "uv.exe" : "uv");
const PIP = ["-m", "pip", "install", "--disable-pip-version-check", "--progress-bar", "off"];

/** pip's settings, the variable of uv that means the same, and what is between several values. */
const VARIABLES = /** @type {const} */ ([
  ["index-url", "UV_DEFAULT_INDEX", " "],
  ["extra-index-url", "UV_INDEX", " "],
  ["find-links", "UV_FIND_LINKS", ","],
  ["constraint", "UV_CONSTRAINT", " "],
  ["trusted-host", "UV_INSECURE_HOST", " "],
  ["no-index", "UV_NO_INDEX", " "],
  ["cert", "SSL_CERT_FILE", " "],
  ["timeout", "UV_HTTP_TIMEOUT", " "],
]);

/** @type {Promise<NodeJS.ProcessEnv | undefined> | undefined} */
let known;

/**
 * Installs packages into `.venv`. Throws a Failure if neither uv nor pip can.
 * @param {string[]} args as `pip install` has them
 * @param {{report?: (line: string) => void, next?: string}} options of `execute`
 */
export async function installPackages(args, options) {
  known ??= environmentOfUv();
  const env = await known;
  if (env !== undefined) {
    try {
      await execute(UV, ["pip", "install", "--python", VENV_PYTHON, ...args], { ...options, cwd: ROOT, env });
      return;
    } catch (error) {
      options.report?.(`uv could not, so pip tries: ${error instanceof Error ? error.message : error}`);
    }
  }
  await execute(VENV_PYTHON, [...PIP, ...args], { ...options, cwd: ROOT });
}

/** The environment for uv, which is installed first; undefined where it cannot be. */
async function environmentOfUv() {
  try {
    if (!fs.existsSync(UV)) {
      await execute(VENV_PYTHON, [...PIP, "uv"], { cwd: ROOT });
    }
    const settings = await execute(VENV_PYTHON, ["-m", "pip", "config", "list"], { cwd: ROOT });
    return { ...process.env, ...asVariables(settings), VIRTUAL_ENV: VENV };
  } catch {
    return undefined;
  }
}

/**
 * The settings that `pip config list` prints, as uv's variables. Like pip, uv then takes the newest version of all indexes,
 * and looks into no folder that is not there.
 * @param {string} listed
 */
export function asVariables(listed) {
  /** @type {NodeJS.ProcessEnv} */
  const variables = { UV_INDEX_STRATEGY: "unsafe-best-match" };
  for (const line of listed.split("\n")) {
    const [, name, value] = /^(?:global|install|:env:)\.([\w-]+)=['"](.*)['"]$/.exec(line.trim()) ?? [];
    const [, variable, between] = VARIABLES.find(([setting]) => setting === name) ?? [];
    if (variable !== undefined && value !== undefined) {
      const values = value.split(/\\n|\s+/).filter((text) => text !== "" && isThere(text));
      variables[variable] = values.join(between);
    }
  }
  return variables;
}

/** @param {string} place a path, an address or another value */
function isThere(place) {
  return !place.startsWith("file:") || fs.existsSync(fileURLToPath(place));
}
