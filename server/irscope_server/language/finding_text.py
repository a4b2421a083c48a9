"""A finding in words, for the hover: what to do, why it is so, what it costs, how the program came there."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence

from irscope.driver.hints import Standing, TriedHint
from irscope.findings.registry import kind_of
from irscope.protocol import Finding, Limit, Related, RelatedRole
from irscope.store.costs import cost_words
from irscope.usercode.notebooks import notebook_of
from irscope.vocabulary import units

from irscope_server.base import words
from irscope_server.language.views import PlacedFinding

_MOST_COMPILES = 8
_MOST_CALLS = 20
_LIMIT_NAMES = {Limit.SECONDS: "time", Limit.MEMORY: "memory", Limit.OUTPUT: "output"}


def finding_text(
    placed: PlacedFinding, hints: Sequence[TriedHint], untried: str, uri_of: Callable[[str], str], rich: bool
) -> str:
    """A finding as Markdown; the script's own text is never markup.

    Args:
        hints: Its hints, as they are known.
        untried: What is said if no trial has reached it.
        uri_of: Gives the URI of a file.
        rich: Whether the client shows the diagnostic beside it, and folds ``<details>``.
    """
    finding = placed.finding
    shown, calls = told_apart(placed.related, rich)
    parts = [
        "" if rich else _headline(finding),
        "\n".join(_hints(hints, untried)),
        words.markdown_blocks(finding.explanation) if finding.explanation else "",
        _cost(finding),
        *(f"*{note}*" for note in _notes(placed)),
        _folded(calls, uri_of) if rich else _stack(shown, uri_of),
    ]
    return "\n\n".join(part for part in parts if part)


def told_apart(related: Sequence[Related], rich: bool) -> tuple[list[Related], list[Related]]:
    """The related places that belong to the diagnostic, and those that only its hover has.

    A client that shows diagnostics at the pointer gets the nearest call there, and the stack above it in the hover.
    """
    calls = [each for each in related if each.role is RelatedRole.CALLER]
    above = calls[:-1] if rich else []
    return [each for each in related if each not in above], above


def cost_text(finding: Finding) -> str:
    """``2 extra graphs and 324 ms of compile time``; empty if it costs nothing that is known."""
    *others, last = cost_words(finding.cost) or [""]
    return f"{', '.join(others)} and {last}" if others else last


def _headline(finding: Finding) -> str:
    code = words.markdown(finding.code)
    if words.is_web_link(finding.link):
        code = f"[{code}]({finding.link.replace(' ', '%20').replace(')', '%29').replace('<', '%3C')})"
    return f"**{words.markdown(kind_of(finding.kind).label)}** {code}\n\n{words.markdown(finding.message)}"


def _hints(hints: Sequence[TriedHint], untried: str) -> list[str]:
    """What to do, what helps first; that nothing was tried is said once, with the reason if one is known."""
    if not hints:
        return []
    was_tried = any(hint.standing is not Standing.NOT_TRIED or hint.why for hint in hints)
    texts = [words.markdown_blocks(hint.text) + (f"\n\n{_said(hint)}" if was_tried else "") for hint in hints]
    head = "**What to do:**" if was_tried else f"**What to do** ({untried}):"
    return [f"{head} {texts[0]}"] if len(texts) == 1 else [head, "", *map(words.list_item, texts)]


def _said(hint: TriedHint) -> str:
    said = words.markdown(hint.said)
    return f"**{said}**" if hint.standing in (Standing.HELPS, Standing.PARTLY) else f"*{said}*"


def _cost(finding: Finding) -> str:
    cost = cost_text(finding)
    seen = [f"Seen {units.count(finding.count, 'time')}"] if finding.count > 1 else []
    if finding.compiles:
        shown = ", ".join(words.code_span(name) for name in finding.compiles[:_MOST_COMPILES])
        more = len(finding.compiles) - _MOST_COMPILES
        word = "compile" if len(finding.compiles) == 1 else "compiles"
        seen.append(f"{'in' if seen else 'In'} {word} {shown}" + (f" and {more} more" if more > 0 else ""))
    sentences = [f"It costs {cost}" if cost else "", ", ".join(seen)]
    return " ".join(f"{sentence}." for sentence in sentences if sentence)


def _notes(placed: PlacedFinding) -> Iterator[str]:
    """What has to be known about the run of a finding."""
    if placed.stale:
        yield "Found before your edit; the next run may differ."
    limit = placed.outcome.limit if placed.outcome else None
    if limit is not None and limit is not Limit.STEADY_STATE:
        yield f"The run was stopped at its limit of {_LIMIT_NAMES[limit]}, so there may be more than is shown."
    for why in placed.may_differ:
        yield f"May differ from a full run: {words.markdown(why)}."


def _stack(related: Sequence[Related], uri_of: Callable[[str], str]) -> str:
    if not related:
        return ""
    return "\n".join(["See also:", "", *(f"- {_place(each, uri_of)}" for each in related)])


def _folded(calls: Sequence[Related], uri_of: Callable[[str], str]) -> str:
    """The calls above the one that the diagnostic names, the nearest first, folded."""
    if not calls:
        return ""
    shown = [f"- {_place(each, uri_of)}" for each in reversed(calls[-_MOST_CALLS:])]
    more = len(calls) - len(shown)
    if more > 0:
        shown.append(f"- and {units.count(more, 'more call')}")
    summary = f"<details><summary>{units.count(len(calls), 'call')} above it</summary>"
    return "\n".join([summary, "", *shown, "", "</details>"])


def _place(related: Related, uri_of: Callable[[str], str]) -> str:
    line = related.range.start.line
    name = words.markdown(f"{os.path.basename(related.file)}:{line}")
    anchor = "" if notebook_of(related.file) else f"#L{line}"  # a cell's URI has its own fragment
    return f"[{name}]({uri_of(related.file)}{anchor}): {words.markdown(related.message)}"
