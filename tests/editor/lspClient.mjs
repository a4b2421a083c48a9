/** A language client of a few lines, for tests that start the packed server themselves. */

export class LspClient {
  /** @param {import("node:child_process").ChildProcessByStdio<import("node:stream").Writable, import("node:stream").Readable, null>} server */
  constructor(server) {
    this.server = server;
    this.nextId = 1;
    /** @type {Map<number, {resolve: (value: any) => void, reject: (error: Error) => void}>} */
    this.waiting = new Map();
    /** @type {{method: string, params: any}[]} */
    this.received = [];
    /** @type {(() => void)[]} */
    this.watchers = [];
    let buffer = Buffer.alloc(0);
    server.stdout.on("data", (chunk) => {
      buffer = Buffer.concat([buffer, chunk]);
      for (;;) {
        const end = buffer.indexOf("\r\n\r\n");
        const length = Number(/Content-Length: (\d+)/i.exec(buffer.subarray(0, Math.max(end, 0)).toString())?.[1]);
        if (end < 0 || buffer.length < end + 4 + length) {
          return;
        }
        const message = JSON.parse(buffer.subarray(end + 4, end + 4 + length).toString());
        buffer = buffer.subarray(end + 4 + length);
        this.receive(message);
      }
    });
    server.on("close", (code) => {
      for (const { reject } of this.waiting.values()) {
        reject(new Error(`the server ended with ${code}`));
      }
    });
  }

  /** @param {string} method @param {object} params @returns {Promise<any>} */
  request(method, params) {
    const id = this.nextId++;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve, reject });
      this.send({ id, method, params });
    });
  }

  /** @param {string} method @param {object} params */
  notify(method, params) {
    this.send({ method, params });
  }

  /** The first notification of a kind that fits, past or to come. @param {string} method @param {(params: any) => boolean} fits @returns {Promise<any>} */
  until(method, fits) {
    return new Promise((resolve) => {
      const look = () => {
        const found = this.received.find((each) => each.method === method && fits(each.params));
        if (found !== undefined) {
          resolve(found.params);
        }
      };
      this.watchers.push(look);
      look();
    });
  }

  /** What the script printed, as far as it was told. */
  output() {
    const of = (/** @type {string} */ stream) =>
      this.received
        .filter(({ method, params }) => method === "irscope/output" && params.stream === stream)
        .map(({ params }) => params.text)
        .join("");
    return { stdout: of("stdout"), stderr: of("stderr") };
  }

  async end() {
    if (this.server.exitCode !== null) {
      return;
    }
    const closed = new Promise((resolve) => this.server.on("close", resolve));
    const late = setTimeout(() => this.server.kill("SIGKILL"), 10_000);
    this.request("shutdown", {}).catch(() => undefined);
    this.notify("exit", {});
    await closed;
    clearTimeout(late);
  }

  /** @param {any} message */
  receive(message) {
    if (message.method === undefined) {
      const waiting = this.waiting.get(message.id);
      this.waiting.delete(message.id);
      if (message.error === undefined) {
        waiting?.resolve(message.result);
      } else {
        waiting?.reject(new Error(message.error.message));
      }
      return;
    }
    if (message.id !== undefined) {
      this.send({ id: message.id, result: message.method === "workspace/configuration" ? [null] : null });
    }
    this.received.push(message);
    this.watchers.forEach((look) => look());
  }

  /** @param {object} message */
  send(message) {
    const body = Buffer.from(JSON.stringify({ jsonrpc: "2.0", ...message }));
    this.server.stdin.write(`Content-Length: ${body.length}\r\n\r\n`);
    this.server.stdin.write(body);
  }
}
