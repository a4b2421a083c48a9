"""Links of the documents: files exist, and so do the headings that are named.  No document has marks of a merge."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path
from urllib.parse import unquote

import pytest

ROOT = Path(__file__).parents[2]
_FENCE = re.compile(r"^(?P<indent> *)(?P<ticks>```+|~~~+).*?^(?P=indent)(?P=ticks)[^\n]*$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"(?P<ticks>`+)(?!`).*?(?<!`)(?P=ticks)(?!`)", re.DOTALL)
_LINK = re.compile(r"!?\[(?:[^\[\]]|\[[^\[\]]*\])*\]\((?P<target>[^()\s]+)(?: \"[^\"]*\")?\)")
_IMAGE_IN_LINK = re.compile(r"!\[[^\]]*\]\((?P<target>[^()\s]+)\)")
_HEADING = re.compile(r"^#{1,6} (?P<words>.+?)(?: #+)?$", re.MULTILINE)


def documents() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    return [path for name in sorted(listed.splitlines()) if (path := ROOT / name).is_file()]


@cache
def words_of(path: Path) -> str:
    """The text of a document without what is fenced as code."""
    return _FENCE.sub("", path.read_text("utf-8"))


@cache
def anchors(path: Path) -> frozenset[str]:
    """The anchors that GitHub makes of a document's headings."""
    found: dict[str, int] = {}
    for match in _HEADING.finditer(words_of(path)):
        name = anchor(match["words"])
        found[name] = found.get(name, -1) + 1
        if found[name]:
            found[f"{name}-{found[name]}"] = 0
    return frozenset(found)


def anchor(heading: str) -> str:
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
    return re.sub(r"[^\w\- ]", "", text).strip().replace(" ", "-")


def targets(text: str) -> list[str]:
    """Where the links of a text lead."""
    plain = _CODE.sub("", text)
    return list(dict.fromkeys(m["target"] for pattern in (_LINK, _IMAGE_IN_LINK) for m in pattern.finditer(plain)))


def broken(document: Path) -> list[str]:
    problems = []
    for target in targets(words_of(document)):
        name, _, heading = target.partition("#")
        if re.match(r"[a-z]+:", target):
            continue
        file = (document.parent / unquote(name)).resolve() if name else document
        if not file.exists():
            problems.append(f"{target}: no such file")
        elif heading and (file.suffix != ".md" or heading not in anchors(file)):
            problems.append(f"{target}: no such heading")
    return problems


@pytest.mark.parametrize("document", documents(), ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(document: Path) -> None:
    assert broken(document) == []


def test_broken_links_are_seen(tmp_path: Path) -> None:
    (tmp_path / "other.md").write_text("# A `title` (of it)\n\n```\n# code\n```\n\n## Again\n\n## Again\n")
    page = tmp_path / "page.md"
    page.write_text(
        "[1](other.md#a-title-of-it) [2](other.md#again-1) [3](#here) [4](https://example.org/gone) `[5](gone.md)`\n\n"
        "# Here\n\n[6](gone.md) [7](other.md#code) [![8](gone.png)](other.md) [9](#there) [10](other.md#again-2)\n"
    )
    assert [problem.partition(":")[0] for problem in broken(page)] == [
        "gone.md", "other.md#code", "#there", "other.md#again-2", "gone.png",
    ]  # fmt: skip


def test_every_document_of_the_docs_is_in_the_index() -> None:
    docs = ROOT / "docs"
    linked = {(docs / target.partition("#")[0]).resolve() for target in targets(words_of(docs / "README.md"))}
    assert set(docs.glob("*.md")) - {docs / "README.md"} <= linked


@pytest.mark.parametrize("path", documents(), ids=lambda path: str(path.relative_to(ROOT)))
def test_no_merge_was_left_unfinished(path: Path) -> None:
    assert not re.search(r"^(<{7}|>{7}) ", path.read_text("utf-8"), re.MULTILINE)
