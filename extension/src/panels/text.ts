/** Names of files and places as the panels write them. */

import type { Place } from "../protocol";

export function placeText({ uri, line }: Place): string {
  return `${fileName(uri)}:${line + 1}`;
}

export function fileName(uri: string): string {
  const name = uri.slice(uri.lastIndexOf("/") + 1);
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}

export function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
