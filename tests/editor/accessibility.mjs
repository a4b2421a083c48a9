/** axe-core in a page or a frame. */

import axe from "axe-core";

/** Rules about headings and landmarks, which a panel leaves to the page or the editor around it. */
export const OF_THE_PAGE_AROUND = ["region", "page-has-heading-one", "landmark-one-main"];

/** @typedef {{id: string, help: string, nodes: {html: string, failureSummary: string}[]}} Violation */

/**
 * What axe has to complain of in a page or a frame, without the frames in it: one text for each element.
 * The source is evaluated by the browser's debugger, so a content security policy does not keep it out.
 * @param {import("playwright-core").Page | import("playwright-core").Frame} frame
 * @param {string[]} [without] rules that are not looked at
 * @returns {Promise<string[]>}
 */
export async function violations(frame, without = []) {
  await frame.evaluate(axe.source);
  const found = await frame.evaluate(async (rules) => {
    const run = await /** @type {any} */ (window).axe.run(document, {
      resultTypes: ["violations"],
      iframes: false,
      rules: Object.fromEntries(rules.map((id) => [id, { enabled: false }])),
    });
    return /** @type {Violation[]} */ (run.violations);
  }, without);
  return found.flatMap(({ id, help, nodes }) =>
    nodes.map(({ html, failureSummary }) => `${id}: ${help}\n  ${html.slice(0, 300)}\n  ${failureSummary}`),
  );
}
