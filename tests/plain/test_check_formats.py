"""What `irscope check` writes, from facts that a script has named to do harm; and when a check fails."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest
from facts import a_compile, a_finding, a_gap, a_kernel, a_range, an_outcome
from irscope.cli.check_formats import FORMATS, written
from irscope.cli.check_formats.github import Quoted
from irscope.cli.checked import Check
from irscope.cli.checking import _summed, judged
from irscope.findings.verdicts import DEFAULT_FAIL_ON, Verdict, fails, lane_for, read_fail_on
from irscope.protocol import SCHEMA, Edit, Finding, Fix, Lane, Limit, OutcomeKind, Related, Report, Severity
from irscope.protocol.symbols import SymbolFacts

SARIF = json.loads((Path(__file__).parent / "sarif" / "sarif-2.1.0.json").read_text())
VALIDATOR = jsonschema.validators.validator_for(SARIF)(SARIF, format_checker=jsonschema.FormatChecker())
HOSTILE = (
    "%0A::set-env name=A::b\n::error::two\r::three]]><a>&amp;\x00\x1b[31m\u202e\ud800 ##[add-path]/x [me](javascript:x)"
)
FILE = "/home/me/a,b:c%\n::error::.py"
RECOMPILED = a_finding(kind="recompilation", code="recompile-size", severity=Severity.INFORMATION, range=a_range(9))


def a_report(*findings: Finding, **changes: Any) -> Report:
    facts: dict[str, Any] = {
        "schema": SCHEMA, "run": "20261120-101500-3fa2b1", "script": "/home/me/model.py", "torch": "2.13.0",
        "outcome": an_outcome(kind=OutcomeKind.COMPLETED, exit_code=0, limit=None), "compiles": (a_compile(),),
        "findings": findings, "kernels": (a_kernel(),), "capture_gaps": (),
    }  # fmt: skip
    return Report(**{**facts, **changes})


def a_check(*reports: Report, **limits: float) -> Check:
    return _summed([judged(f"{n}.py", report, report, DEFAULT_FAIL_ON, limits) for n, report in enumerate(reports)])


def hostile() -> Check:
    fix = Fix(HOSTILE, HOSTILE, (Edit(a_range(), HOSTILE),))
    finding = a_finding(
        message=HOSTILE, explanation=HOSTILE, hints=(HOSTILE,), file=FILE, code=HOSTILE, link=f"https://x/{HOSTILE}",
        related=(Related(FILE, a_range(), HOSTILE),), fixes=(fix,), compiles=(HOSTILE,),
    )  # fmt: skip
    gap = dataclasses.replace(a_gap(), what=HOSTILE, why=HOSTILE)
    failed = an_outcome(kind=OutcomeKind.SCRIPT_ERROR, message=HOSTILE)
    one = a_report(finding, script=FILE, capture_gaps=(gap,), outcome=failed)
    return _summed([judged(HOSTILE, one, one, DEFAULT_FAIL_ON, {"max_graphs": 0})])


CHECKS = {
    "clean": a_check(a_report()),
    "findings": a_check(a_report(a_finding(), RECOMPILED), a_report(a_finding()), max_graphs=0, max_kernels=1),
    "failed": a_check(a_report(outcome=an_outcome(kind=OutcomeKind.CRASHED)), a_report()),
    "notebook": a_check(a_report(a_finding(file="/home/me/a b.ipynb#cell-2"))),
    "hostile": hostile(),
}


@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
def test_sarif_is_valid(check: Check) -> None:
    log = json.loads(written("sarif", check))
    VALIDATOR.validate(log)
    run = log["runs"][0]
    rules = {rule["id"] for rule in run["tool"]["driver"]["rules"]}
    assert {result["ruleId"] for result in run["results"]} == rules


def test_the_schema_refuses_what_is_not_sarif() -> None:
    log = json.loads(written("sarif", CHECKS["findings"]))
    log["runs"][0]["results"][0]["level"] = "loud"
    with pytest.raises(jsonschema.ValidationError, match="loud"):
        VALIDATOR.validate(log)


def test_sarif_has_the_place_the_advice_and_each_finding_once() -> None:
    run = json.loads(written("sarif", CHECKS["findings"]))["runs"][0]
    of_findings = [result for result in run["results"] if "partialFingerprints" in result]
    assert [result["level"] for result in of_findings] == ["warning", "note"]
    region = of_findings[0]["locations"][0]["physicalLocation"]["region"]
    assert region == {"startLine": 6, "startColumn": 5, "endLine": 6, "endColumn": 16}  # one-based, the end excluded
    assert "→ Do not." in of_findings[0]["message"]["text"]
    assert len({result["partialFingerprints"]["irscopeFinding/v1"] for result in of_findings}) == 2
    assert [each["executionSuccessful"] for each in run["invocations"]] == [True, True]


def test_sarif_names_files_as_uris() -> None:
    """And its messages have no links of a script's."""
    text = written("sarif", CHECKS["hostile"])
    uris = re.findall(r'"uri": "([^"]*)"', text)
    assert uris and all(re.fullmatch(r"[\w/.:%-]+", uri) for uri in uris), uris
    messages = re.findall(r'"message": {\s*"text": "(.*)"', text)
    assert len(messages) > 3 and not [said for said in messages if re.search(r"(?<!\\)\]\(", said)], messages


