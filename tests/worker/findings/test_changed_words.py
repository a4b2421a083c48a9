"""Sentences are never read: with every word of every finding and fix changed, the same fixes are proposed and tried."""

from __future__ import annotations

import dataclasses
import itertools
import string
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

import fix_rates
import pytest
from hint_cases import CASES
from irscope.driver.fixing.trying import Trying
from irscope.driver.trials.proving import Proof, Status
from irscope.fixing.proposals import proposals
from irscope.protocol import Finding, Fix, Report
from script_runs import run_all

T = TypeVar("T")

NAMES = (
    "context_lock", "deepcopy_list", "log_print", "recompile_float_argument", "recompile_grad_mode", "recompile_int_attribute",
    "recompile_two_inputs", "recompile_unrolled",
)  # fmt: skip
"""Scripts of the set with which fixes are measured."""
MADE_OF_FACTS = {
    "Compute the number before the compiled code, and pass it as a tensor",
    "Keep the number in a tensor",
    "Leave the function to Python, and compile what it calls",
    "Mark the sizes that vary, before the call that compiled again",
    "Pad the size to a multiple of 8 before the call",
    "Pass the number as a tensor",
    "Run one graph with gradients, and detach its result where they are off",
}
LIBRARY = "import torch\n\n\ndef decided(x):\n    if x.sum() > 0:\n        return x + 1\n    return x - 1\n"
CALLS = """\
import sys; sys.path.append({path!r})
import torch, deciding

torch.compile(lambda x: deciding.decided(x) * 2)(torch.ones(3))
"""
SENTENCES = ("message", "explanation", "hints", "title", "caveat")
_OTHERS = str.maketrans(
    "".join((string.ascii_lowercase, string.ascii_uppercase, string.digits)),
    "".join(signs[1:] + signs[0] for signs in (string.ascii_lowercase, string.ascii_uppercase, string.digits)),
)


def changed(value: T) -> T:
    """The same with another letter for each letter of all sentences in it, and another digit for each digit."""
    if isinstance(value, tuple):
        return tuple(changed(item) for item in value)  # type: ignore[return-value]
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        return value
    parts = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return dataclasses.replace(
        value, **{name: _other(part) if name in SENTENCES else changed(part) for name, part in parts.items()}
    )


def _other(words: Any) -> Any:
    return words.translate(_OTHERS) if isinstance(words, str) else tuple(map(_other, words))


class AnyProver:
    """Gives trials these ends in turn, whatever is tried.  Before one that is verified the same finding comes again."""

    def __init__(self, report: Report, finding: Finding, ends: Sequence[Status]) -> None:
        self.original, self._finding, self._ends = report, finding, itertools.cycle(ends)
        self._is_chain = len(ends) > 1

    def text_of(self, path: str) -> str:
        return Path(path).read_text(encoding="utf-8")

    def prove(self, texts: dict[str, str], finding: Finding) -> tuple[Proof, Any]:
        status = next(self._ends)
        adds = (self._finding,) if self._is_chain and status is Status.UNPROVEN else ()
        return Proof(status, "", (self._finding,), adds), SimpleNamespace(findings=(), compiles=())

    def both_sides(self, proof: Proof, before: dict[str, str], texts: dict[str, str]) -> Proof:
        return proof


def all_changed(finding: Finding, text: str) -> Sequence[Fix]:
    """Not the words that the finding's own fixes have: those are changed once."""
    return changed(changed(tuple(proposals(finding, text))))


def tried(
    finding: Finding, report: Report, ends: Sequence[Status], with_other_words: bool
) -> tuple[Sequence[Any], Sequence[Any]]:
    """What is tried for a finding, without its words, where trials end like that."""
    if with_other_words:
        finding, report = changed(finding), changed(report)
    prover: Any = AnyProver(report, finding, ends)
    with pytest.MonkeyPatch.context() as patch:
        for module in ("irscope.driver.fixing.trying", "irscope.fixing.workarounds"):
            patch.setattr(f"{module}.proposals", all_changed if with_other_words else proposals)
        made = Trying(prover, 100, patches=True).finding(finding)
    candidates = tuple((one.file, one.fix.edits, one.fix.repairs, len(one.fix.steps)) for one in made.candidates)
    return candidates, tuple((patch.file, patch.fix.edits) for patch in made.patches)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    folder = tmp_path_factory.mktemp("words")
    library = folder / "site-packages" / "deciding.py"
    library.parent.mkdir()
    library.write_text(LIBRARY)
    texts = {name: (fix_rates.SCRIPTS / f"{name}.py").read_text(encoding="utf-8") for name in NAMES}
    texts |= {case.name: case.source for case in CASES if case.name == "sizes_0_and_1"}
    texts["library"] = CALLS.format(path=str(library.parent))
    for name, text in texts.items():
        (folder / f"{name}.py").write_text(text.replace('if __name__ == "__main__":', "if True:"), encoding="utf-8")
    return run_all(folder, "all", [folder / f"{name}.py" for name in texts]).report


def test_the_same_is_proposed_whatever_the_words(report: Report) -> None:
    titles = set[str]()
    for finding in report.findings:
        text = Path(finding.file).read_text(encoding="utf-8")
        made, others = proposals(finding, text), proposals(changed(finding), text)
        assert changed(finding).message != finding.message
        assert [(fix.edits, fix.identity) for fix in made] == [(fix.edits, fix.identity) for fix in others]
        titles |= {fix.title for fix in made}
    assert titles >= MADE_OF_FACTS, MADE_OF_FACTS - titles


@pytest.mark.parametrize(
    ("ends", "steps"),
    [((Status.VERIFIED,), 0), ((Status.UNPROVEN,), 0), ((Status.UNPROVEN, Status.VERIFIED), 2)],
    ids=["verified", "unproven", "chains"],
)
def test_the_same_is_tried_whatever_the_words(report: Report, ends: Sequence[Status], steps: int) -> None:
    found = [tried(finding, report, ends, with_other_words=False) for finding in report.findings]
    assert [tried(finding, report, ends, with_other_words=True) for finding in report.findings] == found
    assert any(patches for _, patches in found)
    if Status.VERIFIED not in ends:
        assert not all(is_repair for candidates, _ in found for _, _, is_repair, _ in candidates)
    assert max(count for candidates, _ in found for *_, count in candidates) == steps
