"""What the rooms say to each other, and its JSON as `docs/json.md` describes it."""

from __future__ import annotations

import dataclasses
import enum
import json
import re
import typing
from typing import Any

import pytest
from facts import a_compile, a_finding, a_gap, a_kernel, a_stage, an_outcome
from irscope import protocol
from irscope.cli.checked import Check, ScriptCheck
from irscope.cli.graphing import Drawing
from irscope.cli.report import ReportDocument
from irscope.comparing.autotuning import TunedChange, TunedDiff, Won
from irscope.comparing.graphs import GraphDiff, NodeChange
from irscope.comparing.pipelines import Figure, Left, PipelineFigures, Timing
from irscope.comparing.runs import Change, CompileChange, RunDiff
from irscope.comparing.versions.differences import Difference
from irscope.comparing.versions.environments import EnvironmentChange
from irscope.driver.search import Cause
from irscope.driver.versions import VersionDiff, VersionSide
from irscope.findings.standing import RunStanding
from irscope.findings.verdicts import Measured, Verdict
from irscope.ir.graphs import GraphNode
from irscope.ir.guards import Guard, GuardList
from irscope.ir.phases import Phase
from irscope.ir.roofline import Work
from irscope.measures.tree import Measure, PathTree, TreeNode
from irscope.pipeline_captures.inductor.cache_differences import KeyComparison, KeyDifference
from irscope.profiling.break_words import BreakCost, BreakRemoved, RecompileCost
from irscope.profiling.changes import LineChange, ProfileDiff
from irscope.profiling.noise import Spread
from irscope.profiling.profile import (
    CudaGraphs,
    Gap,
    GraphPool,
    MeasuredKernel,
    MeasuredLine,
    MeasuredProgram,
    Profile,
    RecordedAgain,
    SkippedGraph,
    StepPiece,
)
from irscope.profiling.regions import Elsewhere, MeasuredRegion
from irscope.profiling.step_memory import HeldBlock, StepMemory
from irscope.protocol import (
    SCHEMA,
    CompileSeen,
    FindingSeen,
    GapSeen,
    KernelsWritten,
    Lane,
    Limit,
    LimitReached,
    Message,
    Progress,
    Refused,
    Report,
    RunRequest,
    RunSummary,
    ScriptEnded,
    Started,
    Unfit,
    decode_message,
    encode_message,
    from_json,
    to_json,
)
from irscope.protocol.symbols import SymbolFacts
from irscope.provenance.fusions import Decision, FusionAnswer, Side
from irscope.provenance.lines import CalledCompile, LineStep, LineTrail, StageElement
from json_docs import DOCS, documented_types

MESSAGES: list[Message] = [
    Started("2.13.0+cpu"),
    Refused("PyTorch is not installed."),
    Unfit("it sets a variable that torch has read"),
    CompileSeen(a_compile(stages=(a_stage(),))),
    KernelsWritten((a_kernel(),)),
    FindingSeen(a_finding()),
    FindingSeen(a_finding(link=None, hints=(), related=())),
    GapSeen(a_gap()),
    Progress("compiling été 🚀"),
    Unfit("it sets OMP_NUM_THREADS"),
    LimitReached(Limit.STEADY_STATE, "Stopped: no new compile or finding."),
    ScriptEnded(3, "the script ended with sys.exit(3)"),
]
REPORT = Report(
    SCHEMA, "20261120-101500-3fa2b1", "/home/me/model.py", None, an_outcome(exit_code=None),
    (a_compile(stages=(a_stage(),)),), (a_finding(),), (a_kernel(),), (a_gap(),),
)  # fmt: skip
REQUEST = RunRequest("r", "/s.py", ("--a", "b"), Lane.FAST, "/store.db", "s.py", overlays={"/s.py": "x = 'é\ud800'\n"})
SUMMARY = RunSummary("r", "/s.py", Lane.DEEP, 1.5, None, None, 1, 2, 3)


def through_text(value: Any) -> Any:
    return json.loads(json.dumps(value))


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_a_message_there_and_back(message: Message) -> None:
    assert decode_message(through_text(encode_message(message))) == message


