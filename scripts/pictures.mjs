/**
 * Copies screenshots of the tests (.screenshots/) into the documentation and the walkthrough, made smaller.
 * Run it after the rendering tests: `node scripts/pictures.mjs`. What has no screenshot stays as it is.
 */

import * as fs from "node:fs";
import * as path from "node:path";
import { launchBrowser } from "../tests/editor/browser.mjs";
import { ROOT, SCREENSHOTS } from "./lib/paths.mjs";

/** Target, the screenshots that it may be taken from (the first that is there), its width in pixels, and its height if it is cut. */
const PICTURES = /** @type {[target: string, sources: string[], width: number, height?: number][]} */ ([
  ["docs/images/kernel.png", ["demo-kernel"], 1400],
  ["docs/images/graph.png", ["graph-dark", "view-panel-graph-dark"], 1400],
  ["docs/images/pipeline.png", ["demo"], 1400],
  ["docs/images/view.png", ["view-dark"], 1400],
  ["docs/images/tutorial-break.png", ["tutorial-break"], 1200],
  ["docs/images/tutorial-recompilation.png", ["tutorial-recompilation"], 1200],
  ["docs/images/tutorial-kernel.png", ["tutorial-kernel"], 1200, 640],
  ["docs/images/tutorial-fusion.png", ["tutorial-fusion"], 1200],
  ["docs/images/tutorial-memory.png", ["memory-step-1340"], 1200],
  ["extension/media/walkthrough-findings.png", ["problems"], 900],
  ["extension/media/walkthrough-kernel.png", ["demo-kernel"], 900],
  ["extension/media/walkthrough-stages.png", ["dock-pipeline-dark", "view-panel-strip-dark"], 900],
  ["extension/media/walkthrough-graph.png", ["graph-dark", "view-panel-graph-dark"], 900],
]);

const browser = await launchBrowser();
for (const [target, sources, width, height] of PICTURES) {
  const source = sources.map((name) => path.join(SCREENSHOTS, `${name}.png`)).find((file) => fs.existsSync(file));
  if (source === undefined) {
    console.log(`no screenshot for ${target}`);
    continue;
  }
  const page = await browser.newPage({ viewport: { width, height: 100 } });
  const data = fs.readFileSync(source).toString("base64");
  const cut = height === undefined ? "" : `height:${height}px`;
  await page.setContent(
    `<style>body{margin:0;overflow:hidden;${cut}}img{width:100%;display:block}</style><img src="data:image/png;base64,${data}">`,
  );
  await page.locator(height === undefined ? "img" : "body").screenshot({ path: path.join(ROOT, target) });
  await page.close();
  console.log(
    `${target} from ${path.basename(source)}, ${Math.round(fs.statSync(path.join(ROOT, target)).size / 1000)} kB`,
  );
}
await browser.close();