def commands(text: str) -> list[str]:
    """The lines that a runner of GitHub's obeys: its reader also ends lines at a carriage return."""
    return [line for line in re.split(r"\r\n|\r|\n", text) if line.lstrip().startswith("::") or "##[" in line]


def test_github_has_one_command_for_each_finding_and_for_each_bound() -> None:
    found = commands(written("github", CHECKS["findings"]))
    assert [re.match(r"::(\w+) ", line)[1] for line in found] == ["error"] * 3  # type: ignore[index]
    assert found[0] == (
        "::error file=/home/me/model.py,line=6,endLine=6,col=5,endColumn=16,title=Graph break GB0059::"
        "Graph break: it cannot be traced.%0A→ Do not.%0A→ Or do."
    )


def test_symbols_are_said_in_each_format() -> None:
    facts = SymbolFacts("s7", "5", "L['x'].size()[0]", 2, None)
    check = a_check(a_report(a_finding(symbols=(facts,))))
    assert "%0As7 is L['x'].size()[0]: 5 in this compile, 2 to ∞%0A→ Do not." in written("github", check)
    for name in ("text", "junit", "sarif"):
        assert re.search(r"s7 is L\\*\['x'\\*\].*: 5 in this compile, 2 to ", written(name, check)), name


def test_github_obeys_nothing_that_a_script_has_named() -> None:
    text = written("github", CHECKS["hostile"])
    found = commands(text)
    assert [re.match(r"::(\w+) file=", line)[1] for line in found] == ["error", "error", "error", "warning"]  # type: ignore[index]
    assert "file=/home/me/a%2Cb%3Ac%25%0A%3A%3Aerror%3A%3A.py," in found[0]
    assert "%250A::set-env" in found[0]
    assert not re.search("[\x00-\x09\x0b-\x1f\u202e]", text)


@pytest.mark.parametrize("cut", range(1, 12))
def test_github_obeys_nothing_that_a_script_prints(cut: int, capsys: pytest.CaptureFixture[str]) -> None:
    quoted, data = Quoted(), "a\r::error::x\n  ::add-mask::é\r\n##[group]y\x85::stop-commands::z".encode()
    for at in range(0, len(data), cut):
        quoted("stdout", data[at : at + cut])
    quoted("stderr", b"e" * 20_000)
    quoted.end_line()
    printed = capsys.readouterr().err
    assert commands(printed) == []
    assert "::add-mask::é" in printed and printed.count("e" * 10) > 100


@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
def test_junit_counts_what_it_has(check: Check) -> None:
    root = ElementTree.fromstring(written("junit", check))
    assert root.tag == "testsuites" and len(root) == len(check.scripts)
    for tag, key in (("testcase", "tests"), ("failure", "failures"), ("error", "errors")):
        assert int(root.get(key, "-1")) == len(root.findall(f".//{tag}"))
        for suite in root:
            assert int(suite.get(key, "-1")) == len(suite.findall(f".//{tag}"))
    bad = root.findall(".//failure") + root.findall(".//error")
    assert bool(bad) is (check.verdict is not Verdict.CLEAN)
    assert all(case.get("classname") and case.get("name") for case in root.iter("testcase"))


