/** What VS Code does with a manifest and the texts in package.nls.json: any value that is `%key%` becomes its text. */

/**
 * @param {any} value @param {Record<string, string>} texts @returns {any}
 */
export function withTexts(value, texts) {
  if (typeof value === "string") {
    return /^%.+%$/.test(value) ? (texts[value.slice(1, -1)] ?? value) : value;
  }
  if (Array.isArray(value)) {
    return value.map((each) => withTexts(each, texts));
  }
  if (value === null || typeof value !== "object") {
    return value;
  }
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, withTexts(each, texts)]));
}
