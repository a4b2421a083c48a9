"""What people say about findings: comments that ignore one, severities of their own, a baseline."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from facts import a_compile, a_finding, a_kernel, a_range, an_outcome
from irscope.findings.control import UNUSED, comments_in, controlled, identity, read_baseline, write_baseline
from irscope.protocol import Finding, Lane, Origin, Outcome, OutcomeKind, Report, Severity
from irscope.usercode import source


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "model.py"


def write(file: Path, *lines: str) -> None:
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    source.read_source.cache_clear()


def found(file: Path, line: int, code: str = "GB0059", kind: str = "graph-break", end: int = 0) -> Finding:
    return a_finding(file=str(file), range=a_range(line, 0, end or line, 5), code=code, kind=kind)


def shown(
    file: Path,
    *findings: Finding,
    lane: Lane = Lane.DEEP,
    outcome: OutcomeKind = OutcomeKind.COMPLETED,
    **control: Any,
) -> list[tuple[str, int]]:
    """Code and line of what is left."""
    return [
        (finding.code, finding.range.start.line)
        for finding in controlled(report(file, *findings, outcome=outcome), lane, **control).findings
    ]


def report(file: Path, *findings: Finding, outcome: OutcomeKind = OutcomeKind.COMPLETED) -> Report:
    ended: Outcome = an_outcome(kind=outcome)
    return Report(1, "r1", str(file), "2.13.0", ended, (a_compile(file=str(file)),), findings, (), ())


# --- comments ---------------------------------------------------------------------------------------------------------


def test_a_comment_hides_its_code_on_its_line(file: Path) -> None:
    write(file, "a  # irscope: ignore[GB0059] it is only a log line", "b")
    assert shown(file, found(file, 1), found(file, 2)) == [("GB0059", 2)]


@pytest.mark.parametrize(
    "comment",
    ["# irscope: ignore", "#irscope:ignore", "# irscope: ignore[graph-break]", "# irscope: ignore[ GB0001 ,GB0059 ]", "# noqa  # irscope: ignore[GB0059]"],
)  # fmt: skip
def test_comments_that_hide_it(file: Path, comment: str) -> None:
    write(file, f"a  {comment}")
    assert shown(file, found(file, 1)) == []


@pytest.mark.parametrize(
    "comment", ["# irscope: ignore[GB0001]", "# irscope: ignore[gb0059]", "# irscope: ignore[no-such-code]"]
)
def test_a_comment_of_another_code_hides_nothing_and_says_so(file: Path, comment: str) -> None:
    write(file, f"a  {comment}")
    assert shown(file, found(file, 1)) == [("GB0059", 1), (UNUSED, 1)]


def test_what_looks_like_a_comment_in_a_string_is_none(file: Path) -> None:
    write(file, 'a = "# irscope: ignore"', "b = '''", "# irscope: ignore[GB0059]", "'''")
    assert comments_in(str(file)) == []
    assert shown(file, found(file, 1)) == [("GB0059", 1)]


def test_a_comment_hides_what_begins_or_ends_on_its_line(file: Path) -> None:
    write(file, "a(  # irscope: ignore", "  b,  # irscope: ignore", ")  # irscope: ignore")
    assert shown(file, found(file, 1, end=3)) == [(UNUSED, 2)]


def test_a_comment_in_another_file_hides_nothing(file: Path) -> None:
    other = file.with_name("other.py")
    write(other, "a")
    write(file, "a  # irscope: ignore")
    assert shown(file, found(other, 1)) == [("GB0059", 1), (UNUSED, 1)]


def test_an_unused_comment_is_a_finding_at_the_comment(file: Path) -> None:
    write(file, "größe = 1  # why # irscope: ignore[GB0059, GB0001] gone")
    (finding,) = controlled(report(file), Lane.FAST).findings
    assert (finding.kind, finding.code, finding.file) == (UNUSED, UNUSED, str(file))
    assert finding.range == a_range(1, 17, 1, 50)
    assert "[GB0059, GB0001]" in finding.message


SHARED = (
    "def used(x):",
    "    return x  # irscope: ignore[GB0059]",
    "",
    "def not_used(x):",
    "    return x  # irscope: ignore[GB0059]",
    "",
    "def inlined(x):",
    "    return x  # irscope: ignore[GB0059]",
)


def test_a_comment_that_the_run_did_not_reach_is_not_judged(file: Path) -> None:
    """A module that several scripts share: each calls a part of it."""
    write(file, *SHARED)
    script = file.with_name("script.py")
    write(script, "import model")
    used = a_compile(file=str(file), function="used", line=1)
    resumed = a_compile(file=str(file), function="torch_dynamo_resume_in_used_at_2", line=2)
    kernel = a_kernel(origins=(Origin(str(file), 8),))
    for compiles, kernels, lines in (
        ((), (), []),
        ((used,), (), [2]),
        ((resumed,), (), [2]),
        ((used,), (kernel,), [2, 8]),
    ):
        run = dataclasses.replace(report(script), compiles=compiles, kernels=kernels)
        shown = controlled(run, Lane.DEEP).findings
        assert [(f.code, f.file, f.range.start.line) for f in shown] == [(UNUSED, str(file), line) for line in lines]


def test_only_a_whole_run_can_judge_a_comment(file: Path) -> None:
    write(file, "a  # irscope: ignore[GB0059]")
    assert shown(file, outcome=OutcomeKind.BUDGET) == []
    assert shown(file, outcome=OutcomeKind.COMPLETED) == [(UNUSED, 1)]


@pytest.mark.parametrize(
    "codes",
    ["", "[fallback-no-lowering]", "[GB0059, performance-hint]", "[fx-graph-cache-bypass]", "[cache-miss]", "[missed-fusion]", "[cudagraph-skip]", "[InductorError]"],
)  # fmt: skip
def test_the_fast_lane_cannot_judge_what_only_the_deep_lane_finds(file: Path, codes: str) -> None:
    write(file, f"a  # irscope: ignore{codes}")
    assert shown(file, lane=Lane.FAST) == []
    assert shown(file, lane=Lane.DEEP) == [(UNUSED, 1)]


def test_a_file_that_does_not_parse_has_the_comments_before_the_fault(file: Path) -> None:
    write(file, "a  # irscope: ignore", "b = '''")
    assert len(comments_in(str(file))) == 1
    assert comments_in(str(file.with_name("missing.py"))) == []


# --- severities -------------------------------------------------------------------------------------------------------


def severities(file: Path, wanted: dict[str, str], *findings: Finding) -> list[str]:
    return [f.severity.value for f in controlled(report(file, *findings), Lane.DEEP, wanted).findings]


def test_a_code_goes_before_its_kind(file: Path) -> None:
    write(file, "a", "b")
    findings = (found(file, 1), found(file, 2, "GB0001"))
    assert severities(file, {}, *findings) == [Severity.WARNING.value] * 2
    assert severities(file, {"graph-break": "error"}, *findings) == ["error", "error"]
    assert severities(file, {"graph-break": "error", "GB0001": "hint"}, *findings) == ["error", "hint"]
    assert severities(file, {"graph-break": "off", "GB0001": "information"}, *findings) == ["information"]
    assert severities(file, {"GB0059": "loud"}, *findings) == ["warning", "warning"]


def test_unused_comments_have_a_severity_too(file: Path) -> None:
    write(file, "a  # irscope: ignore[GB0059]")
    assert severities(file, {}) == ["hint"]
    assert severities(file, {UNUSED: "off"}) == []


def test_what_is_switched_off_still_uses_its_comment(file: Path) -> None:
    write(file, "a  # irscope: ignore[GB0059]")
    assert severities(file, {"GB0059": "off"}, found(file, 1)) == []


# --- baseline ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def baseline(file: Path) -> str:
    return str(file.with_name("baseline.json"))


def test_what_is_known_is_not_shown_and_what_is_new_is(file: Path, baseline: str) -> None:
    write(file, "print(1)", "print(2)")
    write_baseline(baseline, [found(file, 1)])
    known = read_baseline(baseline)
    assert shown(file, found(file, 1), found(file, 2), baseline=known) == [("GB0059", 2)]
    assert shown(file, found(file, 1, "GB0001"), baseline=known) == [("GB0001", 1)]


def test_a_line_that_moved_or_was_indented_is_still_known(file: Path, baseline: str) -> None:
    write(file, "print(1)")
    write_baseline(baseline, [found(file, 1)])
    write(file, "import torch", "", "if True:", "    print(1)")
    assert shown(file, found(file, 4), baseline=read_baseline(baseline)) == []
    write(file, "print(3)")
    assert shown(file, found(file, 1), baseline=read_baseline(baseline)) == [("GB0059", 1)]


def test_a_third_of_two_known_ones_is_new(file: Path, baseline: str) -> None:
    write(file, "print(1)", "print(1)", "print(1)")
    write_baseline(baseline, [found(file, 1), found(file, 2)])
    known = read_baseline(baseline)
    assert list(known.values()) == [2]
    assert shown(file, found(file, 1), found(file, 2), found(file, 3), baseline=known) == [("GB0059", 3)]
    assert known == read_baseline(baseline)  # a report does not use it up


def test_a_comment_goes_before_the_baseline(file: Path, baseline: str) -> None:
    write(file, "print(1)  # irscope: ignore[GB0059]", "print(1)  # irscope: ignore[GB0059]")
    write_baseline(baseline, [found(file, 1)])
    assert shown(file, found(file, 1), baseline=read_baseline(baseline)) == [(UNUSED, 2)]


def test_a_baseline_is_sorted_text_that_people_can_merge(file: Path, baseline: str) -> None:
    write(file, "print('é')", "a")
    write_baseline(baseline, [found(file, 2), found(file, 1)])
    text = Path(baseline).read_text(encoding="utf-8")
    assert text.endswith("}\n") and "é" in text
    assert list(json.loads(text)["findings"]) == sorted(identity(found(file, line)) for line in (1, 2))


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"irscope-baseline": 2, "findings": {}}', '{"irscope-baseline": 1}', '{"irscope-baseline": 1, "findings": {"a": "x"}}', '{"irscope-baseline": 1, "findings": []}']
)  # fmt: skip
def test_another_file_is_no_baseline(baseline: str, text: str) -> None:
    Path(baseline).write_text(text)
    with pytest.raises(LookupError, match="--write-baseline"):
        read_baseline(baseline)


def test_a_missing_baseline_says_how_to_write_one(baseline: str) -> None:
    with pytest.raises(LookupError, match="--write-baseline"):
        read_baseline(baseline)


@pytest.mark.parametrize("count", ["1e400", "NaN", "[]", '"many"', "1" * 5000])
def test_a_baseline_with_a_count_that_is_none_is_refused(count: str, tmp_path: Path) -> None:
    path = tmp_path / "baseline.json"
    path.write_text('{"irscope-baseline": 1, "findings": {"x": @}}'.replace("@", count))
    with pytest.raises(LookupError, match="is not an irscope baseline"):
        read_baseline(str(path))
