/** The views of a run as tabs, in the panel area. Its subject follows the editor until the user chooses a run. */

import "../panel.css";
import { Age } from "../age";
import * as bridge from "../bridge";
import { announce, button, h, select } from "../dom";
import { TABS, type Subject, type Tab } from "../messages";
import { REGISTRY } from "../registry";
import { notice, runButton, type Surroundings, type View } from "../view";
import { runOf, runText } from "./model";
import { creators } from "panel-views";
import type { RunItem } from "../../protocol";

interface Remembered {
  tab?: Tab;
  /** What the user chose in place of what the editor is about. */
  pinned?: Subject | null;
  asked?: Asked | null;
}

/** What a command asked to show: until the editor is about another run than it was then. */
interface Asked {
  subject: Subject;
  instead: string | undefined;
}

const remembered = bridge.recall<Remembered>();
let asked: Asked | undefined = remembered.asked ?? undefined;
let subject: Subject | undefined = asked?.subject ?? remembered.pinned ?? undefined;
let followed: Subject | undefined;
let following = (remembered.pinned ?? undefined) === undefined;
let current: Tab = remembered.tab ?? "strip";
let runs: RunItem[] = [];

const surroundings: Surroundings = {
  choseCompile(compile) {
    if (subject !== undefined) {
      subject = { ...subject, compile };
      delete subject.stage;
      stale = new Set(TABS.filter((tab) => tab !== current));
    }
  },
};
const views = Object.fromEntries(TABS.map((tab) => [tab, creators[tab](surroundings)])) as Record<Tab, View>;
/** Tabs that do not have the current subject: they get it when they are shown. */
let stale = new Set<Tab>(TABS);
let unread = new Set<Tab>();

const tabs = new Map<Tab, HTMLButtonElement>();
const controls = h("div", { class: "controls" });
const age = new Age(bridge.request);
const nothing = h("div", { class: "view" });
const page = h("div", { id: "page", role: "tabpanel" });
const list = h("div", { class: "tabs", role: "tablist", "aria-label": "IRScope" });
for (const tab of TABS) {
  const made = button(REGISTRY[tab].title, () => showTab(tab, false), {
    id: `tab-${tab}`,
    role: "tab",
    "aria-controls": "page",
  });
  tabs.set(tab, made);
  list.append(made);
}
list.addEventListener("keydown", (event) => {
  const at = TABS.indexOf(current);
  const next = {
    ArrowRight: TABS[(at + 1) % TABS.length],
    ArrowLeft: TABS[(at + TABS.length - 1) % TABS.length],
    Home: TABS[0],
    End: TABS.at(-1),
  }[event.key];
  if (next !== undefined) {
    event.preventDefault();
    showTab(next, false);
    tabs.get(next)?.focus();
  } else if (event.key === "ArrowDown") {
    event.preventDefault();
    views[current].focus();
  }
});
document.body.classList.add("dock");
document.body.append(h("header", {}, list, h("span", { class: "spacer" }), age.element, controls), page);

bridge.on("subject", ({ subject: given }) => {
  followed = given;
  if (asked !== undefined) {
    asked.instead ??= given.run;
    if (asked.instead !== given.run) {
      ask(undefined);
    }
  }
  if (following && asked === undefined) {
    setSubject(given);
  }
  void readRuns();
});
bridge.on("nothing", ({ message }) => {
  followed = undefined;
  nothing.replaceChildren(notice("Nothing to show yet.", message, runButton()));
  if (following && asked === undefined) {
    setNothing();
  }
  void readRuns();
});
bridge.on("tab", ({ tab, focus, pin: pinned }) => {
  if (pinned !== undefined) {
    ask({ subject: pinned, instead: followed?.run });
    setSubject(pinned);
    void readRuns();
  } else if (!following && followed !== undefined && scriptOf(followed.run) !== scriptOf(subject?.run)) {
    pin(followed.run); // It was asked for in front of another file.
  }
  showTab(tab, focus);
});
bridge.on("changed", ({ run, running }) => {
  if (run === subject?.run || run === subject?.deep) {
    unread = new Set(TABS);
    freshen();
  }
  if (!running) {
    void readRuns();
  }
});
bridge.on("cursor", ({ place }) => views.strip.cursor?.(place));
nothing.append(notice("Looking for a run…", "The pipeline of the file in the editor is shown here."));
showTab(current, false);
bridge.ready();

