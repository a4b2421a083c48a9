/** The page of `irscope view`: the tree of runs, texts side by side, and the panels that VS Code has. */

import { h } from "../panels/dom";
import type { PanelName } from "../panels/messages";
import { format, parse, takeToken } from "./address";
import { Following } from "./following";
import { Opened } from "./opened";
import { forgetReport, listen, NoSession, runs, startSession, type News } from "./server";
import { rowOfRun } from "./runs";
import { refreshAll, tellAll } from "./panelFrame";
import * as theme from "./theme";
import { Tree } from "./tree";
import { button, iconOf, toast } from "./widgets";

const REFRESH_DELAY_MS = 300;

theme.apply();
const token = takeToken();
const toasts = h("div", { id: "toasts" });
document.body.append(toasts);
void start();

async function start(): Promise<void> {
  try {
    if (token !== undefined) {
      await startSession(token);
    }
    await page();
  } catch (error) {
    document.body.replaceChildren(toasts, error instanceof NoSession ? tokenForm() : failure(error));
  }
}

async function page(): Promise<void> {
  const known = await runs();
  const panels = new Set((document.documentElement.dataset["panels"] ?? "").split(" ") as PanelName[]);
  const tree = new Tree("Runs");
  const state = h("span", { class: "state", role: "status" });
  const empty = h("div", { class: "empty" });
  const opened = new Opened(panels, empty);
  const following = new Following(opened, known);
  const side = h(
    "nav",
    { class: "side", "aria-label": "Runs" },
    h("h2", {}, "Runs"),
    tree.element,
    h("p", { class: "hint none" }),
  );
  document.body.append(
    h(
      "header",
      { class: "bar" },
      iconOf("compile"),
      h("h1", {}, "irscope"),
      state,
      h("span", { class: "spacer" }),
      ...following.elements,
      themeChooser(),
    ),
    h("div", { class: "work" }, side, h("main", { "aria-label": "Texts and panels" }, opened.panes.element)),
  );
  opened.onSubject = (subject) => {
    window.history.replaceState(null, "", `/${format(subject)}`);
    void tree.reveal(...opened.pathInTree(subject));
  };

  const show = async (list: Known): Promise<void> => {
    await tree.show(list.map((item) => rowOfRun(item, opened, panels)));
    empty.replaceChildren(...(list.length === 0 ? noRuns() : hints()));
    tree.element.hidden = list.length === 0;
    side.querySelector(".none")?.replaceChildren(list.length === 0 ? "No run yet." : "");
  };
  await show(known);

  follow(opened, following, state, show);
  document.addEventListener("keydown", (event) => {
    if (event.key === "F6") {
      event.preventDefault();
      cycle(event.shiftKey ? -1 : 1, side);
    }
  });
  window.addEventListener("hashchange", () => {
    void opened.subject(parse(takenHash())).catch((error: Error) => toast(error.message, "error"));
  });

  await openFirst(opened, tree, known);
  document.body.dataset["ready"] = "true";
}

type Known = Awaited<ReturnType<typeof runs>>;

/** Hears from the server what has changed, and shows it. */
function follow(opened: Opened, following: Following, state: HTMLElement, show: (list: Known) => Promise<void>): void {
  let timer: number | undefined;
  const refreshSoon = (): void => {
    timer ??= window.setTimeout(() => {
      timer = undefined;
      void runs()
        .then(async (list) => {
          await show(list);
          await following.heard(list);
        })
        .catch((error: Error) => toast(error.message, "error"));
    }, REFRESH_DELAY_MS);
  };
  const hear = (news: News): void => {
    if (news.type === "open") {
      void opened.subject(news.subject).catch((error: Error) => toast(error.message, "error"));
      return;
    }
    forgetReport(news.run);
    refreshSoon();
    opened.findingsChanged(news.run);
    tellAll({ type: "changed", run: news.run, running: news.running });
    if (!news.running) {
      opened.runEnded();
    }
  };
  let connections = 0;
  listen(hear, (connected) => {
    connections += connected ? 1 : 0;
    if (connected && connections > 1) {
      // The server was gone, or the page was hidden: what was told meanwhile was not heard.
      refreshSoon();
      refreshAll();
    }
    state.textContent = connected ? "" : "The server has stopped. Start `irscope view` again.";
  });
}

