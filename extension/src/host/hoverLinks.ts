/** Links of hovers as commands: a link of the editor's own opens over what the hover is about. */

/** What opens a place as the lists of the extension do: sources beside stages, and stages beside sources. */
export const LINK_COMMAND = "irscope.showPlace";

const LINK = /\]\(((?:file|irscope):[^)\s#]*)(?:#L(\d+))?\)/g;

/** Markdown of a hover with each link to a line of a file or to a stage as a command. */
export function withCommands(markdown: string): string {
  return markdown.replace(LINK, (_, uri: string, line?: string) => {
    const place = { uri, ...(line === undefined ? {} : { line: Number(line) - 1 }) };
    return `](command:${LINK_COMMAND}?${encodeURIComponent(JSON.stringify([place]))})`;
  });
}
