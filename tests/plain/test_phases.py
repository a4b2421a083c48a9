"""Phases from timed events, their totals and their text."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from facts import a_compile, an_outcome
from irscope.cli.main import main
from irscope.events.trace import TraceHandler
from irscope.ir import phases
from irscope.measures.compile_time import phases_text
from irscope.protocol import Lane, StageRef
from irscope.store.store import Store


def event(name: str, ms: float, begins: bool, thread: int = 1) -> phases.Event:
    payload = json.dumps({"name": name, "ts": ms * 1000, "ph": "B" if begins else "E", "pid": 0, "tid": 0})
    made = phases.event_of(payload, thread)
    assert made is not None
    assert made == phases.event_of(json.loads(payload), thread)
    return made


EVENTS = [
    event("dynamo", 0, True),
    event("bytecode_tracing", 10, True),
    event("bytecode_tracing", 40, False),
    event("backend_compile", 50, True),
    event("pass.a.b", 60, True),
    event("pass.a.b", 61, False),
    event("pass.a.b", 62, True),
    event("pass.a.b", 65, False),
    event("compile_file", 70, True, thread=2),
    event("backend_compile", 90, False),
    event("compile_file", 95, False, thread=2),
    event("dynamo", 100, False),
]
TEXT = """\
compile time  share    own  other threads  phase
      100 ms  100 %                 25 ms  compile
      100 ms  100 %  30 ms          25 ms    dynamo Dynamo, and all that it calls
       40 ms   40 %  36 ms          25 ms      backend_compile backend
        4 ms    4 %   4 ms                       pass.a.b ×2
                0 %                 25 ms        compile_file C++ compiler
       30 ms   30 %  30 ms                     bytecode_tracing symbolic tracing of the user's code
"""


def test_a_tree() -> None:
    tree = phases.build(EVENTS)
    assert [(p.name, p.parent, p.start, p.seconds, p.own, p.track) for p in tree] == [
        ("dynamo", -1, 0.0, 0.1, 0.03, 0),
        ("bytecode_tracing", 0, 0.01, 0.03, 0.03, 0),
        ("backend_compile", 0, 0.05, 0.04, 0.036, 0),
        ("pass.a.b", 2, 0.06, 0.001, 0.001, 0),
        ("pass.a.b", 2, 0.062, 0.003, 0.003, 0),
        ("compile_file", 2, 0.07, 0.025, 0.025, 1),
    ]
    assert phases.whole(tree) == 0.1
    assert phases_text(tree) == TEXT
    data = json.loads(json.dumps(phases.to_data(tree, {"graph_op_count": 3, "gc_time_us": None, "co_name": "f"})))
    assert phases.from_data(data) == tree
    assert data["metrics"] == {"graph_op_count": 3}


def test_what_had_not_ended_goes_to_the_last_event() -> None:
    tree = phases.build(EVENTS[:6])
    assert [(p.name, p.seconds) for p in tree] == [
        ("dynamo", 0.061), ("bytecode_tracing", 0.03), ("backend_compile", 0.011), ("pass.a.b", 0.001),
    ]  # fmt: skip
    assert phases.build([]) == [] and phases.build([EVENTS[2]]) == []


@pytest.mark.parametrize("payload", ["", "{", "[]", "null", "{}", '{"ph": "i", "name": "x", "ts": 1}', '{"ph": "B"}'])
def test_what_is_no_timed_event(payload: str) -> None:
    assert phases.event_of(payload) is None


@pytest.mark.parametrize("data", [None, {}, {"version": 2, "phases": []}, {"version": 1, "phases": [[1]]}])
def test_what_are_no_phases(data: object) -> None:
    with pytest.raises(ValueError):
        phases.from_data(data)


def test_timed_events_go_their_own_way() -> None:
    import logging

    seen: list[str] = []
    handler = TraceHandler(lambda r: seen.append(r.event), lambda r: seen.append(f"{r.event} {r.compile}"))
    record = logging.LogRecord("t", logging.DEBUG, "", 1, "", (), None)
    record.metadata = {"chromium_event": {}, "frame_id": 0, "frame_compile_id": 1}
    handler.emit(record)
    record.metadata = {"dynamo_start": {}, "frame_id": 0, "frame_compile_id": 1}
    handler.emit(record)
    assert seen == ["chromium_event 0/1", "dynamo_start"]


def test_show_time(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    path = str(tmp_path / "runs.db")
    with Store(path) as store:
        run = store.create_run("/m.py", [], Lane.DEEP, "digest")
        data = phases.to_data(phases.build(EVENTS), {})
        for id in ("0/0", "0/1"):
            store.put_compile(run, a_compile(id=id, seconds=0.1))
            store.put_stage(run, id, StageRef(f"{id}/phases", "phases", "plaintext", 0), TEXT, 9, data)
        store.set_outcome(run, an_outcome())
    assert main(["show", "--store", path, "--time"]) == 0
    out = capsys.readouterr().out
    rows = [" ".join(row.split()) for row in out.splitlines()]
    assert rows[1] == "this run 200 ms 100 % 50 ms"
    assert "compile_file ×2 C++ compiler 0 % 50 ms" in rows
    assert main(["show", "--store", path, "--time", "--compile", "0/1", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["seconds"], [compile["id"] for compile in shown["compiles"]]) == (0.1, ["0/1"])
    assert shown["compiles"][0]["phases"][1]["parent"] == 0


def test_a_fast_run_has_the_time_of_each_compile(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "runs.db")
    with Store(path) as store:
        run = store.create_run("/m.py", [], Lane.FAST, "digest")
        for id, seconds in (("0/0", 1.25), ("1/0", 0.5), ("2/0", 0.0)):
            store.put_compile(run, a_compile(id=id, seconds=seconds))
        store.set_outcome(run, an_outcome())
    assert main(["show", "--store", path, "--time"]) == 0
    out = capsys.readouterr().out
    assert " ".join(out.split()).endswith("entire_frame_compile ×2 the whole compile 1.8 s 100 % 1.8 s")


@pytest.mark.parametrize(("number", "label"), [(0, "Dynamo, first attempt"), (4, "Dynamo, attempt 5")])
def test_attempts_count_from_one(number: int, label: str) -> None:
    assert phases.Phase(f"compile_attempt_{number}", -1, 0.0, 1.0, 1.0, 0).label == label


def test_a_phase_without_an_end_is_no_time_twice() -> None:
    found = [phases.Phase("a", -1, 0.0, 4.0, 4.0, 0), phases.Phase("lost", -1, 3.0, 9.0, 9.0, 0),
             phases.Phase("b", -1, 5.0, 1.0, 1.0, 0), phases.Phase("beside", -1, 0.0, 99.0, 99.0, 1)]  # fmt: skip
    assert phases.whole(found) == 12.0
