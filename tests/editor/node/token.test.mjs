/** The editor in the browser answers only to who has the token, from the right place. */

import assert from "node:assert/strict";
import * as fs from "node:fs";
import * as http from "node:http";
import * as net from "node:net";
import { startEditor } from "../../../scripts/lib/codeServer.mjs";
import { ensureCodeServer } from "../../../scripts/setup.mjs";
import { makeHome } from "../home.mjs";

describe("the browser-based editor", () => {
  /** @type {import("../../../scripts/lib/codeServer.mjs").Editor} */
  let editor;
  /** @type {string} */
  let home;
  /** @type {string} */
  let cookie;

  before(async () => {
    home = makeHome("token");
    editor = await startEditor({ codeServer: await ensureCodeServer(), home, settings: {} });
    const answer = await fetch(editor.address("/tmp"), { redirect: "manual" });
    cookie = (answer.headers.get("set-cookie") ?? "").split(";")[0] ?? "";
    assert.equal(answer.status, 302);
    assert.equal(answer.headers.get("location"), "/?folder=%2Ftmp", "the token does not stay in the address");
    assert.match(answer.headers.get("set-cookie") ?? "", /HttpOnly; SameSite=Lax/);
  });

  after(async () => {
    await editor?.stop();
    if (home !== undefined) {
      fs.rmSync(home, { recursive: true, force: true });
    }
  });

  it("refuses requests without the token, with a wrong one, and with a wrong cookie", async () => {
    assert.equal((await fetch(`${editor.origin}/`)).status, 401);
    assert.equal((await fetch(`${editor.origin}/?token=wrong`)).status, 401);
    assert.equal(
      (await fetch(`${editor.origin}/`, { headers: { cookie: `${cookie.split("=")[0]}=wrong` } })).status,
      401,
    );
    assert.equal((await fetch(`${editor.origin}/`, { headers: { cookie } })).status, 200);
  });

  it("refuses another host's name, which a page on the web could have made point here", async () => {
    const status = await new Promise((resolve) => {
      const { port } = new URL(editor.origin);
      http.get({ host: "127.0.0.1", port, path: "/", headers: { host: "evil.example", cookie } }, (answer) => {
        answer.resume();
        resolve(answer.statusCode);
      });
    });
    assert.equal(status, 401);
  });

  it("refuses a WebSocket without the cookie, and one from another page", async () => {
    assert.match(await upgrade(editor.origin, {}), /^HTTP\/1\.1 401/);
    assert.match(await upgrade(editor.origin, { cookie, origin: "http://127.0.0.1:1" }), /^HTTP\/1\.1 401/);
    assert.match(await upgrade(editor.origin, { cookie, origin: editor.origin }), /^HTTP\/1\.1 101/);
  });

  it("listens on the loopback address alone", async () => {
    const { port } = new URL(editor.origin);
    const listening = fs
      .readFileSync("/proc/net/tcp", "utf8")
      .split("\n")
      .map((line) => line.trim().split(/\s+/));
    const hex = Number(port).toString(16).toUpperCase().padStart(4, "0");
    const own = listening.filter(([, local, , state]) => local?.endsWith(`:${hex}`) && state === "0A");
    assert.deepEqual(
      own.map(([, local]) => local),
      [`0100007F:${hex}`],
    );
  });
});

/** The first line of the answer to a WebSocket request. @param {string} origin @param {Record<string, string>} headers @returns {Promise<string>} */
function upgrade(origin, headers) {
  const { port } = new URL(origin);
  return new Promise((resolve, reject) => {
    const socket = net.connect(Number(port), "127.0.0.1", () => {
      const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
      socket.write(
        `GET /?reconnectionToken=x HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
          `Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n${lines.join("")}\r\n`,
      );
    });
    socket.setTimeout(10_000, () => reject(new Error("no answer")));
    socket.on("data", (chunk) => {
      resolve(chunk.toString().split("\r\n")[0] ?? "");
      socket.destroy();
    });
    socket.on("error", reject);
  });
}
