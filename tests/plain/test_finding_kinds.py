"""The kinds of findings are declared once, in their own modules; lists, docs and the debugger's filters follow."""

from __future__ import annotations

import ast
import re
import types
import typing
from pathlib import Path

import pytest
from facts import a_finding
from irscope.events.compiles import CompileBook
from irscope.events.trace import Record
from irscope.findings import book, registry
from irscope.findings.book import FindingBook
from irscope.findings.detector import Detector
from irscope.pipelines.base import Pipeline
from irscope.protocol import Finding, FindingFacts, Lane, Severity
from irscope.vocabulary.findings import VALUE_RUNS_ONLY, FindingKind
from irscope_server.dap.protocol.breakpoint_requests import FILTERS

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs" / "findings"
KINDS = registry.all_kinds()


def lanes_text(kind: FindingKind) -> str:
    return ", ".join(lane.value for lane in kind.lanes) if kind.lanes != VALUE_RUNS_ONLY else "value runs"


# --- docs -------------------------------------------------------------------------------------------------------------


def test_each_kind_has_a_row_in_the_index() -> None:
    rows = re.findall(
        r"^\| \[(\S+)\]\((\S+)\) \| (\S+) \| (.+) \|$", (DOCS / "README.md").read_text("utf-8"), re.MULTILINE
    )
    wanted = {(id, f"{id}.md", kind.severity.value, lanes_text(kind)) for id, kind in KINDS.items()}
    assert set(rows) == wanted
    assert len(rows) == len(wanted)


@pytest.mark.parametrize("kind", KINDS.values(), ids=list(KINDS))
def test_each_kind_has_a_page(kind: FindingKind) -> None:
    head = (DOCS / f"{kind.id}.md").read_text("utf-8").split("\n")[2]
    told = re.fullmatch(rf"Kind `{kind.id}` · severity ([a-z]+) · (?:lanes: (.+)|only in a value run .+)", head)
    assert told is not None, head
    assert (told[1], told[2] or "value runs") == (kind.severity.value, lanes_text(kind))


def test_there_is_no_page_without_a_kind() -> None:
    assert {page.stem for page in DOCS.glob("*.md")} - {"README"} == set(KINDS)


def test_each_class_of_facts_is_declared_by_its_kind() -> None:
    declared = {kind.facts: kind.id for kind in KINDS.values() if kind.facts is not None}
    assert declared == {cls: cls.kind for cls in typing.get_args(FindingFacts)}


# --- what follows from the declarations -------------------------------------------------------------------------------


_OFFERED = [
    ("graph-break", "Graph breaks", True),
    ("recompilation", "Recompilations", False),
    ("guard-failure", "Guard failures", False),
    ("specialization", "Specializations", False),
    ("recompile-limit", "Recompile limit reached", True),
    ("skipped-frame", "Skipped frames", False),
    ("fallback", "Fallbacks", False),
    ("missed-fusion", "Missed fusions", False),
    ("cudagraph-skip", "CUDA graph skips", False),
    ("cache-miss", "Cache misses", False),
    ("compile-error", "Compile errors", True),
    ("divergence", "Divergences", True),
    ("host-sync", "Host synchronizations", False),
    ("performance-hint", "Performance hints", False),
    ("slow-guards", "Slow guards", False),
]


def test_the_debugger_offers_to_stop_at_all_that_is_in_a_compile() -> None:
    told = [(each["filter"], each["label"], each["default"]) for each in FILTERS]
    assert [each for each in told if each in _OFFERED] == _OFFERED
    assert {each[0] for each in told} == {id for id, kind in KINDS.items() if kind.in_compile}
    assert {"unused-ignore", "script-error", "crashed", "environment-error"} <= set(KINDS) - {each[0] for each in told}


def test_no_id_of_a_kind_is_written_a_second_time_in_its_room() -> None:
    """A module of a kind that names another kind takes it from where it is declared."""
    written: dict[str, int] = {}
    for module in registry.modules():
        for node in ast.walk(ast.parse(Path(str(module.__file__)).read_text("utf-8"))):
            if isinstance(node, ast.keyword) and node.arg in ("id", "kind") and isinstance(node.value, ast.Constant):
                word = str(node.value.value)
                written[word] = written.get(word, 0) + 1
    assert written == {id: 1 for id, kind in KINDS.items() if id in written}
    assert len(written) >= 15


def test_a_kind_that_nobody_declared_says_what_its_id_says() -> None:
    kind = registry.kind_of("lost-thread")
    assert (kind.label, kind.short, kind.lanes) == ("Lost thread", ("lost thread", "lost threads"), ())
    assert registry.kind_of("graph-break").short == ("break", "breaks")


def test_two_kinds_of_one_id_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = types.ModuleType("first"), types.ModuleType("second")
    vars(first)["KIND"] = FindingKind("a", "A", ("a", "as"), (Lane.FAST,), Severity.HINT)
    vars(second)["KIND"] = vars(first)["KIND"]
    monkeypatch.setattr(registry, "modules", lambda: (first, second))
    monkeypatch.setattr(registry, "pipelines", dict)
    assert list(registry.all_kinds.__wrapped__()) == ["a"]
    vars(second)["KIND"] = FindingKind("a", "Another", ("a", "as"), (Lane.FAST,), Severity.HINT)
    with pytest.raises(ValueError, match="two kinds of finding are called a"):
        registry.all_kinds.__wrapped__()


def test_a_pipeline_may_bring_kinds_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    mine = FindingKind("tiny", "Tiny", ("tiny", "tinies"), (Lane.DEEP,), Severity.HINT)
    monkeypatch.setattr(registry, "pipelines", lambda: {"test": Pipeline("test", "Test", (), (mine,))})
    assert registry.all_kinds.__wrapped__()["tiny"] is mine


# --- the book ---------------------------------------------------------------------------------------------------------


def test_the_book_asks_who_wants_an_event_and_passes_on_a_signals_data(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, str | None, tuple[object, ...], int]] = []

    def detect(moment: object, *data: object) -> list[Finding]:
        record: Record = moment.record  # type: ignore[attr-defined]
        asked.append((record.event, record.compile, data, len(moment.known.findings)))  # type: ignore[attr-defined]
        return [a_finding(count=1)]

    made: list[str] = []
    detectors = (Detector("one", detect), Detector("two", detect, hook=lambda receive: receive))  # type: ignore[arg-type,return-value]
    monkeypatch.setattr(book, "_DETECTORS", detectors)
    monkeypatch.setattr(book, "_BY_EVENT", {each.event: [each] for each in detectors})
    published: list[Finding] = []
    mine = FindingBook(CompileBook(), published.append, lambda event: made.append(event) or "7/0")  # type: ignore[func-returns-value]
    mine.note(Record("one", {}, "0/0", 0, "text"))
    mine.note(Record("three", {}, "0/0", 0, "text"))
    mine.signal("two", "0/1", "data", 2)
    [receive] = mine.hooks(lambda receive: receive)
    receive("more")  # type: ignore[operator]
    assert asked == [("one", "0/0", (), 0), ("two", "0/1", ("data", 2), 1), ("two", "7/0", ("more",), 1)]
    assert [finding.count for finding in published] == [1, 2, 3]
    assert made == ["two"]
