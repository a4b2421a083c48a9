/**
 * A VS Code in the browser, on 127.0.0.1, behind a token.
 *
 * code-server itself listens on a Unix socket in a folder that only this user can enter, so no port is open to clients
 * without a token. In front of it is a small proxy: the address with the token sets a cookie, and nothing is passed
 * on without it. The cookie has SameSite=Lax, the Host must be the loopback address, and a WebSocket must come from this
 * very origin, so no other page gets in by way of the user's browser.
 */

import { spawn } from "node:child_process";
import * as crypto from "node:crypto";
import * as fs from "node:fs";
import * as http from "node:http";
import * as os from "node:os";
import * as path from "node:path";
import { Failure } from "./terminal.mjs";

const START_PATIENCE_MS = 60_000;
/** What code-server says when its own second process, which it gives 10 s, is not there yet. */
const TIMED_OUT = /\berror timed out\b/;
const ATTEMPTS = 3;
const BUSY =
  "The machine is too busy: code-server gives the process that it starts 10 s. Try again when less is running.";
const BROKEN = "If it does not start at another time, remove its folder in the cache: it is then built again.";

/**
 * @typedef {object} Editor
 * @property {string} origin `http://127.0.0.1:PORT`
 * @property {string} token
 * @property {(folder: string, extra?: Record<string, string>) => string} address the page that opens a folder
 * @property {Promise<number>} ended settles with the exit code when code-server ends
 * @property {() => Promise<void>} stop ends code-server, its extension hosts and what they started
 */

/**
 * @param {object} options
 * @param {import("../setup.mjs").CodeServer} options.codeServer
 * @param {string} options.home folder for user data, settings and extensions
 * @param {Record<string, unknown>} options.settings the user's settings.json
 * @param {string[]} [options.flags] more flags for code-server
 * @param {string} [options.vsix] an extension to install
 * @param {string} [options.extensions] folder of the extensions, if it is not in `home`
 * @param {NodeJS.ProcessEnv} [options.env]
 * @param {boolean} [options.trusted] open every folder as trusted
 * @returns {Promise<Editor>}
 */
export async function startEditor({
  codeServer,
  home,
  settings,
  flags = [],
  vsix,
  extensions = path.join(home, "extensions"),
  env = {},
  trusted = true,
}) {
  const userData = path.join(home, "data");
  fs.mkdirSync(extensions, { recursive: true });
  // To the page in the browser this is a remote machine, so what is a setting of the machine is read from `Machine`.
  for (const scope of ["User", "Machine"]) {
    fs.mkdirSync(path.join(userData, scope), { recursive: true });
    fs.writeFileSync(path.join(userData, scope, "settings.json"), JSON.stringify({ ...QUIET, ...settings }, null, 2));
  }
  const config = path.join(home, "config.yaml");
  fs.writeFileSync(config, "auth: none\ncert: false\n");
  const folders = ["--config", config, "--user-data-dir", userData, "--extensions-dir", extensions];
  const environment = { ...cleanEnvironment(), ...env };
  if (vsix !== undefined) {
    await runOnce(codeServer, [...folders, "--install-extension", vsix, "--force"], environment);
  }
  // The path of a Unix socket may have about 100 characters, so it does not go into `home`.
  const sockets = fs.mkdtempSync(path.join(os.tmpdir(), "irscope-"));
  const socket = path.join(sockets, "editor.sock");
  const launch = () =>
    launched(
      codeServer.node,
      [
        codeServer.entry,
        ...folders,
        "--socket",
        socket,
        "--socket-mode",
        "600",
        "--auth",
        "none",
        "--disable-telemetry",
        "--disable-update-check",
        "--disable-getting-started-override",
        ...(trusted ? ["--disable-workspace-trust"] : []),
        ...flags,
      ],
      environment,
    );
  const token = crypto.randomBytes(24).toString("base64url");
  const proxy = await startProxy(socket, token);
  let server = launch();
  const stop = async () => {
    proxy.close();
    proxy.closeAllConnections();
    await killGroup(server.child, server.ended);
    fs.rmSync(sockets, { recursive: true, force: true });
  };
  for (let attempt = 1; ; attempt += 1) {
    try {
      await untilUp(socket, server.ended);
      break;
    } catch (error) {
      const isLate = TIMED_OUT.test(server.log());
      if (isLate && attempt < ATTEMPTS) {
        await killGroup(server.child, server.ended);
        server = launch();
        continue;
      }
      await stop();
      throw new Failure(`${error instanceof Error ? error.message : error}\n${server.log()}`, isLate ? BUSY : BROKEN);
    }
  }
  const { ended } = server;
  const { port } = /** @type {import("node:net").AddressInfo} */ (proxy.address());
  const origin = `http://127.0.0.1:${port}`;
  return {
    origin,
    token,
    ended,
    stop,
    address: (folder, extra = {}) => `${origin}/?${new URLSearchParams({ token, folder, ...extra })}`,
  };
}

