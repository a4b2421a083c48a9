/** What has to be true before a version is published, and what its pages look like. */

/**
 * @typedef {object} Facts
 * @property {string} manifest package.json
 * @property {string} project pyproject.toml
 * @property {string} module the `__init__.py` of the Python package
 * @property {string} changelog CHANGELOG.md
 * @property {string} changes what git says is not committed
 */

/** @param {Facts} facts @returns {string[]} what is wrong, each with what to do; empty: it can be released */
export function problemsOf({ manifest, project, module, changelog, changes }) {
  const { version } = JSON.parse(manifest);
  const problems = [];
  const versions = {
    "pyproject.toml": /^version = "(.+)"$/m.exec(project)?.[1],
    "compiler/irscope/__init__.py": /^__version__ = "(.+)"$/m.exec(module)?.[1],
  };
  for (const [file, found] of Object.entries(versions)) {
    if (found !== version) {
      problems.push(`${file} has version ${found ?? "none"}, package.json ${version}. Write the same into both.`);
    }
  }
  const heading = new RegExp(`^## ${version.replaceAll(".", "\\.")} \\((.+)\\)$`, "m").exec(changelog);
  if (heading === null) {
    problems.push(`CHANGELOG.md has no section "## ${version} (YYYY-MM-DD)". Write what has changed.`);
  } else if (!/^\d{4}-\d\d-\d\d$/.test(heading[1] ?? "")) {
    problems.push(`CHANGELOG.md says "${heading[1]}" of ${version}. Write the day of the release.`);
  }
  if (changes.trim() !== "") {
    problems.push("The working tree has changes that are not committed. Commit them first.");
  }
  return problems;
}

/**
 * A page of Markdown without its pictures and with plain words for relative links: a marketplace has no files beside it, and
 * the project has no address to which they could lead.
 * @param {string} page
 */
export function withoutRelativeLinks(page) {
  return page.replace(/!\[[^\]]*\]\((?!https?:)[^)]+\)\n*/g, "").replace(/\[([^\]]*)\]\((?!https?:|#)[^)]+\)/g, "$1");
}
