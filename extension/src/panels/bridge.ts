/**
 * A panel's way to the server and to the editors.
 *
 * In VS Code the host is the extension. In `irscope view` a panel is a frame of a page, and that page is the host; it
 * says and understands the same messages.
 */

import type { Place } from "../protocol";
import { keep, kept } from "./kept";
import type { FromPanel, PanelName, Subject, ToPanel } from "./messages";

interface Host {
  postMessage(message: FromPanel): void;
  getState(): unknown;
  setState(state: unknown): void;
}

declare const acquireVsCodeApi: (() => Host) | undefined;

type Listener<Type extends ToPanel["type"]> = (message: Extract<ToPanel, { type: Type }>) => void;

const waiting = new Map<number, { resolve: (result: unknown) => void; reject: (error: Error) => void }>();
const listeners = new Map<ToPanel["type"], Set<(message: ToPanel) => void>>();
const host = typeof acquireVsCodeApi === "function" ? acquireVsCodeApi() : hostOfPage();
let requests = 0;

window.addEventListener("message", ({ data, source }: MessageEvent<ToPanel>) => {
  if (typeof acquireVsCodeApi !== "function" && source !== window.parent) {
    return;
  }
  if (data.type === "answer" || data.type === "failed") {
    const asked = waiting.get(data.id);
    waiting.delete(data.id);
    if (data.type === "answer") {
      asked?.resolve(data.result);
    } else {
      asked?.reject(new Error(data.message));
    }
  }
  for (const listener of listeners.get(data.type) ?? []) {
    listener(data);
  }
});

/** Sends one of irscope's own requests (docs/PROTOCOL.md) to the server. Rejects with a message for the user. */
export function request<Result>(method: `irscope/${string}`, params: object): Promise<Result> {
  requests += 1;
  const id = requests;
  return new Promise<Result>((resolve, reject) => {
    waiting.set(id, { resolve: (result) => resolve(result as Result), reject });
    host.postMessage({ type: "request", id, method, params });
  });
}

/** Listens to the host. Call `ready` when all listeners are there. */
export function on<Type extends ToPanel["type"]>(type: Type, listener: Listener<Type>): void {
  const known = listeners.get(type) ?? new Set();
  listeners.set(type, known.add(listener as (message: ToPanel) => void));
}

/** The panel listens; the host answers with its subject. */
export function ready(): void {
  host.postMessage({ type: "ready" });
}

/** Whether the host is an editor, which can run the file. */
export const inEditor = typeof acquireVsCodeApi === "function";

/** Shows a line of a user's file or of a stage, in an editor beside the panel. */
export function open(place: Place, preserveFocus = false): void {
  host.postMessage({ type: "open", place, ...(preserveFocus ? { preserveFocus } : {}) });
}

export function show(panel: PanelName, subject: Subject): void {
  host.postMessage({ type: "show", panel, subject });
}

/** Opens two documents in the editor's own comparison. */
export function compare(left: string, right: string, title: string): void {
  host.postMessage({ type: "compare", left, right, title });
}

export function post(message: FromPanel): void {
  host.postMessage(message);
}

/** What the panel was like when it was left. */
export function recall<State extends object>(): Partial<State> {
  return host.getState() ?? {};
}

export function remember<State extends object>(changes: Partial<State>): void {
  host.setState({ ...recall<State>(), ...changes });
}

function hostOfPage(): Host {
  const address = `${window.location.pathname}${window.location.search}`;
  return {
    postMessage: (message) => window.parent.postMessage(message, window.location.origin),
    getState: () => kept(address),
    setState: (state) => keep(address, state),
  };
}