/** @param {string} command @param {string[]} args @param {NodeJS.ProcessEnv} env */
function launched(command, args, env) {
  const child = spawn(command, args, { env, stdio: ["ignore", "pipe", "pipe"], detached: true });
  let log = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (chunk) => {
      log = (log + chunk).slice(-20_000);
    });
  }
  const ended = new Promise((/** @type {(code: number) => void} */ resolve) => {
    child.on("error", () => resolve(1));
    child.on("close", (code) => resolve(code ?? 1));
  });
  return { child, ended, log: () => log };
}

/** A VS Code with nothing but the work on the screen. */
const QUIET = {
  "workbench.startupEditor": "none",
  "chat.disableAIFeatures": true,
  "workbench.secondarySideBar.defaultVisibility": "hidden",
  "workbench.tips.enabled": false,
  "workbench.welcomePage.walkthroughs.openOnInstall": false,
  "telemetry.telemetryLevel": "off",
  "extensions.ignoreRecommendations": true,
  "update.mode": "none",
  "security.workspace.trust.startupPrompt": "never",
  "git.openRepositoryInParentFolders": "never",
};

/** @param {string} socket @param {string} token @returns {Promise<http.Server>} */
function startProxy(socket, token) {
  /** @type {string} */
  let host;
  /** @type {string} */
  let cookieName;
  /** @param {http.IncomingMessage} request */
  const isAllowed = (request) => {
    const cookies = (request.headers.cookie ?? "").split(/;\s*/);
    const given = cookies.find((cookie) => cookie.startsWith(`${cookieName}=`))?.slice(cookieName.length + 1);
    return request.headers.host === host && given !== undefined && isSame(given, token);
  };
  const proxy = http.createServer((request, response) => {
    const url = new URL(request.url ?? "/", "http://127.0.0.1");
    const given = url.searchParams.get("token");
    if (given !== null && request.headers.host === host && isSame(given, token)) {
      // The token goes into a cookie and out of the address, the history and the Referer.
      url.searchParams.delete("token");
      const cookie = `${cookieName}=${token}; Path=/; HttpOnly; SameSite=Lax`;
      response.writeHead(302, { location: `${url.pathname}${url.search}`, "set-cookie": cookie }).end();
      return;
    }
    if (!isAllowed(request)) {
      response.writeHead(401, { "content-type": "text/plain" }).end("This editor needs the address with its token.\n");
      return;
    }
    const upstream = http.request(
      { socketPath: socket, path: request.url, method: request.method, headers: request.headers },
      (answer) => {
        response.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(response);
      },
    );
    upstream.on("error", () => {
      if (!response.headersSent) {
        response.writeHead(502);
      }
      response.end();
    });
    response.on("close", () => upstream.destroy());
    request.pipe(upstream);
  });
  proxy.on("upgrade", (request, downstream, head) => {
    downstream.on("error", () => undefined);
    if (!isAllowed(request) || request.headers.origin !== `http://${host}`) {
      downstream.end("HTTP/1.1 401 Unauthorized\r\nConnection: close\r\n\r\n");
      return;
    }
    const upstream = http.request({ socketPath: socket, path: request.url, headers: request.headers });
    upstream.on("upgrade", (answer, upstreamSocket, upstreamHead) => {
      const lines = [`HTTP/1.1 ${answer.statusCode} ${answer.statusMessage}`];
      for (let index = 0; index < answer.rawHeaders.length; index += 2) {
        lines.push(`${answer.rawHeaders[index]}: ${answer.rawHeaders[index + 1]}`);
      }
      downstream.write(`${lines.join("\r\n")}\r\n\r\n`);
      upstreamSocket.write(head);
      downstream.write(upstreamHead);
      upstreamSocket.pipe(downstream).pipe(upstreamSocket);
      upstreamSocket.on("error", () => downstream.destroy());
      upstreamSocket.on("close", () => downstream.destroy());
      downstream.on("close", () => upstreamSocket.destroy());
    });
    upstream.on("response", () => downstream.destroy());
    upstream.on("error", () => downstream.destroy());
    upstream.end();
  });
  return new Promise((resolve, reject) => {
    proxy.on("error", reject);
    proxy.listen(0, "127.0.0.1", () => {
      const { port } = /** @type {import("node:net").AddressInfo} */ (proxy.address());
      host = `127.0.0.1:${port}`;
      // Cookies do not tell ports apart, so the port is in the name.
      cookieName = `irscope-${port}`;
      resolve(proxy);
    });
  });
}

