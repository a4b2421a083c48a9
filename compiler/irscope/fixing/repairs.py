"""Fixes of which each leads to the next."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from irscope.protocol import Edit, Fix

THEN = "; then "
"""Between the titles of a chain of fixes."""


def chained(fixes: Sequence[Fix], edits: tuple[Edit, ...]) -> Fix:
    """Fixes as one: ``Keep it a tensor; then compute both sides``.  It costs what each costs."""
    steps = tuple(step for fix in fixes for step in fix.steps or (fix,))
    first, *others = (step.title for step in steps)
    title = THEN.join([first, *(title[:1].lower() + title[1:] for title in others)])
    return Fix(title, together(fix.caveat for fix in fixes), edits, steps=steps)


def together(caveats: Iterable[str]) -> str:
    """What fixes that are made together cost, each caveat once."""
    return " ".join(dict.fromkeys(filter(None, caveats)))
