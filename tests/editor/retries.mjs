/** A test that drives a browser may fail once: a second attempt counts, and the summary of `npm test` names it. */

import * as fs from "node:fs";

const DRIVES_A_BROWSER = /from "\.\.\/(browser|screen)\.mjs"/;

export const mochaHooks = {
  /** @this {Mocha.Context} */
  beforeEach() {
    const test = this.currentTest;
    if (test?.file !== undefined && DRIVES_A_BROWSER.test(fs.readFileSync(test.file, "utf8"))) {
      test.retries(1);
    }
  },
};
