"""What `irscope fix` says of fixes that were tried, where it is not what the whole command shows."""

from __future__ import annotations

from pathlib import Path

import pytest
from irscope.cli.fixing import _lines, _patch_files, _write_patches, _written
from irscope.driver.fixing.candidates import Candidate, Patch, Together, Tried
from irscope.driver.trials.proving import Gain, Proof, Status
from irscope.protocol import Edit, Finding, Fix, Position, Range, Severity

PLACE = Range(Position(1, 0), Position(1, 1))
BREAK = Finding("graph-break", "GB0170", Severity.WARNING, "broken", "", (), None, "a.py", PLACE, 1, ())
PROVEN = Proof(Status.VERIFIED, "", (BREAK,), (), ("2 tensors", "1 gradient"), Gain((2, 1), (1.0, 1.0)))
OPEN = Proof(Status.UNPROVEN, "Nothing was compared.")


def candidate(title: str, proof: Proof = PROVEN, caveat: str = "") -> Candidate:
    return Candidate(Fix(title, caveat, (Edit(PLACE, "1"),)), "a.py", proof)


def said(
    *tried: Tried, left_out: tuple[tuple[Finding, str], ...] = (), patches: dict[str, str] | None = None
) -> list[str]:
    fixed = tuple(one.finding for one in tried if one.finding not in dict(left_out))
    return list(_lines(list(tried), Together({}, None, fixed, left_out), {}, patches or {}))


def test_a_verified_fix_says_its_cost_and_what_was_compared() -> None:
    lines = said(Tried(BREAK, (candidate("Choose by value", caveat="Both sides are computed."),)))
    assert lines == [
        "a.py:1: GB0170 broken",
        "  verified: Choose by value.",
        "    note: Both sides are computed.",
        "    gain: 1 finding fewer, 1 graph (was 2)",
        "    same results as without compile: 2 tensors; 1 gradient",
        "1 of 1 findings have a verified fix.",
    ]


def test_a_fix_that_is_not_in_the_diff_says_why() -> None:
    lines = said(Tried(BREAK, (candidate("Choose by value"),)), left_out=((BREAK, "There was no time left."),))
    assert "    not in the diff: There was no time left." in lines
    assert lines[-1] == 'The diff has 0 fixes of 1: see "not in the diff" above.'


def test_what_is_unproven_says_what_to_do() -> None:
    lines = said(Tried(BREAK, (candidate("Keep it a tensor", OPEN),)))
    assert lines[1] == "  unproven: Keep it a tensor. Nothing was compared."
    assert lines[-1].startswith("unproven: ") and "Test it yourself" in lines[-1]


def test_a_patch_of_a_library_says_what_was_proven_and_its_file(tmp_path: Path) -> None:
    change = Fix("Choose by value", "Both sides.", (Edit(PLACE, "1"),))
    patch = Patch(change, "/lib/site-packages/some/a.py", PROVEN, "x\n")
    tried = Tried(BREAK, (), (patch,))
    files = _write_patches(str(tmp_path), [tried])
    lines = said(tried, patches=files)
    assert lines[1:6] == [
        "  verified in the library: Choose by value (some/a.py).",
        "    note: Both sides.",
        "    gain: 1 finding fewer, 1 graph (was 2)",
        "    same results as without compile: 2 tensors; 1 gradient",
        f"    patch: {tmp_path / '0001-a.patch'}",
    ]
    (text,) = (text for _, _, text in _patch_files([tried]))
    assert (tmp_path / "0001-a.patch").read_text() == text


def test_what_was_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert list(_written([str(tmp_path / "a.py")], ["patches/0001-a.patch"])) == [
        "Written: a.py, patches/0001-a.patch."
    ]
    assert list(_written([], [])) == ["Nothing was written: there is no verified change."]
