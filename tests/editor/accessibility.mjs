/** axe-core in a frame of a page. */

import axe from "axe-core";

/**
 * What axe finds serious or critical in a frame, one line each.
 * The source is evaluated by the browser's debugger, so a content security policy does not keep it out.
 * @param {import("playwright-core").Frame} frame
 * @returns {Promise<string[]>}
 */
export async function seriousViolations(frame) {
  await frame.evaluate(axe.source);
  const found = await frame.evaluate(async () => {
    const { violations } = await /** @type {any} */ (window).axe.run(document, { resultTypes: ["violations"] });
    return violations;
  });
  return found
    .filter((/** @type {{impact: string}} */ { impact }) => impact === "serious" || impact === "critical")
    .map(
      (
        /** @type {{id: string, help: string, nodes: {html: string, failureSummary: string}[]}} */ { id, help, nodes },
      ) =>
        `${id}: ${help}: ${nodes
          .slice(0, 3)
          .map(
            ({ html, failureSummary }) =>
              `${html.slice(0, 160)} (${failureSummary.replaceAll(/\s+/g, " ").slice(0, 200)})`,
          )
          .join("; ")}`,
    );
}
