"""Symbolic sizes from records of the trace."""

from __future__ import annotations

from pathlib import Path

import pytest
from facts import a_compile, a_finding, an_outcome
from irscope.capture.run_book import RunBook
from irscope.capture.timing import SymbolStages
from irscope.cli.main import main
from irscope.events.trace import Record, parse_record
from irscope.ir.symbols import SymbolPlace, Symbols
from irscope.protocol import Lane, RunRequest, StageRef
from irscope.store.store import Store

PLACE = SymbolPlace("/m.py", 7, "f")


def made() -> Symbols:
    symbols = Symbols()
    symbols.note(
        "create_symbol", {"symbol": "s7", "val": "5", "vr": "[2, int_oo]", "source": "L['x'].size()[0]"}, PLACE
    )
    symbols.note("create_symbol", {"symbol": "s77", "val": "3", "vr": "VR[-int_oo, int_oo]", "source": "L['n']"}, None)
    symbols.note("create_unbacked_symbol", {"symbol": "u0", "vr": "[-int_oo, int_oo]"}, PLACE)
    return symbols


@pytest.mark.parametrize(
    ("expression", "narrowed"),
    [
        ("s7 <= 4096", (2, 4096)),
        ("s7 < 10", (2, 9)),
        ("3 < s7", (4, None)),
        ("s7 > 3", (4, None)),
        ("12 >= s7", (2, 12)),
        ("s7 >= 0", (2, None)),
        ("Eq(s7, 7)", (7, 7)),
        ("Ne(s7, 7)", (2, None)),
        ("s7*s77 < 10", (2, None)),
        ("s7 <= s77", (2, None)),
    ],
)
def test_guards_narrow(expression: str, narrowed: tuple[int | None, int | None]) -> None:
    symbols = made()
    symbols.note("guard_added_fast", {"expr": expression}, PLACE)
    assert symbols.symbols["s7"].narrowed == narrowed
    assert symbols.symbols["s7"].range == (2, None)
    assert symbols.symbols["s77"].narrowed == symbols.symbols["s77"].range == (None, None)


def test_text_and_data() -> None:
    symbols = made()
    for expression in ("s7 <= 9", "s7 <= 9", "Eq(s77, 3)"):
        symbols.note("guard_added_fast", {"expr": expression}, PLACE)
    symbols.note("symbolic_shape_specialization", {"symbol": "s77", "value": "3", "reason": "range_refined"}, None)
    assert (
        symbols.text()
        == """\
s7 = 5  L['x'].size()[0]  in [2, ∞]  (/m.py:7 in f)
    s7 <= 9  (/m.py:7 in f)
    so it is in [2, 9]
s77 = 3  L['n']  in [-∞, ∞]
    fixed to 3: range_refined
    Eq(s77, 3)  (/m.py:7 in f)
    so it is in [3, 3]
u0  unbacked: its value is not known while compiling  in [-∞, ∞]  (/m.py:7 in f)
"""
    )
    data = symbols.data()
    assert [symbol["hint"] for symbol in data["symbols"]] == ["5", "3", None]
    assert data["symbols"][1]["specialized"] == {"value": "3", "reason": "range_refined"}
    assert data["guards"][0] == {
        "expression": "s7 <= 9", "symbols": ["s7"], "place": {"file": "/m.py", "line": 7, "function": "f"},
    }  # fmt: skip


def test_stages_from_records() -> None:
    """File names are interned; a restarted compile makes its symbols again."""
    written: list[tuple[str, str]] = []

    class Book(RunBook):
        def write_version(self, _: str, stage: StageRef, text: str | None, *__: object) -> None:
            written.append((stage.id, text or ""))

    stages = SymbolStages(Book(RunRequest("r", "/s.py", (), Lane.DEEP, "/runs.db"), lambda message: None))
    name = parse_record({"str": ["/home/me/m.py", 4]}, None)
    assert name is not None and name.facts == {"text": "/home/me/m.py", "index": 4}
    stages.note(name)
    stack = [{"line": 3, "name": "f", "filename": 4}, {"line": 9, "name": "relu", "filename": 77}]
    facts = {"symbol": "s7", "val": "5", "vr": "[2, int_oo]", "source": "L['x']", "user_stack": stack}
    for attempt, symbol in ((0, "s1"), (1, "s7")):
        stages.note(Record("create_symbol", {**facts, "symbol": symbol}, "0/0", attempt, ""))
    stages.note(Record("create_symbol", facts, None, 0, ""))
    assert written == []
    stages.note(Record("dynamo_cpp_guards_str", {}, "0/0", 1, ""))
    stages.note(Record("dynamo_cpp_guards_str", {}, "1/0", 0, ""))
    assert written == [("0/0/symbols", "s7 = 5  L['x']  in [2, ∞]  (/home/me/m.py:3 in f)\n")]
    assert StageRef("0/0/symbols", "symbols", "plaintext", 0)


def test_a_finding_says_what_the_symbols_in_its_words_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "runs.db")
    with Store(path) as store:
        run = store.create_run("/m.py", [], Lane.DEEP, "digest")
        store.put_compile(run, a_compile(id="0/0"))
        store.put_stage(run, "0/0", StageRef("0/0/symbols", "symbols", "plaintext", 0), "", 1, made().data())
        for message in ("`s7 > 3` is checked.", "Nothing."):
            store.put_finding(run, a_finding(message=message, code=message, compiles=("0/0",)))
        store.set_outcome(run, an_outcome())
        said = {
            finding.message: [symbol.line() for symbol in finding.symbols] for finding in store.report(run).findings
        }
    assert said == {"`s7 > 3` is checked.": ["s7 is L['x'].size()[0]: 5 in this compile, 2 to ∞"], "Nothing.": []}
    assert main(["show", run, "--store", path]) == 0
    assert "s7 is L['x'].size()[0]: 5 in this compile, 2 to ∞" in capsys.readouterr().out
