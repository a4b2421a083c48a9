"""Every option that can be applied as an edit is applied: the break goes away, and the result stays the same."""

from __future__ import annotations

import ast
import json
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from advice_cases import CASES, BreakCase
from irscope.findings.advice import Edit, Option
from irscope.protocol import CompileOutcome, Report, from_json
from support import Ran, run_captured

DRIVER = """
import json
import random
import runpy
import sys

import torch

import irscope.findings.kinds.graph_break as graph_break
from irscope.findings.advice import RULES
from irscope.findings.advice.spot import Spot
from irscope.protocol import to_json

out, *paths = sys.argv[1:]
options, failures = {}, []
speak = graph_break.words_for


def noting(context):
    words = speak(context)
    code = context.messages[0].code if context.messages else ""
    options.setdefault(f"{context.file}:{code}", to_json(words.options))
    try:
        if code in RULES and context.node is not None:
            RULES[code](Spot(context))
    except Exception as error:
        failures.append(f"{context.file}: {type(error).__name__}: {error}")
    return words


graph_break.words_for = noting
results = {}
settings = torch._dynamo.config.save_config()
for path in paths:
    torch._dynamo.reset()
    torch.manual_seed(0)
    random.seed(0)
    try:
        script = runpy.run_path(path)
        result = torch.compile(script["f"], backend="eager")(*script["ARGS"])
        results[path] = repr(list(result) if hasattr(result, "__next__") else result)
    except Exception as error:
        results[path] = f"{type(error).__name__}: {error}"
    torch._dynamo.config.load_config(settings)
with open(out, "w") as file:
    json.dump({"options": options, "results": results, "failures": failures}, file)
"""


@dataclass(frozen=True)
class Session:
    """What one run over many small files gave."""

    report: Report
    options: dict[str, list[Option]]
    results: dict[str, str]

    def codes(self, path: Path) -> list[str]:
        return [
            f.code for f in self.report.findings if f.file == str(path) and f.kind in ("graph-break", "compile-error")
        ]

    def compiled(self, path: Path) -> bool:
        return any(c.file == str(path) and c.outcome is CompileOutcome.COMPILED for c in self.report.compiles)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("advice")


@pytest.fixture(scope="module")
def broken(folder: Path) -> Session:
    for entry in CASES:
        (folder / f"case_{entry.name}.py").write_text(entry.source, encoding="utf-8")
    return _session(folder, "broken", [folder / f"case_{entry.name}.py" for entry in CASES])


@pytest.fixture(scope="module")
def mended(folder: Path, broken: Session) -> Session:
    """All cases once more, each with one of its options applied."""
    paths = []
    for entry in CASES:
        for number, option in enumerate(_options(broken, folder, entry)):
            if option.replaces_line:
                path = folder / f"case_{entry.name}__{number}.py"
                path.write_text(apply(entry.source, option.edits), encoding="utf-8")
                paths.append(path)
    return _session(folder, "mended", paths)


def _session(folder: Path, name: str, paths: list[Path]) -> Session:
    driver = folder / f"{name}_driver.py"
    driver.write_text(DRIVER, encoding="utf-8")
    out = folder / f"{name}.json"
    ran: Ran = run_captured(driver, folder / f"{name}.db", "fast", [str(out), *map(str, paths)])
    assert out.exists(), ran.stderr[-3000:]
    data: dict[str, Any] = json.loads(out.read_text())
    assert data["failures"] == []
    options = {key: [from_json(Option, item) for item in items] for key, items in data["options"].items()}
    return Session(ran.report, options, data["results"])


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
    applied = [number for number, option in enumerate(options) if option.replaces_line]
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
