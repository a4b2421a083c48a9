/**
 * A page that does not come is loaded again.
 *
 * VS Code's service worker sometimes loses the requests for a page's script and styles, where two panels are made while it
 * starts (seen in the browser on a busy machine; it answers 408 after half a minute). The panel would stay blank.
 */

import type * as vscode from "vscode";

export type View = vscode.WebviewPanel | vscode.WebviewView;

/** So long a page that is on the screen may take to say that it listens; with each attempt twice as long. */
const PATIENCE_MS = 5_000;
const ATTEMPTS = 4;

/**
 * Loads a page, and again until it is there.
 * @returns what is to be called when the page says that it listens
 */
export function loadUntilThere(view: View, load: () => void, gaveUp: () => void): () => void {
  let isThere = false;
  let attempts = 0;
  let waiting: NodeJS.Timeout | undefined;

  function wait(): void {
    clearTimeout(waiting);
    if (view.visible && !isThere) {
      waiting = setTimeout(again, PATIENCE_MS * 2 ** attempts);
    }
  }
  function again(): void {
    attempts += 1;
    if (attempts < ATTEMPTS) {
      load();
      wait();
    } else {
      gaveUp();
    }
  }
  function visibilityChanged(): void {
    if (!view.visible) {
      isThere = false; // A page that is hidden is thrown away; the editor loads it anew when it is shown.
      attempts = 0;
    }
    if (attempts < ATTEMPTS) {
      wait();
    }
  }

  if ("onDidChangeVisibility" in view) {
    view.onDidChangeVisibility(visibilityChanged);
  } else {
    view.onDidChangeViewState(visibilityChanged);
  }
  view.onDidDispose(() => clearTimeout(waiting));
  load();
  wait();
  return () => {
    isThere = true;
    attempts = 0;
    clearTimeout(waiting);
  };
}
