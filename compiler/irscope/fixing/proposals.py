"""The candidates for a finding, as edits of the file."""

from __future__ import annotations

import logging

from irscope.fixing.model import Proposal
from irscope.fixing.registry import all_rules
from irscope.fixing.source import source_of
from irscope.fixing.texts import edits_between
from irscope.protocol import Finding, Fix
from irscope.usercode.left_out import left_out

_log = logging.getLogger(__name__)


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
        except Exception:  # noqa: BLE001  the others may still help
            _log.exception("The rule %s failed", rule.name)
    candidates.sort(key=lambda candidate: candidate.last)
    first: dict[str, Proposal] = {}
    for candidate in candidates:
        if candidate.text != text and not left_out(text, candidate.text):
            first.setdefault(candidate.text, candidate)
    return tuple(Fix(one.title, one.caveat, edits_between(text, one.text), method=one.method) for one in first.values())