/** Compares without telling by its time how much was right. @param {string} left @param {string} right */
function isSame(left, right) {
  const [a, b] = [left, right].map((text) => crypto.createHash("sha256").update(text).digest());
  return a !== undefined && b !== undefined && crypto.timingSafeEqual(a, b);
}

/** @param {string} socket @param {Promise<number>} ended */
async function untilUp(socket, ended) {
  let exit = /** @type {number | undefined} */ (undefined);
  void ended.then((code) => {
    exit = code;
  });
  const deadline = Date.now() + START_PATIENCE_MS;
  while (Date.now() < deadline && exit === undefined) {
    const up = await new Promise((resolve) => {
      const request = http.get({ socketPath: socket, path: "/healthz" }, (answer) => {
        answer.resume();
        resolve(true);
      });
      request.on("error", () => resolve(false));
    });
    if (up === true) {
      return;
    }
    await new Promise((resolve) => setTimeout(resolve, 150));
  }
  throw new Failure(exit === undefined ? "code-server did not come up in time." : `code-server ended with ${exit}.`);
}

/** @param {import("../setup.mjs").CodeServer} codeServer @param {string[]} args @param {NodeJS.ProcessEnv} env */
async function runOnce(codeServer, args, env) {
  const { execute } = await import("./terminal.mjs");
  await execute(codeServer.node, [codeServer.entry, ...args], { env });
}

/** Ends a process and all that it started. @param {import("node:child_process").ChildProcess} child @param {Promise<number>} ended */
export async function killGroup(child, ended) {
  /** @param {NodeJS.Signals} signal */
  const send = (signal) => {
    try {
      process.kill(-(child.pid ?? 0), signal);
    } catch {
      // It has gone already.
    }
  };
  if (child.pid === undefined) {
    return;
  }
  send("SIGTERM");
  const patience = new Promise((resolve) => setTimeout(resolve, 4_000, "late").unref());
  await Promise.race([ended, patience]);
  send("SIGKILL"); // What ignored the first, or was not the leader.
}

/** Leaves out what another VS Code, around this terminal, has set for itself. */
function cleanEnvironment() {
  const foreign = /^(VSCODE_|ELECTRON_|PASSWORD$|HASHED_PASSWORD$|CODE_SERVER_|npm_|PORT$)/;
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !foreign.test(name)));
}