function setSubject(given: Subject): void {
  const moved = subject === undefined || subject.run !== given.run;
  subject = given;
  stale = new Set(TABS);
  showPage();
  if (moved) {
    announce(given.title);
  }
}

function setNothing(): void {
  subject = undefined;
  showPage();
}

function showTab(tab: Tab, focus: boolean): void {
  current = tab;
  bridge.remember<Remembered>({ tab });
  for (const [name, each] of tabs) {
    each.setAttribute("aria-selected", String(name === tab));
    each.tabIndex = name === tab ? 0 : -1;
  }
  tabs.get(tab)?.scrollIntoView({ block: "nearest", inline: "nearest" });
  page.setAttribute("aria-labelledby", `tab-${tab}`);
  showPage();
  if (focus) {
    // What it shows may still be on its way.
    setTimeout(() => (subject === undefined ? tabs.get(tab)?.focus() : views[tab].focus()), 50);
  }
}

function showPage(): void {
  page.replaceChildren(subject === undefined ? nothing : views[current].element);
  if (subject !== undefined && stale.delete(current)) {
    unread.delete(current);
    views[current].show(subject);
  }
  freshen();
  showAge();
}

function showAge(): void {
  void age.show(subject === undefined ? undefined : runOf(current, subject));
}

function freshen(): void {
  if (subject !== undefined && unread.delete(current)) {
    views[current].refresh();
  }
}

async function readRuns(): Promise<void> {
  try {
    runs = (await bridge.request<{ runs: RunItem[] }>("irscope/runs", { limit: 30 })).runs;
  } catch {
    return; // The views say what is wrong.
  }
  showAge();
  const options = runs.map((run) => ({ value: run.run, text: runText(run) }));
  const shown = subject?.run;
  if (shown !== undefined && !runs.some(({ run }) => run === shown)) {
    options.push({ value: shown, text: subject?.title ?? shown });
  }
  if (options.length === 0) {
    controls.replaceChildren();
    return;
  }
  if (shown === undefined) {
    options.unshift({ value: "", text: "Choose a run…" }); // Else the first one would look as if it were shown.
  }
  const follow = button("Follow Editor", () => setFollowing(!following), {
    class: "toggle",
    title: following ? "Shows the run of the file in the editor" : "Shows the chosen run, whatever is in the editor",
    "aria-pressed": following,
  });
  controls.replaceChildren(follow, select("Run", options, shown ?? "", pin));
}

function scriptOf(run: string | undefined): string | undefined {
  return runs.find((each) => each.run === run)?.script;
}

function pin(run: string): void {
  const item = runs.find((each) => each.run === run);
  if (item === undefined) {
    return;
  }
  const deep =
    item.lane === "deep" ? undefined : runs.find((each) => each.lane === "deep" && each.script === item.script);
  following = false;
  ask(undefined);
  subject = { run, title: runText(item), ...(deep === undefined ? {} : { deep: deep.run }) };
  bridge.remember<Remembered>({ pinned: subject });
  setSubject(subject);
  void readRuns();
}

function ask(wanted: Asked | undefined): void {
  asked = wanted;
  bridge.remember<Remembered>({ asked: wanted ?? null });
}

function setFollowing(wanted: boolean): void {
  following = wanted;
  ask(undefined);
  bridge.remember<Remembered>({ pinned: wanted ? null : (subject ?? null) });
  if (wanted && followed !== undefined) {
    setSubject(followed);
  } else if (wanted) {
    setNothing();
  }
  void readRuns().then(() => controls.querySelector<HTMLElement>(".toggle")?.focus());
}
