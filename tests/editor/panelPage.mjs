/** A panel in a page of its own, with canned answers in place of the server: as `irscope view` hosts it, without Python. */

import * as fs from "node:fs";
import * as http from "node:http";
import * as path from "node:path";
import { ROOT } from "../../scripts/lib/paths.mjs";

const DIST = path.join(ROOT, "extension", "dist");
const POLICY = "default-src 'none'; style-src 'self'; script-src 'self'; worker-src blob:";

/** Stands in for the editor: answers what the panel asks for, and keeps what it says. */
function host() {
  const page = /** @type {any} */ (globalThis);
  page.said = [];
  page.addEventListener("message", async (/** @type {MessageEvent} */ event) => {
    const frame = page.document.querySelector("iframe").contentWindow;
    const message = event.data;
    page.said.push(message);
    if (message.type === "ready") {
      frame.postMessage({ type: "subject", subject: page.subject }, "*");
    } else if (message.type === "request") {
      const response = await page.fetch(
        `/answer?${new URLSearchParams({ method: message.method, params: JSON.stringify(message.params) })}`,
      );
      const answer = await response.json();
      frame.postMessage(
        response.ok
          ? { type: "answer", id: message.id, result: answer }
          : { type: "failed", id: message.id, message: answer.message },
        "*",
      );
    }
  });
}

/**
 * @param {string} panel the panel's name @param {object} subject
 * @param {(method: string, params: any) => string | Promise<string>} answer JSON, or raises an error that is the answer
 * @param {string} [styles] a style sheet with the editor's variables @param {string} [theme] the class of the body
 */
export async function servePanel(panel, subject, answer, styles = "", theme = "vscode-dark") {
  const script = `globalThis.subject = ${JSON.stringify(subject)};\n(${host})();`;
  /** @type {Record<string, [type: string, body: () => string | Buffer]>} */
  const files = {
    "/": [
      "text/html",
      () =>
        `<!DOCTYPE html><html lang="en"><title>Host</title><link rel="stylesheet" href="/host.css"><script src="/host.js"></script><iframe src="/panel" title="panel"></iframe></html>`,
    ],
    "/host.js": ["text/javascript", () => script],
    "/host.css": [
      "text/css",
      () => "body { margin: 0 } iframe { width: 100vw; height: 100vh; border: 0; display: block }",
    ],
    "/theme.css": ["text/css", () => styles],
    "/panel": [
      "text/html",
      () =>
        `<!DOCTYPE html><html lang="en"><head><meta charset="UTF-8"><title>Panel</title><link rel="stylesheet" href="/theme.css"><link rel="stylesheet" href="/${panel}.css"></head><body class="${theme}"><script src="/${panel}.js"></script></body></html>`,
    ],
    [`/${panel}.js`]: ["text/javascript", () => fs.readFileSync(path.join(DIST, `${panel}.js`))],
    [`/${panel}.css`]: ["text/css", () => fs.readFileSync(path.join(DIST, `${panel}.css`))],
  };
  const server = http.createServer(async (request, response) => {
    const url = new URL(request.url ?? "/", "http://localhost");
    if (url.pathname === "/answer") {
      let [status, body] = [200, ""];
      try {
        body = await answer(url.searchParams.get("method") ?? "", JSON.parse(url.searchParams.get("params") ?? "{}"));
      } catch (error) {
        [status, body] = [500, JSON.stringify({ message: error instanceof Error ? error.message : String(error) })];
      }
      response.writeHead(status, { "content-type": "application/json" }).end(body);
      return;
    }
    const file = files[url.pathname];
    if (file === undefined) {
      response.writeHead(404).end();
      return;
    }
    const headers = {
      "content-type": file[0],
      ...(url.pathname === "/panel" ? { "content-security-policy": POLICY } : {}),
    };
    response.writeHead(200, headers).end(file[1]());
  });
  await new Promise((/** @type {(value?: unknown) => void} */ resolve) =>
    server.listen(0, "127.0.0.1", () => resolve()),
  );
  const address = /** @type {import("node:net").AddressInfo} */ (server.address());
  return {
    url: `http://127.0.0.1:${address.port}/`,
    stop: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}
