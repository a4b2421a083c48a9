/** The page's side of the worker that finds tokens: a text on which it hangs stays plain, and all others get their colours. */

import assert from "node:assert/strict";
import { mock } from "node:test";
import { load } from "../modules.mjs";

/** Lets more time pass than any answer is waited for; in steps, since what one timer sets comes with the next step. */
function pass() {
  for (let step = 0; step < 120; step += 1) {
    mock.timers.tick(500);
  }
}

describe("the worker that finds tokens", () => {
  /** @type {FakeWorker[]} */
  let workers = [];

  /** Answers with one token for each chunk, and hangs on texts that are a bomb. */
  class FakeWorker {
    /** @type {Map<number, {text: string, skipped: number[]}>} */
    texts = new Map();
    terminated = false;
    /** @type {(event: {data: unknown}) => void} */
    onMessage = () => undefined;

    constructor() {
      workers.push(this);
    }

    /** @param {string} type @param {(event: {data: unknown}) => void} listener */
    addEventListener(type, listener) {
      if (type === "message") {
        this.onMessage = listener;
      }
    }

    /** @param {any} message */
    postMessage(message) {
      if (message.type === "open") {
        this.texts.set(message.id, { ...message, skipped: [...message.skipped] });
      } else if (message.type === "chunk" && this.texts.get(message.id)?.text !== "bomb") {
        const answer = { id: message.id, chunk: message.chunk, spans: Uint32Array.of(0, 1, 1) };
        setTimeout(() => this.terminated || this.onMessage({ data: answer }), 10);
      }
    }

    terminate() {
      this.terminated = true;
    }
  }

  /** @type {any} */
  let TokenizedText;

  before(async () => {
    ({ TokenizedText } = await load("view/highlighting/tokenizer"));
  });

  beforeEach(() => {
    workers = [];
    mock.timers.enable({ apis: ["setTimeout"] });
    Object.assign(globalThis, { window: globalThis, Worker: FakeWorker });
  });

  afterEach(() => {
    mock.timers.reset();
    Reflect.deleteProperty(globalThis, "window");
    Reflect.deleteProperty(globalThis, "Worker");
  });

  /** @param {string} text */
  function opened(text) {
    /** @type {[number, number][]} the chunks that came, and how many tokens each has */
    const heard = [];
    const made = new TokenizedText("ptx", text, (/** @type {number} */ chunk, /** @type {Uint32Array} */ spans) =>
      heard.push([chunk, spans.length / 3]),
    );
    return { text: made, heard };
  }

  it("ends a worker that hangs, and goes on with a new one", () => {
    const bomb = opened("bomb");
    const other = opened("other");
    bomb.text.want([4]);
    other.text.want([0, 1]);
    pass();
    assert.deepEqual(bomb.heard, [[4, 0]], "its lines stay plain");
    assert.deepEqual(other.heard, [
      [0, 1],
      [1, 1],
    ]);
    assert.deepEqual(
      workers.map(({ terminated }) => terminated),
      [true, false],
    );
    bomb.text.want([5]);
    assert.deepEqual([...(workers[1]?.texts.values() ?? [])].at(-1)?.skipped, [4], "the new worker is told");
    bomb.text.close();
    other.text.close();
    pass();
  });

  it("leaves a text plain that hangs again and again", () => {
    const bomb = opened("bomb");
    for (let chunk = 0; chunk < 10; chunk += 1) {
      bomb.text.want([chunk]);
      pass();
    }
    assert.equal(bomb.heard.length, 3);
    assert.equal(workers.filter(({ terminated }) => terminated).length, 3);
    bomb.text.close();
  });

  it("forgets what is not seen any more, and texts that were closed", () => {
    const { text, heard } = opened("long");
    text.want([0, 1, 2, 3]);
    text.want([8]);
    pass();
    assert.deepEqual(
      heard.map(([chunk]) => chunk),
      [0, 8],
    );
    text.want([9]);
    text.close();
    pass();
    assert.equal(heard.length, 2);
  });
});
