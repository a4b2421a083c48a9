import tseslint from "typescript-eslint";

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
  {
    files: ["**/*.mjs"],
    extends: [tseslint.configs.recommended],
    languageOptions: { globals: { process: "readonly", console: "readonly" } },
    rules: { eqeqeq: "error", curly: "error" },
  },
);
