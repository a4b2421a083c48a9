"""The candidates for a finding: as edits of the file.

Rules of `irscope.fixing` and, until all of them are moved there, families of fixes that are made with LibCST.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

from irscope.fixing.model import Proposal, Rule
from irscope.fixing.registry import all_rules
from irscope.fixing.source import source_of
from irscope.fixing.texts import edits_between
from irscope.protocol import Finding, Fix
from irscope.usercode.left_out import left_out

from irscope_server.fixing.model import Family
from irscope_server.fixing.parsing import MOST_CHARACTERS
from irscope_server.fixing.registry import all_families
from irscope_server.fixing.source import Source

_log = logging.getLogger(__name__)


def proposals(finding: Finding, text: str) -> tuple[Fix, ...]:
    """Changes of a text that may remove a finding, the best first; those that cost most are last.

    None leaves out a call with effects.  A rule that fails costs its own candidates, never those of others.
    """
    if len(text) > MOST_CHARACTERS:
        return ()
    candidates = [
        *_candidates(finding, text, all_rules(), source_of),
        *_candidates(finding, text, all_families(), Source),
    ]
    candidates.sort(key=lambda candidate: (candidate[1].last, candidate[0]))
    first: dict[str, Any] = {}
    for _, proposal in candidates:
        if proposal.text != text and not left_out(text, proposal.text):
            first.setdefault(proposal.text, proposal)
    return tuple(Fix(one.title, one.caveat, edits_between(text, one.text), method=one.method) for one in first.values())


def _candidates(
    finding: Finding, text: str, rules: Sequence[Rule | Family], read: Callable[[str], Any]
) -> list[tuple[str, Proposal]]:
    """What rules propose, each with what it is sorted by: the name of the rule's module."""
    asked = [rule for rule in rules if rule.fits(finding)]
    candidates: list[tuple[str, Any]] = []
    try:
        source = read(text) if asked else None
    except ValueError:
        return []
    for rule in asked:
        try:
            for proposal in rule.propose(source, finding):  # type: ignore[arg-type]
                candidates.append((rule.name.lower().replace(" ", "_"), proposal))
        except ValueError:
            continue  # a change cannot be made in this text
        except Exception:  # noqa: BLE001  the others may still help
            _log.exception("The rule %s failed", rule.name)
    return candidates