def test_junit_says_where_and_what_to_do() -> None:
    root = ElementTree.fromstring(written("junit", CHECKS["findings"]))
    failure = root.find(".//failure[@type='graph-break']")
    assert failure is not None and failure.text is not None
    assert failure.text.startswith("/home/me/model.py:6:5\n") and "→ Or do." in failure.text


@pytest.mark.parametrize("name", FORMATS)
def test_no_format_lets_a_name_steer_a_terminal(name: str) -> None:
    assert not re.search("[\x00\x1b\u202e]", written(name, CHECKS["hostile"]))


def test_verdicts() -> None:
    verdicts = {name: check.verdict.value for name, check in CHECKS.items()}
    assert verdicts == {
        "clean": "clean", "findings": "findings", "failed": "script-failed", "notebook": "findings", "hostile": "script-failed",
    }  # fmt: skip
    assert [CHECKS[name].exit_code for name in ("clean", "findings", "failed")] == [0, 1, 4]
    unable = a_report(outcome=an_outcome(kind=OutcomeKind.ENVIRONMENT_ERROR))
    assert a_check(unable, a_report(outcome=an_outcome()), a_report(a_finding())).exit_code == 3
    failed = a_report(outcome=an_outcome(kind=OutcomeKind.BUDGET, limit=Limit.SECONDS))
    assert a_check(a_report(a_finding()), failed).exit_code == 4
    assert a_check(a_report(outcome=an_outcome(kind=OutcomeKind.BUDGET, limit=Limit.STEADY_STATE))).exit_code == 0


@pytest.mark.parametrize(
    ("limits", "exceeded"),
    [
        ({"max_graphs": 1, "max_recompiles": 1, "max_kernels": 1, "max_compile_seconds": 1.25}, []),
        ({"max_graphs": 0}, ["max_graphs"]),
        ({"max_recompiles": 0}, ["max_recompiles"]),
        ({"max_kernels": 0, "max_compile_seconds": 1.2}, ["max_kernels", "max_compile_seconds"]),
        ({"max_graph_breaks": 0}, []),
    ],
)
def test_bounds(limits: dict[str, float], exceeded: list[str]) -> None:
    (script,) = a_check(a_report(), **limits).scripts
    assert [each.name for each in script.exceeded] == exceeded
    assert script.verdict is (Verdict.FINDINGS if exceeded else Verdict.CLEAN)


def test_a_recompilation_that_is_hidden_is_not_counted() -> None:
    report = a_report(dataclasses.replace(RECOMPILED, compiles=("0/0",)))
    shown = dataclasses.replace(report, findings=())
    assert judged("a.py", report, shown, DEFAULT_FAIL_ON, {"max_recompiles": 0}).verdict is Verdict.CLEAN
    assert judged("a.py", report, report, ("none",), {"max_recompiles": 0}).verdict is Verdict.FINDINGS


@pytest.mark.parametrize(
    ("fail_on", "break_fails", "recompilation_fails"),
    [("graph-break", True, False), ("GB0059", True, False), ("error", False, False), ("warning", True, False),
     ("information", True, True), ("recompilation,error", False, True), ("none", False, False)],
)  # fmt: skip
def test_what_fails(fail_on: str, break_fails: bool, recompilation_fails: bool) -> None:
    names = read_fail_on(fail_on)
    assert (fails(a_finding(), names), fails(RECOMPILED, names)) == (break_fails, recompilation_fails)


@pytest.mark.parametrize("text", ["graph-brake", "none,graph-break", "", " , "])
def test_names_that_are_not_there(text: str) -> None:
    with pytest.raises(ValueError, match=r"graph-break\?|names no kinds"):
        read_fail_on(text)


def test_the_lane_that_is_needed() -> None:
    assert lane_for(DEFAULT_FAIL_ON, ["max_graphs", "max_recompiles"]) is Lane.FAST
    assert lane_for(DEFAULT_FAIL_ON, ["max_kernels"]) is Lane.DEEP
    assert lane_for(["missed-fusion"], []) is Lane.DEEP