def test_every_message_is_tested() -> None:
    assert {type(message) for message in MESSAGES} == set(typing.get_args(Message))


@pytest.mark.parametrize("value", [REPORT, REQUEST, SUMMARY, dataclasses.replace(SUMMARY, outcome=an_outcome())])
def test_plain_data_there_and_back(value: Any) -> None:
    assert from_json(type(value), through_text(to_json(value))) == value


def test_unknown_keys_are_passed_over() -> None:
    data = {**encode_message(FindingSeen(a_finding())), "new": 1}
    data["finding"]["verified"] = {"new": True}
    data["finding"]["range"]["start"]["new"] = [1]
    assert decode_message(data) == FindingSeen(a_finding())


def test_missing_keys() -> None:
    data = to_json(a_finding())
    del data["related"]  # has a default
    assert from_json(protocol.Finding, data) == a_finding(related=())
    del data["file"]
    with pytest.raises(KeyError, match=r"Finding\.file"):
        from_json(protocol.Finding, data)


FACTS = [
    None,
    protocol.BreakFacts(leaves_function_to_python=True),
    protocol.RecompilationFacts(
        "x", "1", "grad_mode", (protocol.VaryingSize("x", (0, 1)),), (8, 1), True,
    ),
]  # fmt: skip


@pytest.mark.parametrize("facts", FACTS)
def test_facts_there_and_back(facts: protocol.FindingFacts | None) -> None:
    finding = a_finding(facts=facts)
    assert from_json(protocol.Finding, through_text(to_json(finding))) == finding


def test_facts_that_only_a_newer_irscope_has_and_those_of_an_older_run() -> None:
    data = to_json(a_finding())
    assert from_json(protocol.Finding, {**data, "facts": {"kind": "new", "more": 1}}) == a_finding(facts=None)
    del data["facts"], data["related"][0]["role"]
    old = from_json(protocol.Finding, data)
    assert (old.facts, old.related[0].role) == (None, None)
    invalid: list[object] = [[], {"kind": "graph-break", "leaves_function_to_python": 1}]
    for wrong in invalid:
        with pytest.raises(ValueError, match="expected"):
            from_json(protocol.Finding, {**data, "facts": wrong})


@pytest.mark.parametrize("data", [{}, {"is": "Nonsense"}, {"is": "Report"}, {"is": ""}])
def test_what_is_no_message(data: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="not a message"):
        decode_message(data)


def test_a_value_outside_its_enum() -> None:
    with pytest.raises(ValueError, match="loud"):
        from_json(protocol.Finding, {**to_json(a_finding()), "severity": "loud"})


# --- docs/json.md -----------------------------------------------------------------------------------------------------

DOCUMENTED: dict[str, Any] = {
    cls.__name__: cls
    for cls in (
        RunStanding, protocol.Outcome, protocol.Compile, protocol.StageRef, protocol.Finding, SymbolFacts, protocol.Cost, protocol.Fix, protocol.Edit, protocol.Related, protocol.BreakFacts, protocol.RecompilationFacts, protocol.NonFiniteFacts, protocol.KernelCheckFacts, protocol.VaryingSize, protocol.Resumed, StepMemory, HeldBlock,
        protocol.RankReport, protocol.RuntimeCollective, protocol.Collective, protocol.CollectiveOverlap, protocol.OverlapMove, protocol.BucketSplit, protocol.CollectiveWait, protocol.Piece,
        protocol.Range, protocol.Position, protocol.Kernel, protocol.FileLines, protocol.Origin, protocol.CaptureGap, protocol.RunSummary,
        LineTrail, CalledCompile, LineStep, StageElement, GraphNode, GuardList, Guard,
        RunDiff, CompileChange, Change, GraphDiff, NodeChange, FusionAnswer, Decision, Side, Work, Phase,
        Drawing, PipelineFigures, Figure, Timing, Left, Check, ScriptCheck, Measured,
        Profile, MeasuredLine, MeasuredKernel, Gap, StepPiece, CudaGraphs, SkippedGraph, RecordedAgain, GraphPool, MeasuredProgram, MeasuredRegion, Elsewhere, Spread, BreakCost, BreakRemoved, RecompileCost, PathTree, Measure, TreeNode,
        ProfileDiff, LineChange, TunedDiff, TunedChange, Won,
        VersionDiff, VersionSide, Difference, Cause, EnvironmentChange, KeyComparison, KeyDifference,
    )
}  # fmt: skip
DOCUMENTED["Report"] = ReportDocument


