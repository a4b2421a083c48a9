/** What has to be true before a version is published. */

/**
 * @typedef {object} Facts
 * @property {string} manifest package.json
 * @property {string} project pyproject.toml
 * @property {string} module the `__init__.py` of the Python package
 * @property {string} changelog CHANGELOG.md
 * @property {string} changes what git says is not committed
 */

/** In package.json this word is the placeholder for what only the owner of the project knows. */
const OWNER = "OWNER";

/** @param {Facts} facts @returns {string[]} what is wrong, each with what to do; empty: it can be released */
export function problemsOf({ manifest, project, module, changelog, changes }) {
  const { version, repository, bugs, homepage, publisher } = JSON.parse(manifest);
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
  const addresses = [repository?.url, bugs?.url, homepage, publisher];
  if (addresses.some((each) => typeof each !== "string" || each.includes(OWNER))) {
    problems.push(`package.json has the placeholder ${OWNER}. Write the address of the repository.`);
  }
  if (changes.trim() !== "") {
    problems.push("The working tree has changes that are not committed. Commit them first.");
  }
  return problems;
}
