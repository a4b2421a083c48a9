"""The rules, the candidates for a finding that they give, as edits of the file, and fixes of which each leads to the next."""

from __future__ import annotations

import functools
import importlib
import logging
import pkgutil
from collections.abc import Iterable, Sequence

from irscope.fixing import rules
from irscope.fixing.model import Proposal, Rule
from irscope.fixing.source import source_of
from irscope.fixing.texts import edits_between
from irscope.protocol import Edit, Finding, Fix
from irscope.usercode.left_out import left_out

THEN = "; then "
"""Between the titles of a chain of fixes."""


@functools.cache
def all_rules() -> tuple[Rule, ...]:
    """The ``RULE`` of each module of `rules` that has one, by the names of the modules."""
    names = sorted(module.name for module in pkgutil.iter_modules(rules.__path__))
    modules = [importlib.import_module(f"{rules.__name__}.{name}") for name in names]
    return tuple(module.RULE for module in modules if isinstance(getattr(module, "RULE", None), Rule))


def proposals(finding: Finding, text: str) -> tuple[Fix, ...]:
    """Changes of a text that may remove a finding, the best first; those that cost most are last.

    None leaves out a call with effects.  A rule that fails costs its own candidates, never those of others.
    """
    asked = [rule for rule in all_rules() if rule.fits(finding)]
    if not asked:
        return ()
    try:
        source = source_of(text)
    except ValueError:
        return ()
    candidates: list[Proposal] = []
    for rule in asked:
        try:
            candidates.extend(rule.propose(source, finding))
        except ValueError:
            continue  # a change cannot be made in this text
        except Exception:
            logging.getLogger(__name__).exception("The rule %s failed", rule.name)  # made here: scripts list loggers
    candidates.sort(key=lambda candidate: candidate.last)
    first: dict[str, Proposal] = {}
    for candidate in candidates:
        if candidate.text != text and not left_out(text, candidate.text):
            first.setdefault(candidate.text, candidate)
    return tuple(Fix(one.title, one.caveat, edits_between(text, one.text), method=one.method) for one in first.values())


def chained(fixes: Sequence[Fix], edits: tuple[Edit, ...]) -> Fix:
    """Fixes as one: ``Keep it a tensor; then compute both sides``.  It costs what each costs."""
    steps = tuple(step for fix in fixes for step in fix.steps or (fix,))
    first, *others = (step.title for step in steps)
    title = THEN.join([first, *(title[:1].lower() + title[1:] for title in others)])
    return Fix(title, together(fix.caveat for fix in fixes), edits, steps=steps)


def together(caveats: Iterable[str]) -> str:
    """What fixes that are made together cost, each caveat once."""
    return " ".join(dict.fromkeys(filter(None, caveats)))
