import tseslint from "typescript-eslint";
import { HOST_ROOMS } from "./scripts/lib/rooms.mjs";

/**
 * Texts that people see go through `vscode.l10n.t`, so that they can be translated. What has two words is such a text, unless
 * it goes to a log; where VS Code shows whatever it is given, one word is enough. The product's name and icons are none.
 */
function untranslated() {
  const words = "/[A-Za-z,.] [A-Za-z]/";
  const word = String.raw`/^(?!(IRScope(: )?)?(\$\([\w~-]*\)?)? *$).*[A-Za-z]/`;
  const either = (/** @type {string} */ text) => [`Literal[value=${text}]`, `TemplateElement[value.cooked=${text}]`];
  const elsewhere = [
    'CallExpression[callee.property.name="t"] > *',
    "CallExpression[callee.property.name=/^(info|warn|error)$/] *",
    "TSLiteralType > *",
  ];
  const shown = [
    "CallExpression[callee.property.name=/^show(Information|Warning|Error)Message$/]",
    "Property[key.name=/^(title|placeHolder|prompt|label|description|detail|tooltip)$/]",
    "AssignmentExpression[left.property.name=/^(title|label|description|tooltip|text)$/]",
    'NewExpression[callee.property.name="TreeItem"]',
  ];
  const within = ["", " > TemplateLiteral", " > ConditionalExpression", " > LogicalExpression"];
  const selectors = [
    ...either(words).map((text) => `${text}:not(${elsewhere.join(", ")})`),
    ...shown.flatMap((place) => within.flatMap((way) => either(word).map((text) => `${place}${way} > ${text}`))),
  ];
  const message = "People see this text: pass it to vscode.l10n.t, with {0} for what is filled in.";
  return {
    files: HOST_ROOMS.map((folder) => `extension/src/${folder}/**/*.ts`),
    rules: { "no-restricted-syntax": ["error", ...selectors.map((selector) => ({ selector, message }))] },
  };
}

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
  untranslated(),
  {
    files: ["**/*.mjs"],
    extends: [tseslint.configs.recommended],
    languageOptions: { globals: { process: "readonly", console: "readonly" } },
    rules: { eqeqeq: "error", curly: "error" },
  },
);