/** Opens what the address names; without a name, or if that fails, a run. */
async function openFirst(opened: Opened, tree: Tree, known: Known): Promise<void> {
  const subject = parse(window.location.hash);
  const first = known[0];
  try {
    if (Object.keys(subject).length > 0) {
      await opened.subject(subject);
    } else if (first !== undefined) {
      await opened.overview(first);
      tree.focus();
    }
  } catch (error) {
    toast(error instanceof Error ? error.message : String(error), "error");
    const named = known.find(({ run }) => run === subject.run) ?? first;
    if (named !== undefined) {
      await opened.overview(named);
    }
  }
}

/** An address with a token that was pasted over this one. */
function takenHash(): string {
  const given = takeToken();
  if (given !== undefined) {
    void startSession(given).catch(() => undefined);
  }
  return window.location.hash;
}

/** To the next region of the page. */
function cycle(step: number, side: HTMLElement): void {
  const regions = [side, ...document.querySelectorAll<HTMLElement>(".column")];
  const at = regions.findIndex((region) => region.contains(document.activeElement));
  const next = regions[(at + step + regions.length) % regions.length];
  const target = next?.querySelector<HTMLElement>(
    ".row[tabindex='0'], .tabpanel:not([hidden]) .cm-content, .tab[tabindex='0']",
  );
  target?.focus();
}

function themeChooser(): HTMLElement {
  const names: [theme.Choice, string][] = [
    ["auto", "As the system"],
    ["dark", "Dark"],
    ["light", "Light"],
    ["hc-dark", "High contrast dark"],
    ["hc-light", "High contrast light"],
  ];
  const select = h(
    "select",
    { "aria-label": "Colours" },
    ...names.map(([value, name]) => h("option", { value }, name)),
  );
  select.value = theme.choice();
  select.addEventListener("change", () => theme.choose(select.value as theme.Choice));
  return h("label", { class: "theme" }, iconOf("theme"), select);
}

function noRuns(): Node[] {
  return [
    h("h2", {}, "No run yet"),
    h("p", {}, "Run a script under irscope; it appears here while it runs."),
    h("pre", {}, "irscope run train.py"),
    h("p", {}, "Another store is shown by ", h("code", {}, "irscope view --store FILE"), "."),
  ];
}

function hints(): Node[] {
  const keys: [string, string][] = [
    ["↑ ↓ ← →", "walk through the tree; letters jump to a name"],
    ["Enter", "open; with Alt or Ctrl in a separate column"],
    ["F6", "to the next region"],
    ["Ctrl+F", "search in a text"],
    ["Delete", "close a tab"],
  ];
  return [
    h("h2", {}, "Choose a run, a stage or a panel"),
    h("p", {}, "Lines that came from the same line of your code have the same colour in all texts side by side."),
    h("dl", {}, ...keys.flatMap(([key, what]) => [h("dt", {}, h("kbd", {}, key)), h("dd", {}, what)])),
  ];
}

function tokenForm(): HTMLElement {
  const input = h("input", { type: "password", autocomplete: "off", "aria-label": "Token", placeholder: "Token" });
  const form = h(
    "main",
    { class: "token" },
    h("h1", {}, "irscope"),
    h(
      "p",
      {},
      "This page needs the address with its token. ",
      h("code", {}, "irscope view"),
      " prints it; the text after ",
      h("code", {}, "token="),
      " can be given here, too.",
    ),
    h("form", {}, input, h("button", { type: "submit", class: "primary" }, "Open")),
  );
  form.querySelector("form")?.addEventListener("submit", (event) => {
    event.preventDefault();
    startSession(
      input.value
        .trim()
        .replace(/^.*token=/, "")
        .replace(/&.*$/, ""),
    ).then(
      () => window.location.reload(),
      (error: Error) => toast(error.message, "error"),
    );
  });
  return form;
}

function failure(error: unknown): HTMLElement {
  return h(
    "main",
    { class: "token" },
    h("h1", {}, "irscope"),
    h("p", { role: "alert" }, error instanceof Error ? error.message : String(error)),
    button("Try again", () => window.location.reload(), { class: "primary" }),
  );
}
