"""The ranks of a job side by side: which statements differ, and what the request answers."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from facts import a_compile, a_finding, an_outcome
from irscope.comparing.ranks.traffic import UNSEEN
from irscope.protocol import CollectiveWait, Lane, OutcomeKind, RankReport, RuntimeCollective, StageRef
from irscope.store.store import Store
from irscope_server.panels import ranks
from irscope_server.panels.rank_rows import rows_of
from irscope_server.view.reader import Reader, Refused

HEAD = 'class GraphModule(torch.nn.Module):\n    def forward(self, L_x_: "f32[8]cpu"):\n        l_x_ = L_x_\n'


def graph(*statements: str) -> str:
    lines = [f'        v{at}: "f32[8]cpu" = {text}' for at, text in enumerate(statements)]
    return HEAD + "\n".join(lines) + f"\n        return (v{len(statements) - 1},)\n"


def signs(left: str, right: str) -> list[tuple[str, str, str]]:
    return [(row.sign, row.left.rpartition(" = ")[2], row.right.rpartition(" = ")[2]) for row in rows_of(left, right)]


SINES = ["l_x_.sin()", *(f"v{at}.sin()" for at in range(9))]


def test_graphs_that_differ_in_names_only_have_no_rows() -> None:
    assert signs(graph(*SINES), graph(*SINES).replace("v3", "other")) == []
    assert signs(graph("l_x_.to('cuda:0')"), graph("l_x_.to('cuda:5')")) == []


def test_what_differs_is_marked_and_what_is_alike_is_left_out() -> None:
    other = [*SINES[:5], "v4.cos()", *SINES[6:]]
    rows = signs(graph(*SINES), graph(*other))
    assert rows == [
        ("skipped", "4", ""), ("", "v2.sin()", "v2.sin()"), ("", "v3.sin()", "v3.sin()"),
        ("changed", "v4.sin()", "v4.cos()"),
        ("", "v5.sin()", "v5.sin()"), ("", "v6.sin()", "v6.sin()"), ("skipped", "3", ""),
    ]  # fmt: skip
    (row,) = [row for row in rows_of(graph(*SINES), graph(*other)) if row.sign == "changed"]
    assert graph(*SINES).split("\n")[row.left_line].endswith("v4.sin()"), "links lead to the statement"


def test_a_statement_over_several_lines_is_in_one() -> None:
    def returned(*names: str) -> str:
        lines = [f"            {name},  # PlainAOTOutput(idx={at})" for at, name in enumerate(names)]
        return graph("l_x_.sin()").replace("return (v0,)", "\n".join(["return (", *lines, "        )"]))

    (row,) = [row for row in rows_of(returned("v0"), returned("v0", "l_x_")) if row.sign == "changed"]
    assert (row.left, row.right) == ("return (v0,)", "return (v0, l_x_,)")


def test_a_statement_that_one_rank_alone_has() -> None:
    more = [*SINES[:2], "v1.relu()", *(f"v{at + 1}.sin()" for at in range(1, 9))]
    rows = signs(graph(*SINES), graph(*more))
    assert [row for row in rows if row[0] not in ("", "skipped")] == [("right", "", "v1.relu()")]
    rows = signs(graph(*more), graph(*SINES))
    assert [row for row in rows if row[0] not in ("", "skipped")] == [("left", "v1.relu()", "")]


def test_very_long_graphs_are_not_matched_statement_by_statement() -> None:
    long = graph("l_x_.sin()", *(f"v{at}.sin()" for at in range(3000)))
    other = graph("l_x_.cos()", *(f"v{at}.cos()" for at in range(3000)))
    assert {row.sign for row in rows_of(long, other)} >= {"changed"}


@pytest.fixture
def job(tmp_path: Path) -> tuple[str, list[str]]:
    """A store with two ranks: the second has another operation, and a function of its own."""
    path, runs = str(tmp_path / "runs.db"), []
    with Store(path) as store:
        for rank, operation in enumerate(("l_x_.sin()", "l_x_.cos()")):
            run = store.create_run("/train.py", (), Lane.FAST, "", {"world": 2, "rank": rank})
            text = graph(operation)
            stage = StageRef("0/0/dynamo-graph", "dynamo-graph", "python", len(text))
            store.put_compile(run, a_compile(id="0/0", function="f", stages=()))
            store.put_stage(run, "0/0", stage, text, 1.0)
            if rank == 1:
                store.put_compile(run, a_compile(id="1/0", function="g", stages=()))
            store.set_outcome(run, an_outcome(kind=OutcomeKind.COMPLETED))
            runs.append(run)
        for finding in (
            a_finding(ranks=(1,)),
            a_finding(kind="rank-divergence", code="rank-divergence-graph", ranks=(0, 1)),
        ):
            store.put_finding(runs[0], finding)
        reports = [RankReport(rank, run, an_outcome(), rank + 1, 0) for rank, run in enumerate(runs)]
        store.put_ranks(runs[0], 2, reports)
    return path, runs


def asked(path: str, method: str, **params: object) -> dict[str, Any]:
    reader = Reader(path)
    try:
        answer: dict[str, Any] = json.loads(reader.answer(method, params))
        return answer
    finally:
        reader.close()


def test_two_ranks_side_by_side(job: tuple[str, list[str]]) -> None:
    path, (first, second) = job
    found = asked(path, "irscope/ranks", run=first)
    assert (found["world"], found["first"], found["other"], found["reason"]) == (2, 0, 1, "")
    assert [(one["function"], one["left"], one["right"]) for one in found["compiles"]] == [
        ("f", "0/0", "0/0"),
        ("g", "", "1/0"),
    ]
    (stage,) = found["compiles"][0]["stages"]
    assert not stage["same"] and [row["sign"] for row in stage["rows"] if row["sign"] not in ("", "skipped")] == [
        "changed"
    ]
    assert first in stage["left"] and second in stage["right"]
    assert [(one["code"], one["ranks"]) for one in found["divergences"]] == [("rank-divergence-graph", "0, 1")]
    alone = asked(path, "irscope/ranks", run=second)
    assert alone["ranks"] == [] and "rank 1 of 2" in alone["reason"]
    with pytest.raises(Refused, match="Rank 9"):
        asked(path, "irscope/ranks", run=first, other="9")


def test_waits_and_the_collectives_of_the_runtime(job: tuple[str, list[str]]) -> None:
    path, (first, _) = job
    sent = RuntimeCollective("pipeline", "send", "stage 0", 1, 1024, "/train.py", 9, 6, 6, 0.006)
    wait = CollectiveWait(
        operation="all_reduce", file="/train.py", line=7, calls=3, seconds=0.8, longest=0.3, late=1, late_calls=3,
        ranks=(0, 1), waited=(0.8, 0.0), typical=0.25, before_file="/data.py", before_line=5,
    )  # fmt: skip
    with Store(path) as store:
        reports = [RankReport(0, first, an_outcome(), 1, 0, runtime=(sent,))]
        store.put_ranks(first, 2, reports, (wait, replace(wait, before_file="", before_line=0)))
    found = asked(path, "irscope/ranks", run=first)
    (row,) = found["runtime"]
    assert (row["operation"], row["place"]["line"], row["beside"]) == ("send, rank 1", 8, "1 ms each")
    named, unknown = found["waits"]
    assert (named["typical"], named["before"]["line"], named["before"]["uri"][-8:]) == (0.25, 4, "/data.py")
    assert unknown["before"]["uri"] == ""


def test_collectives_that_the_fast_lane_does_not_see_are_named(job: tuple[str, list[str]]) -> None:
    path, (first, _) = job
    assert asked(path, "irscope/ranks", run=first)["unseen"] == ""
    with Store(path) as store:
        store.put_gap(first, UNSEEN)
    assert "A deep run shows them." in asked(path, "irscope/ranks", run=first)["unseen"]


def test_ranks_and_compiles_that_are_left_out_are_counted(
    job: tuple[str, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, (first, _) = job
    found = asked(path, "irscope/ranks", run=first)
    assert (found["moreRanks"], found["moreCompiles"]) == (0, 0)
    monkeypatch.setattr(ranks, "_MOST_RANKS", 1)
    monkeypatch.setattr(ranks, "_MOST_COMPILES", 0)
    found = asked(path, "irscope/ranks", run=first)
    assert (len(found["ranks"]), found["moreRanks"], found["compiles"], found["moreCompiles"]) == (1, 1, [], 2)


def test_a_tree_says_how_many_ranks_the_job_has_and_a_rank_for_how_many_it_stands(job: tuple[str, list[str]]) -> None:
    path, runs = job
    assert [asked(path, "irscope/report", run=run)["ranks"] for run in runs] == [2, 0]
    alike = tuple(range(2, 1024))
    with Store(path) as store:
        first, second = (RankReport(rank, run, an_outcome(), 1, 0) for rank, run in enumerate(runs))
        store.put_ranks(runs[0], 1024, [dataclasses.replace(first, alike=alike), second])
    assert asked(path, "irscope/report", run=runs[0])["ranks"] == 1024
    assert [one["others"] for one in asked(path, "irscope/ranks", run=runs[0])["ranks"]] == [1022, 0]


def test_findings_and_pipelines_name_their_ranks(job: tuple[str, list[str]]) -> None:
    path, (first, second) = job
    groups = asked(path, "irscope/findings", run=first)["groups"]
    named = {group["code"]: [place["ranks"] for place in group["places"]] for group in groups}
    assert named["rank-divergence-graph"] == ["ranks 0, 1"] and ["rank 1"] in named.values()
    assert asked(path, "irscope/pipeline", run=second)["rank"] == "rank 1 of 2"
