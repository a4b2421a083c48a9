/** The message in the middle of the panel while there is no picture, or one is being made. */

import { setText } from "../../panels/dom";
import type { Page } from "./page";

export function notice(page: Page, text: string, detail = "", action?: { text: string; run: () => void }): void {
  const { notice: shown } = page;
  shown.root.hidden = false;
  setText(shown.text, text);
  setText(shown.detail, detail);
  shown.action.hidden = action === undefined;
  setText(shown.action, action?.text ?? "");
  shown.action.onclick = action?.run ?? null;
}

export function hideNotice(page: Page): void {
  page.notice.root.hidden = true;
}
