/** Two modules that the page of `irscope view` imports, and that esbuild gets from here. */

import * as fs from "node:fs";
import * as path from "node:path";
import { ROOT } from "./paths.mjs";

const WORKER = path.join(ROOT, "extension", "src", "view", "highlighting", "worker.ts");

/**
 * `contributed-grammars`: the grammars of package.json by language, so that a language is declared there alone.
 * @type {import("esbuild").Plugin}
 */
export const contributedGrammars = {
  name: "contributed-grammars",
  setup(build) {
    build.onResolve({ filter: /^contributed-grammars$/ }, ({ path: name }) => ({ path: name, namespace: "grammars" }));
    build.onLoad({ filter: /.*/, namespace: "grammars" }, () => {
      const manifest = path.join(ROOT, "package.json");
      /** @type {{language?: string, path: string}[]} */
      const all = JSON.parse(fs.readFileSync(manifest, "utf8")).contributes.grammars;
      const known = all.flatMap(({ language, path: file }) => (language === undefined ? [] : [{ language, file }]));
      const names = JSON.stringify(known.map(({ language }) => language));
      return {
        contents: [
          ...known.map(({ file }, at) => `import grammar${at} from ${JSON.stringify(file)};`),
          `export const languages = ${names};`,
          `export const grammars = {${known.map(({ language }, at) => `${JSON.stringify(language)}: grammar${at}`).join()}};`,
        ].join("\n"),
        resolveDir: ROOT,
        watchFiles: [manifest],
      };
    });
  },
};

/**
 * `grammar-worker-source`: the bundled worker as a string, so that the page can start it from a blob.
 * @param {Pick<import("esbuild").BuildOptions, "minify">} options
 * @param {Set<string>} inputs takes the files in the worker's bundle
 * @returns {import("esbuild").Plugin}
 */
export function grammarWorker({ minify }, inputs) {
  return {
    name: "grammar-worker-source",
    setup(build) {
      build.onResolve({ filter: /^grammar-worker-source$/ }, ({ path: name }) => ({ path: name, namespace: "worker" }));
      build.onLoad({ filter: /.*/, namespace: "worker" }, async () => {
        const { metafile, outputFiles } = await build.esbuild.build({
          absWorkingDir: ROOT,
          entryPoints: [WORKER],
          plugins: [contributedGrammars],
          bundle: true,
          metafile: true,
          write: false,
          format: "iife",
          platform: "browser",
          target: "es2022",
          legalComments: "none",
          minify,
        });
        const files = Object.keys(metafile.inputs);
        files.forEach((file) => inputs.add(file));
        const watchFiles = files.filter((file) => !file.includes(":")).map((file) => path.join(ROOT, file));
        return { contents: outputFiles[0]?.text ?? "", loader: "text", watchFiles };
      });
    },
  };
}
