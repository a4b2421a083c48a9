"""Recompilations of several functions for one change: the first one of a call is their parent, which has the fix.

A graph break cuts what is called into several functions, and each of them is compiled again for another size.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator
from dataclasses import field

from irscope.findings.moment import Known
from irscope.findings.recompiling.facts import Facts
from irscope.findings.recompiling.words import DYNAMIC
from irscope.protocol import Finding, FixMethod, Range, Related, Severity, carrying_out
from irscope.vocabulary.records import dataclass

NOTES = "parents-of-recompilations"
_MOST_NAMED = 3


@dataclass
class Parent:
    """The first recompilation of a call.

    Args:
        finding: It.
        frame: Its function, in PyTorch's numbers.
        changes: The sizes that changed: before, now.
        children: What was compiled again after it for the same change: by frame its title, as `Compile.title` gives it.
    """

    finding: Finding
    frame: str
    changes: set[tuple[int, int]]
    children: dict[str, str] = field(default_factory=dict)


def in_families(known: Known, finding: Finding, facts: Facts) -> Iterator[Finding]:
    """The finding, as a child if the same call has had one for the same change, and its parent with what it learnt."""
    if not facts.calls or facts.calls[-1].place is None:
        yield finding
        return
    place = facts.calls[-1].place
    parents: dict[tuple[str, Range], Parent] = known.notes.setdefault(NOTES, {})
    parent = parents.get((place.file, place.range))
    frame = finding.compiles[0].rpartition("/")[0]
    if parent is None or parent.frame == frame or _guarded_change(facts) not in parent.changes:
        parents[place.file, place.range] = Parent(finding, frame, _changes(facts))
        yield finding
        return
    compiled = known.compiles.get(finding.compiles[0])
    parent.children[frame] = compiled.title if compiled is not None else f"frame {frame}"
    yield _child(finding, parent.finding)
    yield _with_children(parent, finding)


def _child(finding: Finding, parent: Finding) -> Finding:
    line = f"line {parent.range.start.line}"
    if parent.file != finding.file:
        line += f" of {os.path.basename(parent.file)}"
    return dataclasses.replace(
        finding,
        severity=Severity.HINT,
        message=f"{_sentence(finding)} It follows from the recompilation on {line}, for the same change in the same call.",
        hints=(f"Fix the recompilation on {line}: it has the same cause.",),
        fixes=(),
        follows=Related(parent.file, parent.range, "the recompilation that it follows from"),
    )


def _with_children(parent: Parent, newest: Finding) -> Finding:
    """The parent, which names what was compiled again, and says where the newest of it is."""
    finding, count = parent.finding, len(parent.children)
    fixes = finding.fixes or newest.fixes
    dynamic = next((fix for fix in fixes if fix.method is FixMethod.DYNAMIC_SIZES), None)
    carried = {fix.hint: fix for fix in finding.fixes}
    own = [
        (hint, carried.get(index))
        for index, hint in enumerate(finding.hints)
        if DYNAMIC not in hint and finding.code != newest.code
    ]  # to mark the sizes of one function is not enough for all
    told = [(f"{DYNAMIC} makes every size dynamic from the start, in all {count + 1} compiled parts.", dynamic), *own]
    return dataclasses.replace(
        finding,
        count=0,  # it is known already; this adds to it
        message=f"{finding.message} The same change in this call also recompiled {_named(list(parent.children.values()))}.",
        hints=tuple(hint for hint, _ in told),
        related=(Related(newest.file, newest.range, _sentence(newest).removesuffix(".")),),
        fixes=carrying_out(fix for _, fix in told),
    )


def _named(titles: list[str]) -> str:
    """Each of a few, else the first of them and how many others: a change of one size may recompile a whole model."""
    shown = [f"`{title}`" for title in titles[:_MOST_NAMED]]
    if others := len(titles) - len(shown):
        shown.append(f"{others} more")
    return f"{'; '.join(shown[:-1])} and {shown[-1]}" if len(shown) > 1 else shown[0]


def _sentence(finding: Finding) -> str:
    """The first sentence of a finding's message, which says what changed."""
    return finding.message.partition(". ")[0].removesuffix(".") + "."


def _guarded_change(facts: Facts) -> tuple[int, int] | None:
    """The size that the guard watches, before and now, or a number that Python made of one: ``n = x.shape[0]``."""
    sizes, was, now = facts.guard.sizes, facts.guard.was, facts.now.text or ""
    if not sizes and was.isdecimal() and now.isdecimal():
        return int(was), int(now)
    return (sizes[0], sizes[1]) if sizes else None


def _changes(facts: Facts) -> set[tuple[int, int]]:
    """All sizes that are not what they were at an older compile."""
    found = {change} if (change := _guarded_change(facts)) is not None else set()
    now = facts.tensors
    for call in facts.calls[:-1]:
        for path, was in call.tensors.items():
            if path in now and len(now[path].sizes) == len(was.sizes):
                found |= {(a, b) for a, b in zip(was.sizes, now[path].sizes, strict=True) if a != b}
    return found
