/** A panel as a frame of the page: we are its host, and say and understand what the extension does (../panels/messages). */

import { h } from "../panels/dom";
import { Ahead, type Request } from "../panels/ahead";
import { kept } from "../panels/kept";
import type { FromPanel, PanelName, Subject, ToPanel } from "../panels/messages";
import type { Place } from "../protocol";
import { request } from "./server";
import { dress, onTheme, theme } from "./theme";
import { toast } from "./widgets";

/** What a panel can ask of the page. */
export interface Host {
  open(place: Place, from: PanelFrame, preserveFocus: boolean): void;
  showPanel(panel: PanelName, subject: Subject, from: PanelFrame): void;
  compare(left: string, right: string, title: string, from: PanelFrame): void;
  title(title: string, from: PanelFrame): void;
}

export class PanelFrame {
  readonly element: HTMLIFrameElement;
  private readonly ahead: Ahead;

  constructor(
    readonly panel: PanelName,
    readonly subject: Subject,
    private readonly host: Host,
  ) {
    // The subject is in the address because a panel keeps its state under it.
    const query = new URLSearchParams({ theme: theme(), run: subject.run });
    for (const key of ["compile", "stage"] as const) {
      if (subject[key] !== undefined) {
        query.set(key, subject[key]);
      }
    }
    const address = `/panel/${panel}?${query}`;
    const ask = ({ method, params }: Request): Promise<unknown> => request(method, params);
    this.ahead = new Ahead(panel, subject, kept(address), ask);
    this.element = h("iframe", { class: "panel", title: subject.title, src: address });
    this.element.addEventListener("load", () => {
      this.dress();
      this.element.contentDocument?.addEventListener("click", leave);
    });
    frames.add(this);
  }

  tell(message: ToPanel): void {
    this.element.contentWindow?.postMessage(message, window.location.origin);
  }

  focus(): void {
    this.element.focus();
  }

  dispose(): void {
    frames.delete(this);
  }

  dress(): void {
    const inside = this.element.contentDocument;
    if (inside?.body) {
      dress(inside);
    }
  }

  receive(message: FromPanel): void {
    switch (message.type) {
      case "ready":
        return this.tell({ type: "subject", subject: this.subject });
      case "request":
        void this.answer(message.id, message.method, message.params);
        return;
      case "open":
        return this.host.open(message.place, this, message.preserveFocus ?? false);
      case "show":
        return this.host.showPanel(message.panel, message.subject, this);
      case "compare":
        return this.host.compare(message.left, message.right, message.title, this);
      case "title":
        return this.host.title(message.title, this);
      case "save":
        return save(message.name, message.text);
      case "copy":
        void copy(message.text);
        return;
      case "drawn":
        this.element.dataset["drawn"] = message.what;
        return;
      case "problem":
        return toast(message.message, "error");
      case "run": // These need an editor.
      case "comparePipelines":
        return;
    }
  }

  private async answer(id: number, method: string, params: object): Promise<void> {
    try {
      this.tell({ type: "answer", id, result: await this.ahead.answer({ method, params }) });
    } catch (error) {
      this.tell({ type: "failed", id, message: error instanceof Error ? error.message : String(error) });
    }
  }
}

const frames = new Set<PanelFrame>();

window.addEventListener("message", ({ data, source, origin }: MessageEvent<FromPanel>) => {
  if (origin === window.location.origin) {
    [...frames].find(({ element }) => element.contentWindow === source)?.receive(data);
  }
});

onTheme(() => frames.forEach((frame) => frame.dress()));

/** A link in a panel opens a separate page; the frame stays. */
function leave(event: MouseEvent): void {
  const href = (event.target as Element | null)?.closest("a")?.getAttribute("href");
  if (href) {
    event.preventDefault();
    if (/^https?:\/\//.test(href)) {
      window.open(href, "_blank", "noopener,noreferrer");
    }
  }
}

/** Something that every panel hears. */
export function tellAll(message: ToPanel): void {
  frames.forEach((frame) => frame.tell(message));
}

/** Every panel reloads its data. */
export function refreshAll(): void {
  frames.forEach((frame) => frame.tell({ type: "changed", run: frame.subject.run, running: false }));
}

function save(name: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type: "application/octet-stream" }));
  h("a", { href: url, download: name }).click();
  window.setTimeout(() => URL.revokeObjectURL(url), 1_000);
}

export async function copy(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    toast("Copied.");
  } catch {
    toast("The browser does not let this page copy.", "error");
  }
}
