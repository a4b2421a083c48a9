/** Loads TypeScript of the extension into Node, for tests that need neither an editor nor a browser. */

import * as path from "node:path";
import * as esbuild from "esbuild";
import { contributedGrammars, grammarWorker } from "../../scripts/lib/grammarModules.mjs";
import { ROOT } from "../../scripts/lib/paths.mjs";

/**
 * What these modules export, together.
 * @param {string[]} names paths below extension/src, without `.ts`
 * @returns {Promise<any>}
 */
export async function load(...names) {
  const built = await esbuild.build({
    stdin: {
      contents: names.map((name) => `export * from "./${name}";`).join("\n"),
      resolveDir: path.join(ROOT, "extension", "src"),
      loader: "ts",
    },
    bundle: true,
    plugins: [contributedGrammars, grammarWorker({ minify: false }, new Set())],
    write: false,
    format: "esm",
  });
  const text = built.outputFiles[0]?.text ?? "";
  return import(`data:text/javascript;base64,${Buffer.from(text).toString("base64")}`);
}
