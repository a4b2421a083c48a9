/** Draws extension/media/icon.png from icon.svg: the marketplace takes no SVG. Run it after changing the drawing. */

import * as fs from "node:fs";
import * as path from "node:path";
import { chromium } from "playwright-core";
import { ROOT } from "./lib/paths.mjs";
import { runMain } from "./lib/terminal.mjs";
import { ensureChromium } from "./setup.mjs";

await runMain(async () => {
  const media = path.join(ROOT, "extension", "media");
  const browser = await chromium.launch({ executablePath: await ensureChromium(), args: ["--no-sandbox"] });
  try {
    const page = await browser.newPage({ viewport: { width: 128, height: 128 } });
    await page.setContent(`<style>body { margin: 0 }</style>${fs.readFileSync(path.join(media, "icon.svg"), "utf8")}`);
    await page.screenshot({ path: path.join(media, "icon.png"), omitBackground: true });
  } finally {
    await browser.close();
  }
});
