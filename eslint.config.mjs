import tseslint from "typescript-eslint";

/**
 * What each room of the extension may not import: graph/model ← layout ← draw ← page, and what runs in a web page knows
 * neither VS Code nor its host.
 * @param {string[]} folders rooms below extension/src
 * @param {string[]} rooms folders that they may not import
 * @param {string} why
 */
function bars(folders, rooms, why) {
  return {
    files: folders.map((folder) => `extension/src/${folder}/**/*.ts`),
    rules: {
      "no-restricted-imports": [
        "error",
        {
          patterns: [
            { regex: `^(\\.\\.?/)+(${rooms.join("|")})/`, message: why },
            { group: ["vscode", "vscode-languageclient*"], message: "This runs in a web page." },
          ],
        },
      ],
    },
  };
}

const HOST = ["host", "commands", "linked"];

export default tseslint.config(
  { ignores: ["extension/dist/**", "extension/bundled/**", "out/**", "build/**", ".venv/**", "node_modules/**"] },
  {
    files: ["extension/src/**/*.ts", "tests/editor/**/*.ts"],
    extends: [...tseslint.configs.recommendedTypeChecked],
    languageOptions: {
      parserOptions: {
        project: [
          "extension/src/tsconfig.json",
          "extension/src/graph/tsconfig.json",
          "extension/src/panels/tsconfig.json",
          "extension/src/view/tsconfig.json",
          "tests/editor/tsconfig.json",
        ],
        tsconfigRootDir: import.meta.dirname,
      },
    },
    rules: {
      eqeqeq: "error",
      curly: "error",
      "@typescript-eslint/consistent-type-imports": "error",
      "@typescript-eslint/explicit-module-boundary-types": "error",
      "@typescript-eslint/switch-exhaustiveness-check": "off",
      "@typescript-eslint/require-await": "off",
    },
  },
  bars(["panels"], [...HOST, "view", "graph"], "A panel knows its host by panels/messages.ts alone."),
  bars(["view"], [...HOST, "graph"], "The page of `irscope view` knows nothing of VS Code."),
  bars(["graph/page"], [...HOST, "view"], "A panel knows its host by panels/messages.ts alone."),
  bars(["graph/draw"], [...HOST, "view", "page"], "graph/draw imports graph/layout and graph/model only."),
  bars(["graph/layout"], [...HOST, "view", "page", "draw"], "graph/layout imports graph/model only."),
  bars(["graph/model"], [...HOST, "view", "page", "draw", "layout"], "graph/model imports no other room of the graph."),
  {
    files: ["**/*.mjs"],
    extends: [tseslint.configs.recommended],
    languageOptions: { globals: { process: "readonly", console: "readonly" } },
    rules: { eqeqeq: "error", curly: "error" },
  },
);
