/**
 * VS Code reads icons (`$(bug)`) out of the texts of lists and the status bar, and links, commands among them, out of
 * messages. What a script named itself must be neither.
 */

import { visible } from "../panels/visible";

/**
 * For quick picks and the status bar: what looks like an icon gets a blank in between. A backslash in front of it would
 * do as well, but for lists, which draw the icon as soon as something that was typed is marked beside it.
 */
export function withoutIcons(text: string): string {
  return visible(text).replace(/\$\((?=[A-Za-z0-9-]+(?:~[A-Za-z]+)?\))/g, "$ (");
}

/** For notifications: a link is `[text](target)`, so what looks like one gets a blank in between. */
export function withoutLinks(text: string): string {
  return visible(text).replaceAll("](", "] (");
}

/**
 * For hovers: what is between backticks is code, and nothing else has a meaning. `appendText` of VS Code makes no blank a
 * place to break a line, so it breaks words.
 */
export function asMarkdown(text: string): string {
  return visible(text)
    .split(/(`[^`\n]+`)/)
    .map((part, index) => (index % 2 === 1 ? part : part.replace(/[!-/:-@[-`{-~]/g, "\\$&")))
    .join("");
}
