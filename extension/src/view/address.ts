/**
 * What the page shows, as its address says it behind the `#`: `run=ID`, `stage=ID` or `file=PATH`, `line=N` (1-based),
 * `panel=NAME` with `compile=ID`. An editor can open any of it.
 */

import type { PanelName } from "../panels/messages";

export interface Subject {
  run?: string;
  stage?: string;
  file?: string;
  line?: string;
  panel?: PanelName;
  compile?: string;
  token?: string;
}

const KEYS = ["run", "stage", "file", "line", "panel", "compile"] as const;

export function parse(hash: string): Subject {
  return Object.fromEntries(new URLSearchParams(hash.replace(/^#/, "").replaceAll("+", "%2B")));
}

export function format(subject: Subject): string {
  const parts = KEYS.flatMap((key) => {
    const value = subject[key];
    return value === undefined ? [] : [`${key}=${encodeURIComponent(value).replace(/%2F/g, "/").replace(/%3A/g, ":")}`];
  });
  return `#${parts.join("&")}`;
}

/** Takes the token out of the address, the history and what is copied from it. */
export function takeToken(): string | undefined {
  const subject = parse(window.location.hash);
  const { token } = subject;
  if (token !== undefined) {
    window.history.replaceState(null, "", `/${format(subject)}`);
  }
  return token;
}

export function fileUri(path: string): string {
  const encoded = path
    .split("/")
    .map((part) => encodeURIComponent(part))
    .join("/");
  return encoded.startsWith("/") ? `file://${encoded}` : `file:///${encoded.replaceAll("\\", "/")}`;
}

/** The path of a `file:` URI. */
export function pathOf(uri: string): string {
  return decodeURIComponent(uri.replace(/^file:\/\/(?=\/)/, ""));
}

/** The name that a tab shows. */
export function nameOf(uri: string): string {
  return decodeURIComponent(uri.slice(uri.lastIndexOf("/") + 1));
}

/** The same document, however its URI is written. */
export function sameUri(left: string, right: string): boolean {
  return normal(left) === normal(right);
}

export function normal(uri: string): string {
  try {
    return decodeURIComponent(uri).replace(/^(irscope:)\/+/, "$1/");
  } catch {
    return uri;
  }
}
