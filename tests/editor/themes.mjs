/** The variables of three of VS Code's themes that the panels use, for panels in a page of their own. */

const FONTS = `--vscode-font-family: system-ui, "DejaVu Sans", sans-serif; --vscode-font-size: 13px; --vscode-editor-font-family: "DejaVu Sans Mono", monospace;`;

/** Whether this is `npm run test:all`. */
export const ALL = process.env["IRSCOPE_TEST_ALL"] !== undefined;

/**
 * More of the same sort, which only `npm run test:all` runs.
 * @template const Case
 * @param {Case[]} cases @returns {Case[]}
 */
export function nightly(...cases) {
  return ALL ? cases : [];
}

/** A test of that sort. @param {string} title @param {Mocha.AsyncFunc} test */
export function itNightly(title, test) {
  if (ALL) {
    it(title, test);
  }
}

/** In what a panel is looked at, theme and width: each of them once, and all their pairs in `npm run test:all`. */
export const LOOKS = /** @type {const} */ ([
  ["dark", 1340],
  ["light", 400],
  ...nightly(["light", 1340], ["dark", 400]),
]);

/** In what the panels of one sort are looked at: by turns as above, and each in all of them in `npm run test:all`. @param {number} turn */
export const looksOf = (turn) => (ALL ? LOOKS : [LOOKS[turn % 2 === 0 ? 0 : 1]]);

export const THEMES = {
  dark: {
    kind: "vscode-dark",
    css: `:root { ${FONTS} color-scheme: dark;
      --vscode-foreground: #cccccc; --vscode-descriptionForeground: #9d9d9d; --vscode-focusBorder: #0078d4;
      --vscode-editor-background: #1f1f1f; --vscode-editor-foreground: #cccccc; --vscode-editorWidget-background: #202020;
      --vscode-editorWidget-border: #454545; --vscode-panel-border: #2b2b2b; --vscode-input-background: #313131;
      --vscode-input-foreground: #cccccc; --vscode-input-border: #3c3c3c; --vscode-input-placeholderForeground: #989898;
      --vscode-dropdown-background: #313131; --vscode-dropdown-foreground: #cccccc; --vscode-dropdown-border: #3c3c3c;
      --vscode-button-background: #0078d4; --vscode-button-foreground: #ffffff; --vscode-button-hoverBackground: #026ec1;
      --vscode-button-secondaryBackground: #313131; --vscode-button-secondaryForeground: #cccccc;
      --vscode-button-secondaryHoverBackground: #3c3c3c; --vscode-textLink-foreground: #4daafc;
      --vscode-list-hoverBackground: #2a2d2e; --vscode-list-activeSelectionBackground: #04395e;
      --vscode-list-activeSelectionForeground: #ffffff; --vscode-charts-yellow: #cca700; --vscode-charts-orange: #d18616; }`,
  },
  light: {
    kind: "vscode-light",
    css: `:root { ${FONTS} color-scheme: light;
      --vscode-foreground: #3b3b3b; --vscode-descriptionForeground: #606060; --vscode-focusBorder: #005fb8;
      --vscode-editor-background: #ffffff; --vscode-editor-foreground: #3b3b3b; --vscode-editorWidget-background: #f8f8f8;
      --vscode-editorWidget-border: #c8c8c8; --vscode-panel-border: #e5e5e5; --vscode-input-background: #ffffff;
      --vscode-input-foreground: #3b3b3b; --vscode-input-border: #cecece; --vscode-input-placeholderForeground: #6b6b6b;
      --vscode-dropdown-background: #ffffff; --vscode-dropdown-foreground: #3b3b3b; --vscode-dropdown-border: #cecece;
      --vscode-button-background: #005fb8; --vscode-button-foreground: #ffffff; --vscode-button-hoverBackground: #0258a8;
      --vscode-button-secondaryBackground: #0000001a; --vscode-button-secondaryForeground: #3b3b3b;
      --vscode-button-secondaryHoverBackground: #cccccc; --vscode-textLink-foreground: #005fb8;
      --vscode-list-hoverBackground: #f2f2f2; --vscode-list-activeSelectionBackground: #e8e8e8;
      --vscode-list-activeSelectionForeground: #000000; --vscode-charts-yellow: #bf8803; --vscode-charts-orange: #d18616; }`,
  },
  contrast: {
    kind: "vscode-high-contrast",
    css: `:root { ${FONTS} color-scheme: dark;
      --vscode-foreground: #ffffff; --vscode-descriptionForeground: #ffffff; --vscode-focusBorder: #f38518;
      --vscode-contrastBorder: #6fc3df; --vscode-contrastActiveBorder: #f38518; --vscode-editor-background: #000000;
      --vscode-editor-foreground: #ffffff; --vscode-editorWidget-background: #0c141f; --vscode-editorWidget-border: #6fc3df;
      --vscode-panel-border: #6fc3df; --vscode-input-background: #000000; --vscode-input-foreground: #ffffff;
      --vscode-input-border: #6fc3df; --vscode-input-placeholderForeground: #b3b3b3; --vscode-dropdown-background: #000000;
      --vscode-dropdown-foreground: #ffffff; --vscode-dropdown-border: #6fc3df; --vscode-button-background: #000000;
      --vscode-button-foreground: #ffffff; --vscode-button-border: #6fc3df; --vscode-button-secondaryBackground: #000000;
      --vscode-button-secondaryForeground: #ffffff; --vscode-textLink-foreground: #21a6ff;
      --vscode-charts-yellow: #cca700; --vscode-charts-orange: #d18616; }`,
  },
};
