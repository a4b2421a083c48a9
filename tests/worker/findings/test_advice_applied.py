"""Every option that can be applied as an edit is applied: the break goes away, and the result stays the same."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import pytest
from advice_cases import CASES, BreakCase
from advice_runs import Session, session
from irscope.fixing.advice import Option
from irscope.protocol import Edit


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("advice")


@pytest.fixture(scope="module")
def broken(folder: Path) -> Session:
    for entry in CASES:
        (folder / f"case_{entry.name}.py").write_text(entry.source, encoding="utf-8")
    return session(folder, "broken", [folder / f"case_{entry.name}.py" for entry in CASES])


@pytest.fixture(scope="module")
def mended(folder: Path, broken: Session) -> Session:
    """All cases once more, each with one of its options applied."""
    paths = []
    for entry in CASES:
        for number, option in enumerate(_options(broken, folder, entry)):
            if option.edits:
                path = folder / f"case_{entry.name}__{number}.py"
                path.write_text(apply(entry.source, option.edits), encoding="utf-8")
                paths.append(path)
    return session(folder, "mended", paths)


def _options(broken: Session, folder: Path, entry: BreakCase) -> list[Option]:
    path = folder / f"case_{entry.name}.py"
    return broken.options.get(f"{path}:{entry.code}", [])


def apply(source: str, edits: tuple[Edit, ...]) -> str:
    """A text with edits applied; those at one place in their order."""
    lines = source.split("\n")
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    spans: dict[tuple[int, int], list[str]] = defaultdict(list)
    for edit in edits:
        start = starts[edit.range.start.line - 1] + edit.range.start.column
        end = starts[edit.range.end.line - 1] + edit.range.end.column
        spans[start, end].append(edit.text)
    for (start, end), texts in sorted(spans.items(), reverse=True):
        source = source[:start] + "".join(texts) + source[end:]
    return source


@pytest.mark.parametrize("entry", CASES, ids=lambda entry: entry.name)
def test_option(entry: BreakCase, folder: Path, broken: Session, mended: Session) -> None:
    path = folder / f"case_{entry.name}.py"
    assert (entry.reported or entry.code) in broken.codes(path)
    assert not entry.reported or entry.code not in broken.codes(path)
    options = _options(broken, folder, entry)
    assert options, "no advice at all"
    applied = [number for number, option in enumerate(options) if option.edits]
    assert len(applied) == entry.proven, [option.hint for option in options]
    for number in applied:
        other = folder / f"case_{entry.name}__{number}.py"
        text = other.read_text(encoding="utf-8")
        ast.parse(text)
        assert set(mended.codes(other)) <= set(entry.left), (text, mended.results[str(other)])
        assert mended.compiled(other), text
        assert "Error: " not in mended.results[str(other)], text
        if entry.same:
            assert mended.results[str(other)] == broken.results[str(path)], text


def test_ids_proven_by_running() -> None:
    assert len({entry.code for entry in CASES if entry.proven}) >= 25
