/** Waiting for what comes by itself, a while after it was asked for. */

import assert from "node:assert/strict";

/** How long a test waits for what comes at once on a machine that does nothing else. */
export const PATIENCE_MS = 120_000;
const LOOK_MS = 100;

/**
 * Asks again and again until the answer is as it has to be, and gives it; otherwise the last answer is told.
 * @template Answer
 * @param {() => Promise<Answer>} ask @param {(answer: Answer) => boolean} holds
 * @param {string} what is waited for @param {number} [patience] milliseconds
 * @returns {Promise<Answer>}
 */
export async function until(ask, holds, what, patience = PATIENCE_MS) {
  for (const end = Date.now() + patience; ; await new Promise((resolve) => setTimeout(resolve, LOOK_MS))) {
    const answer = await ask();
    if (holds(answer)) {
      return answer;
    }
    if (Date.now() > end) {
      assert.fail(`${what}, not within ${patience / 1000} s: ${JSON.stringify(answer)}`);
    }
  }
}