def test_the_documentation_has_every_class() -> None:
    assert set(documented_types()) == set(DOCUMENTED)


@pytest.mark.parametrize("name", DOCUMENTED)
def test_the_documentation_has_every_key_in_order(name: str) -> None:
    assert list(documented_types()[name]) == [field.name for field in dataclasses.fields(DOCUMENTED[name])]


@pytest.mark.parametrize("name", DOCUMENTED)
def test_the_documented_types(name: str) -> None:
    hints = typing.get_type_hints(DOCUMENTED[name])
    for key, (words, _) in documented_types()[name].items():
        assert words == _in_words(hints[key]), f"{name}.{key}"


def _in_words(hint: Any) -> str:
    plain = {str: "string", int: "integer", float: "number", bool: "boolean"}
    if hint in plain:
        return plain[hint]
    if typing.get_origin(hint) is typing.Literal:
        return "string"
    if typing.get_origin(hint) is tuple:
        return f"{_in_words(typing.get_args(hint)[0])}[]"
    if none := [arg for arg in typing.get_args(hint) if arg is not type(None)]:
        return " | ".join(f"{_in_words(arg)}?" for arg in none)
    if issubclass(hint, enum.Enum):
        return "string"
    return str(hint.__name__)


@pytest.mark.parametrize(
    ("name", "key", "words"),
    [
        ("Outcome", "kind", [kind.value for kind in protocol.OutcomeKind]),
        ("Compile", "outcome", [outcome.value for outcome in protocol.CompileOutcome]),
        ("Finding", "severity", [severity.value for severity in protocol.Severity]),
        ("Fix", "method", [method.value for method in protocol.FixMethod]),
        ("Related", "role", [role.value for role in protocol.RelatedRole]),
        ("RunSummary", "lane", [lane.value for lane in Lane]),
        ("Check", "verdict", [verdict.value for verdict in Verdict]),
    ],
)
def test_every_word_is_documented(name: str, key: str, words: list[str]) -> None:
    meaning = documented_types()[name][key][1]
    assert [word for word in words if f"`{word}`" not in meaning] == []


def test_every_stage_name_is_documented() -> None:
    from irscope.pipelines.registry import stage_kinds

    names = DOCS.read_text(encoding="utf-8").partition("Names of stages, by pipeline:\n\n")[2].partition("\n\n")[0]
    assert set(re.findall(r"`([\w-]+)`", names)) == set(stage_kinds())


def test_the_schema_is_documented() -> None:
    assert documented_types()["Report"]["schema"][1] == f"version of this document: {SCHEMA}"


@pytest.mark.parametrize(
    "message",
    [
        {"is": "Unfit", "reason": {"a": 1}},
        {"is": "LimitReached", "limit": "seconds", "message": [1]},
        {"is": "LimitReached", "limit": ["seconds"], "message": ""},
        {"is": "Progress", "phase": "", "text": "", "done": True, "total": 1},
        {"is": "Progress", "phase": "", "text": "", "done": 10**30, "total": 1},
        {"is": "GapSeen", "gap": "text"},
        {"is": "GapSeen", "gap": ["what", "why"]},
        {"is": ["Unfit"]},
    ],
)
def test_a_message_of_wrong_types_is_refused(message: dict[str, Any]) -> None:
    with pytest.raises((ValueError, TypeError, KeyError)):
        decode_message(message)


def test_lone_surrogates_are_replaced() -> None:
    decoded = decode_message({"is": "Unfit", "reason": "\ud800x"})
    assert isinstance(decoded, Unfit) and decoded.reason == "?x"
