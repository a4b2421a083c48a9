/** `irscope view` for tests: its server, and its page in a browser. */

import { execFileSync, spawn } from "node:child_process";
import * as path from "node:path";
import { ROOT, VENV_PYTHON } from "../../scripts/lib/paths.mjs";
import { PATIENCE_MS } from "./until.mjs";

/** @typedef {{url: string, stop: () => Promise<number | null>, open: (...args: string[]) => string}} View */

/** @param {string} store @param {string} home a folder for what it notes down @param {string[]} args @returns {Promise<View>} */
export async function startView(store, home, ...args) {
  const env = { ...process.env, XDG_CACHE_HOME: home };
  const command = ["-m", "irscope", "view", "--no-browser", "--store", store];
  const child = spawn(VENV_PYTHON, [...command, ...args], { cwd: ROOT, env, stdio: ["ignore", "pipe", "pipe"] });
  const ended = new Promise((/** @type {(code: number | null) => void} */ resolve) => child.on("close", resolve));
  let output = "";
  const url = await new Promise((/** @type {(url: string) => void} */ resolve, reject) => {
    for (const stream of [child.stdout, child.stderr]) {
      stream.on("data", (chunk) => {
        output += chunk;
        const found = /http:\S+(?=\n)/.exec(output);
        if (found !== null) {
          resolve(found[0]);
        }
      });
    }
    void ended.then((code) => reject(new Error(`irscope view ended with ${code}:\n${output}`)));
  });
  return {
    url,
    stop: () => {
      child.kill("SIGINT");
      return ended;
    },
    open: (...more) => execFileSync(VENV_PYTHON, [...command, ...more], { cwd: ROOT, env, encoding: "utf8" }),
  };
}

/**
 * Opens the page and waits until it shows something.
 * @param {import("playwright-core").Browser} browser @param {string} url @param {"dark" | "light" | "hc-dark" | "hc-light"} theme
 */
export async function openPage(browser, url, theme) {
  const page = await browser.newPage({ viewport: { width: 1400, height: 900 } });
  page.setDefaultTimeout(PATIENCE_MS);
  /** @type {string[]} */
  const errors = [];
  page.on("pageerror", (error) => errors.push(error.message));
  page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
  await page.addInitScript((name) => window.localStorage.setItem("irscope-theme", name), theme);
  await page.goto(url);
  await page.locator("body[data-ready]").waitFor();
  return { page, errors };
}

/** Makes a store of hostile names. @param {string} home @returns {{store: string, run: string, script: string}} */
export function hostileStore(home) {
  const store = path.join(home, "hostile.db");
  const made = path.join(ROOT, "tests", "editor", "hostile_store.py");
  const [run = "", script = ""] = execFileSync(VENV_PYTHON, [made, store, home], { encoding: "utf8" })
    .trim()
    .split("\n");
  return { store, run, script };
}
