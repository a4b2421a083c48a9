/** Names and texts of scripts, traces and stores, made fit to be shown: nothing in them moves or hides what is around. */

/** Control characters but tab and new line; marks, overrides and isolates of direction; what takes no room. */
export const UNSEEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;

/** Attributes that a person reads or hears. */
const READ = new Set(["title", "aria-label", "aria-valuetext"]);

/** The text with characters such as `\u202e` written out. */
export function visible(text: string): string {
  return text.replace(UNSEEN, (each) => `\\u${each.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** What an element's attribute is set to. */
export function visibleIn(attribute: string, value: string): string {
  return READ.has(attribute) ? visible(value) : value;
}
