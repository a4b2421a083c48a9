"""What trials in the background say of the fixes that are offered, and those that go together."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator, Sequence

from irscope.driver.fixing.candidates import Candidate
from irscope.driver.hints import TriedHint, tried_hints
from irscope.driver.trials.proving import Status
from irscope.findings.registry import kind_of
from irscope.protocol import Finding, Fix
from irscope.vocabulary import units
from irscope.vocabulary.records import dataclass
from lsprotocol import types

from irscope_server.base import words
from irscope_server.base.texts import FileKey, file_key
from irscope_server.language.context import SourceContext
from irscope_server.language.edits import Changes, placed_together, why_not_placed, workspace_edit
from irscope_server.language.views import PlacedFinding
from irscope_server.running.proofs import Combined

_MOST_REASONS = 3
_NO_TIME = "not tried: no time was left, and the setting `irscope.fixes.trySeconds` gives more"
_NO_REPAIR = "repairs nothing: plain Python, same outputs"


@dataclass(frozen=True)
class Offer:
    """A fix as it is offered; without a status if it was not tried."""

    fix: Fix
    status: Status | None = None
    does: str = ""
    """What a verified one does: ``1 break fewer, 1 graph (was 2), same outputs``."""

    @property
    def is_preferred(self) -> bool:
        """Whether one key may apply it."""
        return self.status is Status.VERIFIED and self.fix.repairs

    def title(self, code: str) -> str:
        """What the menu shows: first what was proven, since long titles are cut off at their ends.

        ``Verified: Keep it a tensor (GB0124: 1 break fewer, same outputs)``
        """
        label = "Verified: " if self.is_preferred else "Not proven: " if self.status and self.fix.repairs else ""
        return f"{label}{self.fix.title} ({': '.join(filter(None, [code, self.does]))})"


def offered(context: SourceContext, placed: PlacedFinding) -> Iterator[Offer]:
    """The fixes of a finding, and what is known about each.

    Verified ones come first, and what repairs nothing last.  What was disproven is left out, and so is a change of the
    finding's own of which another form was tried.
    """
    tried = context.proofs.of_finding(placed.run, placed.finding)
    candidates = tried.candidates if tried is not None else ()
    were_tried = {one.fix.first.identity for one in candidates}
    shown = [one for one in candidates if one.proof.status is not Status.DISPROVEN]
    yield from (_offer(placed, one) for one in shown if one.fix.repairs)
    yield from (Offer(fix) for fix in placed.finding.fixes if fix.identity not in were_tried)
    yield from (_offer(placed, one) for one in shown if not one.fix.repairs)


def hints_of(context: SourceContext, placed: PlacedFinding) -> list[TriedHint]:
    """The hints of a finding, as trials left them: what helps first."""
    return tried_hints(placed.finding, context.proofs.of_finding(placed.run, placed.finding))


def untried(context: SourceContext, run: str) -> str:
    """What is said of the hints that the trials of a run have not reached."""
    if context.proofs.is_trying(run):
        return "being tried"
    return _NO_TIME if context.proofs.of_run(run).is_whole else "not tried"


def _offer(placed: PlacedFinding, one: Candidate) -> Offer:
    file = "" if file_key(one.file) == file_key(placed.finding.file) else one.file
    return Offer(dataclasses.replace(one.fix, file=file), one.proof.status, _does(one))


def _does(one: Candidate) -> str:
    if one.proof.status is not Status.VERIFIED:
        return ""
    if not one.fix.repairs:
        return _NO_REPAIR
    graphs = one.proof.gain.graphs if one.proof.gain is not None else (0, 0)
    changed = [_graphs(graphs)] if graphs[0] != graphs[1] else []
    return ", ".join([_fewer(one.proof.removes), *changed, "same outputs"])


def _graphs(graphs: tuple[int, int]) -> str:
    """``1 graph (was 2)``."""
    return f"{units.count(graphs[1], 'graph')} (was {graphs[0]})"


def _fewer(removed: Sequence[Finding]) -> str:
    """``1 break fewer``; findings of several kinds are just findings."""
    kinds = {one.kind for one in removed}
    nouns = kind_of(kinds.pop()).short if len(kinds) == 1 else ("finding",)
    return f"{units.count(len(removed), *nouns)} fewer"


def gain_text(context: SourceContext, placed: PlacedFinding) -> str:
    """What the best fix that was verified does, as Markdown: findings, graphs, compile time, and what was compared.
    Empty if there is none."""
    tried = context.proofs.of_finding(placed.run, placed.finding)
    best = tried.verified if tried is not None else None
    if best is None:
        return ""
    parts = [_fewer(best.proof.removes)]
    if best.proof.gain is not None:
        before, after = map(units.duration, best.proof.gain.seconds)
        parts += [_graphs(best.proof.gain.graphs), f"traced in {after} (was {before})"]
    lines = [f"**Verified fix**: {words.markdown(best.fix.title)}", f"{', '.join(parts)}."]
    if best.proof.checks:
        lines.append(f"The same: {words.markdown('; '.join(best.proof.checks))}.")
    return "  \n".join([*lines, *([words.markdown(best.fix.caveat)] if best.fix.caveat else [])])


def fixes_together(context: SourceContext, found: Sequence[PlacedFinding]) -> list[types.CodeAction]:
    """Verified fixes in one step: all of a kind, all of a run, and all of the workspace."""
    actions: list[types.CodeAction] = []
    here = {file_key(one.finding.file) for one in found}
    for run in dict.fromkeys(one.run for one in found):
        proven = context.proofs.of_run(run)
        codes = {one.finding.code for one in found if one.run == run}
        for code, combined in proven.combined.items():
            wanted = len(combined.fixed) > 1 and (code in codes or not code)
            changes = placed_together(context, combined) if wanted else None
            if changes is not None:
                what = f"all {code}" if code else "everything that is proven"
                same = {one.code for one in combined.fixed}
                what = f"all {next(iter(same))}" if not code and len(same) == 1 else what
                title = f"Fix {what} in {_where(combined, here)} ({len(combined.fixed)} verified)"
                actions.append(_action(title, workspace_edit(context, changes)))
    return [*actions, *(_in_workspace(context) if found else ())]


def _in_workspace(context: SourceContext) -> Iterator[types.CodeAction]:
    """What is proven of all scripts that were run, as one edit; what is left out is named with the reason."""
    apart = _apart([proven.combined[""] for proven in context.proofs.newest() if "" in proven.combined])
    reasons = [why_not_placed(context, combined) for combined in apart]
    placed = [combined for combined, why in zip(apart, reasons, strict=True) if not why]
    if len(apart) < 2 or not placed:
        return
    whole: Changes = {}
    for combined in placed:
        whole.update(placed_together(context, combined) or {})
    verified = _number_fixed(placed)
    counts, note = [f"{verified} verified"], ""
    if len(placed) < len(apart):
        note = words.one_line(f"not included: {_listed([why for why in reasons if why])}")
        counts.append(f"{_number_fixed(apart) - verified} left out" if context.reviews_edits else note)
    title = f"Fix everything that is proven in the workspace ({'; '.join(counts)})"
    review = types.ChangeAnnotation(title, False, note.capitalize() or None) if context.reviews_edits else None
    yield _action(title, workspace_edit(context, whole, review))


def _number_fixed(all_combined: Sequence[Combined]) -> int:
    return sum(len(combined.fixed) for combined in all_combined)


def _listed(reasons: Sequence[str]) -> str:
    more = len(reasons) - _MOST_REASONS
    return ", ".join([*reasons[:_MOST_REASONS], *([f"and {more} more"] if more > 0 else [])])


def _where(combined: Combined, here: set[FileKey]) -> str:
    """``this file``, the name of another one, or how many."""
    if len(combined.edits) != 1:
        return units.count(len(combined.edits), "file")
    (path,) = combined.edits
    return "this file" if file_key(path) in here else words.one_line(os.path.basename(path))


def _apart(all_runs: Sequence[Combined]) -> list[Combined]:
    """The runs that change files that none before has changed; the newest first."""
    chosen, files = list[Combined](), set[FileKey]()
    for one in reversed(all_runs):
        keys = {file_key(path) for path in one.edits}
        if keys and not keys & files:
            chosen.append(one)
            files |= keys
    return chosen


def _action(title: str, edit: types.WorkspaceEdit) -> types.CodeAction:
    return types.CodeAction(title=title, kind=types.CodeActionKind.QuickFix, edit=edit)
