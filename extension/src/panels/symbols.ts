/** What a symbolic size stands for, in words. */

export function symbolText(text: string, source: string): string {
  return source === "" ? `known only at run time: ${text}` : `${source}: ${text}`;
}
