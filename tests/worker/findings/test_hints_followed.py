"""Each hint on a recompilation is followed to the letter: the recompilations go away, or as many remain as it says."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from hint_cases import CASES, HintCase
from irscope.protocol import Finding, Severity, causes_only
from script_runs import run_all

Found = Mapping[str, list[Finding]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hints")


@pytest.fixture(scope="module")
def before(folder: Path) -> Found:
    return recompilations(folder, "before", {entry.name: entry.source for entry in CASES})


@pytest.fixture(scope="module")
def after(folder: Path, before: Found) -> Found:
    hints = [(entry, hints_of(entry, before)) for entry in CASES]
    edited = {entry.name: entry.follow(entry.source, found[0][1]) for entry, found in hints if found}
    return recompilations(folder, "after", edited)


def recompilations(folder: Path, name: str, sources: Mapping[str, str]) -> Found:
    """The recompilations in each script; all of them are run, without an error."""
    paths = {}
    for case, source in sources.items():
        paths[case] = folder / f"{name}_{case}.py"
        paths[case].write_text(source, encoding="utf-8")
    found = run_all(folder, name, list(paths.values())).findings("recompilation")
    return {case: [finding for finding in found if finding.file == str(path)] for case, path in paths.items()}


def hints_of(entry: HintCase, found: Found) -> list[tuple[Finding, str]]:
    """The hints that the case is about, with their findings; there may be others."""
    mine = [finding for finding in found[entry.name] if finding.code == entry.code]
    return [(finding, hint) for finding in mine for hint in finding.hints or ("",) if entry.hint in hint]


@pytest.mark.parametrize("entry", CASES, ids=lambda entry: entry.name)
def test_hint(entry: HintCase, before: Found, after: Found) -> None:
    hints = hints_of(entry, before)
    assert hints, [(finding.code, finding.message, finding.hints) for finding in before[entry.name]]
    finding = hints[0][0]
    assert entry.said in finding.message
    assert all("kwargs[" not in hint and "args[" not in hint for hint in finding.hints)
    assert sum(each.count for each in before[entry.name]) >= max(1, entry.left)
    left = after[entry.name]
    assert sum(each.count for each in left) == entry.left, [each.message for each in left]


def test_one_change_in_several_functions_has_one_parent(before: Found) -> None:
    parent, *children = sorted(before["sizes_in_several_functions"], key=lambda finding: finding.compiles)
    assert (parent.severity, parent.count) == (Severity.INFORMATION, 1)
    assert len(children) == 2
    line = parent.range.start.line
    for child in children:
        assert child.severity is Severity.HINT
        assert child.hints == (f"Fix the recompilation on line {line}: it has the same cause.",)
        assert child.follows is not None
        assert (child.follows.file, child.follows.range) == (parent.file, parent.range)
        assert child.related == parent.related[:1]
    assert causes_only([*children, parent]) == [parent]
    assert [each.range for each in parent.related[1:]] == [child.range for child in children]


@pytest.mark.parametrize(
    ("case", "severity"),
    [
        ("train_and_eval", Severity.HINT),
        ("train_and_eval_without_no_grad", Severity.HINT),
        ("requires_grad", Severity.HINT),
        ("dtype", Severity.INFORMATION),
        ("size_positional", Severity.INFORMATION),
        ("growing_list_bounded", Severity.WARNING),
        ("counter", Severity.WARNING),
    ],
)
def test_what_is_bounded_is_less_severe_than_what_grows(case: str, severity: Severity, before: Found) -> None:
    assert severity in {finding.severity for finding in before[case]}
    assert Severity.WARNING not in {finding.severity for finding in before[case]} or severity is Severity.WARNING


def test_every_rule_is_followed() -> None:
    from irscope.findings.recompiling.advice import WORDS

    assert {entry.code for entry in CASES} == set(WORDS)
