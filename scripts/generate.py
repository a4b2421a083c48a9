"""Writes the files that are derived from the Python sources; `--check` only says which of them are stale.

`npm run fmt` writes them, `npm run check` checks them.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable
from pathlib import Path

from generating import completions, looks, messages, pipelines, settings, targets, typescript

ROOT = Path(__file__).resolve().parents[1]


def between(name: str, text: str, new: str) -> str:
    """The text of a page with what is between its markers ``<!-- generated: NAME -->`` and ``<!-- end -->`` replaced.

    Raises ValueError if the page does not have the markers exactly once.
    """
    marked = re.compile(rf"(<!-- generated: {re.escape(name)} -->)(\s*).*?(\s*)(<!-- end -->)", re.DOTALL)
    replaced, count = marked.subn(lambda match: f"{match[1]}{match[2]}{new}{match[3]}{match[4]}", text)
    if count != 1:
        raise ValueError(f"the markers of {name!r} are there {count} times")
    return replaced


OUTPUTS: dict[str, Callable[[str], str]] = {
    "package.json": settings.manifest,
    "docs/settings.md": lambda text: settings.page(),
    "docs/PROTOCOL.md": lambda text: between(
        "panels", between("settings", text, settings.protocol_table()), messages.panel_reference()
    ),
    "docs/pipelines.md": lambda text: between("pipelines", text, pipelines.table()),
    "docs/json.md": lambda text: between("limits", text, settings.limit_names()),
}
"""By path: what makes the file's text from its text as it is (only parts of some files are generated)."""


def stale() -> dict[Path, str]:
    """The files that are not what they would be if they were written now, with their new texts."""
    found: dict[Path, str] = {}
    modules = {**typescript.write(messages.MODULES), **completions.scripts(), **looks.module(), **targets.module()}
    for name in (*OUTPUTS, *modules):
        path = ROOT / name
        old = path.read_text("utf-8") if path.exists() else ""
        new = modules[name] if name in modules else OUTPUTS[name](old)
        if new != old:
            found[path] = new
    return found


def main() -> int:
    """Returns the exit code: 1 where files are stale and are only to be checked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 where a file is stale")
    options = parser.parse_args()
    found = stale()
    for path, new in found.items():
        name = path.relative_to(ROOT)
        if options.check:
            print(f"{name} is stale: run `npm run fmt` (or `python scripts/generate.py`)", file=sys.stderr)
        else:
            path.parent.mkdir(exist_ok=True)
            path.write_text(new, "utf-8")
            print(f"wrote {name}")
    return 1 if found and options.check else 0


if __name__ == "__main__":
    sys.exit(main())
