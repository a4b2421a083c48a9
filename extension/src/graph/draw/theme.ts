/** The editor's colours and fonts as the canvas and the exported picture need them. */

import type { Lightness } from "./colours";

export interface Theme {
  lightness: Lightness;
  isHighContrast: boolean;
  background: string;
  ink: string;
  muted: string;
  node: string;
  /** Around a node, so that it can be told from the background. */
  border: string;
  cluster: string;
  clusterBorder: string;
  wire: string;
  focus: string;
  match: string;
  linked: string;
  /** Between what was not fused. */
  apart: string;
  sans: string;
  mono: string;
}

export function readTheme(): Theme {
  const style = getComputedStyle(document.documentElement);
  const colour = (names: string, otherwise: string): string => {
    for (const name of names.split(" ")) {
      const value = style.getPropertyValue(`--vscode-${name}`).trim();
      if (value !== "" && value !== "transparent") {
        return value;
      }
    }
    return otherwise;
  };
  const kinds = document.body.classList;
  const isHighContrast = kinds.contains("vscode-high-contrast") || kinds.contains("vscode-high-contrast-light");
  const isLight = kinds.contains("vscode-light") || kinds.contains("vscode-high-contrast-light");
  const background = colour("editor-background", isLight ? "#ffffff" : "#1f1f1f");
  const ink = colour("editor-foreground", isLight ? "#3b3b3b" : "#cccccc");
  const muted = isHighContrast ? ink : colour("descriptionForeground", isLight ? "#6b6b6b" : "#9d9d9d");
  return {
    lightness: isLight ? "light" : "dark",
    isHighContrast,
    background,
    ink,
    muted,
    node: isHighContrast ? background : colour("editorWidget-background", isLight ? "#f8f8f8" : "#202020"),
    border: isHighContrast ? colour("contrastBorder", ink) : mixed(background, ink, 0.32),
    cluster: isHighContrast ? background : mixed(background, ink, 0.045),
    clusterBorder: isHighContrast ? colour("contrastBorder", ink) : mixed(background, ink, 0.28),
    wire: isHighContrast ? ink : mixed(background, ink, 0.5),
    focus: colour("contrastActiveBorder focusBorder", "#0078d4"),
    match: isHighContrast
      ? colour("contrastActiveBorder focusBorder", "#f38518")
      : colour("charts-yellow", isLight ? "#bf8803" : "#cca700"),
    linked: colour("charts-orange contrastActiveBorder", "#d18616"),
    apart: colour("charts-red errorForeground", isLight ? "#b5200d" : "#f48771"),
    sans: style.getPropertyValue("--vscode-font-family").trim() || "sans-serif",
    mono: `${style.getPropertyValue("--vscode-editor-font-family").trim() || "monospace"}, monospace`,
  };
}

/** Calls back when the editor's theme changes. */
export function onThemeChange(listener: () => void): void {
  const observer = new MutationObserver(listener);
  observer.observe(document.body, { attributes: true, attributeFilter: ["class"] });
  observer.observe(document.documentElement, { attributes: true, attributeFilter: ["style", "class"] });
}

/** A colour between two others, all of it opaque. Colours that cannot be read stay as they are. */
export function mixed(from: string, to: string, share: number): string {
  const [a, b] = [parts(from), parts(to)];
  if (a === undefined || b === undefined) {
    return to;
  }
  const at = (index: number): number => Math.round((a[index] ?? 0) + ((b[index] ?? 0) - (a[index] ?? 0)) * share);
  return `rgb(${at(0)}, ${at(1)}, ${at(2)})`;
}

function parts(colour: string): number[] | undefined {
  const hex = /^#([\da-f]{2})([\da-f]{2})([\da-f]{2})(?:[\da-f]{2})?$/i.exec(colour);
  if (hex !== null) {
    return hex.slice(1, 4).map((part) => Number.parseInt(part, 16));
  }
  const short = /^#([\da-f])([\da-f])([\da-f])$/i.exec(colour);
  if (short !== null) {
    return short.slice(1, 4).map((part) => Number.parseInt(part + part, 16));
  }
  const rgb = /^rgba?\(\s*([\d.]+)[,\s]+([\d.]+)[,\s]+([\d.]+)/.exec(colour);
  return rgb === null ? undefined : rgb.slice(1, 4).map(Number);
}
