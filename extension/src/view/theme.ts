/** Dark, light or high contrast: as the system says, until the user chooses. */

export type Theme = "dark" | "light" | "hc-dark" | "hc-light";
export type Choice = Theme | "auto";

const KEY = "irscope-theme";
const CHOICES: Choice[] = ["auto", "dark", "light", "hc-dark", "hc-light"];
/** What VS Code calls them on the body of a webview, which panels may ask for. */
const KINDS: Record<Theme, string> = {
  dark: "vscode-dark",
  light: "vscode-light",
  "hc-dark": "vscode-high-contrast",
  "hc-light": "vscode-high-contrast-light",
};

const dark = window.matchMedia("(prefers-color-scheme: dark)");
const contrast = window.matchMedia("(prefers-contrast: more)");
const listeners = new Set<(theme: Theme) => void>();

export function choice(): Choice {
  const known = window.localStorage.getItem(KEY) as Choice | null;
  return known !== null && CHOICES.includes(known) ? known : "auto";
}

export function theme(): Theme {
  const chosen = choice();
  if (chosen !== "auto") {
    return chosen;
  }
  const shade = dark.matches ? "dark" : "light";
  return contrast.matches ? `hc-${shade}` : shade;
}

export function choose(chosen: Choice): void {
  window.localStorage.setItem(KEY, chosen);
  apply();
}

export function onTheme(listener: (theme: Theme) => void): void {
  listeners.add(listener);
}

/** Gives a document its theme; frames are separate documents. */
export function dress(target: Document): void {
  const now = theme();
  target.documentElement.dataset["theme"] = now;
  target.body.classList.remove(...Object.values(KINDS));
  target.body.classList.add(KINDS[now]);
  target.body.dataset["vscodeThemeKind"] = KINDS[now];
}

export function apply(): void {
  dress(document);
  listeners.forEach((listener) => listener(theme()));
}

for (const query of [dark, contrast]) {
  query.addEventListener("change", apply);
}
window.addEventListener("storage", ({ key }) => key === KEY && apply());
