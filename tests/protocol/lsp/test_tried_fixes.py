"""Fixes that the server tries after a run, and what the editor then offers."""

from __future__ import annotations

import asyncio
import dataclasses
from pathlib import Path

import pytest
from irscope.driver.fixing.candidates import Candidate, Tried
from irscope.driver.trials.proving import Gain, Proof, Status
from irscope.fixing.proposals import chained
from irscope.protocol import Edit, Finding, Fix, FixMethod, Position, Range
from irscope_server.language.tried_fixes import _apart, gain_text, offered
from irscope_server.language.views import PlacedFinding
from irscope_server.running.proofs import Combined, Proofs, Proven
from irscope_server.running.workers import Workers
from lsp_editor import SHARED, AtWork, Editor, edits_in
from lsprotocol import types
from made import finding
from support import Instant, late

SOURCE = """\
import torch

@torch.compile
def f(x):
    if x.sum() > 0:
        x = x + 1
    if x.mean() > 0:  # the second
        x = x * 2
    return x * x.max().item()

f(torch.randn(4))
"""
FIXED = """\
import torch

@torch.compile
def f(x):
    x = torch.where(x.sum() > 0, x + 1, x)
    # the second
    x = torch.where(x.mean() > 0, x * 2, x)
    return x * x.max().detach()

f(torch.randn(4))
"""


async def _actions(editor: Editor, uri: str, line: int) -> list[types.CodeAction]:
    at = types.Range(types.Position(line, 10), types.Position(line, 10))
    params = types.CodeActionParams(types.TextDocumentIdentifier(uri), at, types.CodeActionContext([]))
    found = await editor.client.text_document_code_action_async(params) or []
    return [one for one in found if isinstance(one, types.CodeAction)]


@SHARED
async def test_what_is_proven_is_preferred_and_can_be_applied_at_once(at_work: AtWork, tmp_path: Path) -> None:
    editor = await at_work({"fixes": {"trySeconds": 100}, "run": {"cwd": str(tmp_path)}})
    script = tmp_path / "branches.py"
    script.write_text(SOURCE)
    uri = editor.open(script)
    begun = Instant()
    while not any("everything that is proven" in one.title for one in await _actions(editor, uri, 4)):
        assert not late(begun, 120), [one.title for one in await _actions(editor, uri, 4)]
        await asyncio.sleep(0.1)
    actions = await _actions(editor, uri, 4)
    assert actions[0].title.startswith("Verified: Compute both sides and choose by value (GB0170: 1 break fewer")
    assert actions[0].title.endswith("same outputs)")
    assert [one.is_preferred for one in actions if one.is_preferred] == [True]
    titles = {one.title: one for one in actions}
    assert "Fix all GB0170 in this file (2 verified)" in titles
    whole = titles["Fix everything that is proven in this file (3 verified)"]
    lines = SOURCE.split("\n")
    for edit in sorted(edits_in(whole)[uri], key=lambda one: one.range.start.line, reverse=True):
        lines[edit.range.start.line : edit.range.end.line] = edit.new_text.split("\n")[:-1]
    assert "\n".join(lines) == FIXED


# --- without a run ----------------------------------------------------------------------------------------------------


class _Context:
    def __init__(self, proven: Proven) -> None:
        self.proofs = Proofs(Workers(), enabled=False)
        self.proofs._contents["run"] = "content"
        self.proofs._known["content"] = proven


def _fix(name: str) -> Fix:
    return Fix(name, "", (Edit(Range(Position(1, 0), Position(1, 0)), name),))


def _chain(*names: str) -> Fix:
    return chained([_fix(name) for name in names], ())


LEFT_OUT = dataclasses.replace(_fix("left out"), method=FixMethod.HELPER_TO_PYTHON)


def _tried(found: Finding, *known: tuple[Fix, Status]) -> Proven:
    gain = Gain((2, 1), (1.0, 0.5))
    candidates = tuple(Candidate(fix, found.file, Proof(status, "", (found,), (), (), gain)) for fix, status in known)
    return Proven({found.cause: Tried(found, candidates)})


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        ((), [("a (GB0170)", False), ("b (GB0170)", False)]),
        (
            ((_fix("b"), Status.VERIFIED), (_fix("a"), Status.DISPROVEN)),
            [("Verified: b (GB0170: 1 break fewer, 1 graph (was 2), same outputs)", True)],
        ),
        (((_fix("a"), Status.UNPROVEN), (_fix("b"), Status.DISPROVEN)), [("Not proven: a (GB0170)", False)]),
        (
            ((_chain("a", "more"), Status.VERIFIED),),
            [
                ("Verified: a; then more (GB0170: 1 break fewer, 1 graph (was 2), same outputs)", True),
                ("b (GB0170)", False),
            ],
        ),
        (
            ((LEFT_OUT, Status.VERIFIED), (_fix("a"), Status.DISPROVEN), (_fix("b"), Status.DISPROVEN)),
            [("left out (GB0170: repairs nothing: plain Python, same outputs)", False)],
        ),
    ],
)
def test_what_trials_say_of_fixes(known: tuple[tuple[Fix, Status], ...], expected: list[tuple[str, bool]]) -> None:
    found = finding("script.py", 1, 0, 1, code="GB0170", fixes=(_fix("a"), _fix("b")))
    placed = PlacedFinding(found, "run", 0, 0, 0, 1)
    context = _Context(_tried(found, *known) if known else Proven())
    offers = list(offered(context, placed))  # type: ignore[arg-type]
    assert [(one.title("GB0170"), one.is_preferred) for one in offers] == expected


def test_a_change_of_which_a_better_form_was_tried_is_offered_once() -> None:
    own = dataclasses.replace(_fix("a"), method=FixMethod.CHOOSE_BY_VALUE)
    found = finding("script.py", 1, 0, 1, code="GB0170", fixes=(own, _fix("b")))
    other = dataclasses.replace(own, edits=_fix("the same, with comments").edits)
    tried = Tried(found, (Candidate(other, found.file, Proof(Status.UNPROVEN, "")),))
    context, placed = _Context(Proven({found.cause: tried})), PlacedFinding(found, "run", 0, 0, 0, 1)
    assert [offer.fix for offer in offered(context, placed)] == [other, _fix("b")]  # type: ignore[arg-type]


@pytest.mark.parametrize("status", Status)
def test_the_hover_says_what_a_verified_fix_gains(status: Status) -> None:
    found = finding("script.py", 1, 0, 1, code="GB0170")
    proven = _tried(found, (_fix("keep it"), status))
    context, placed = _Context(proven), PlacedFinding(found, "run", 0, 0, 0, 1)
    text = gain_text(context, placed)  # type: ignore[arg-type]
    expected = "**Verified fix**: keep it  \n1 break fewer, 1 graph (was 2), traced in 500 ms (was 1.0 s)."
    assert text == (expected if status is Status.VERIFIED else "")
    assert gain_text(_Context(Proven()), placed) == ""  # type: ignore[arg-type]


def test_a_workspace_edit_changes_each_file_for_one_script_only() -> None:
    edit = _fix("x").edits
    first, second, third = (Combined({name: edit}, (), {}) for name in ("/a.py", "/b.py", "/a.py"))
    assert _apart([first, second, third]) == [third, second]
