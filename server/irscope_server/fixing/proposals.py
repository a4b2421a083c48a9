"""The candidates for a finding: its own, made on a tree, and those of the families, as edits of the file."""

from __future__ import annotations

import logging

from irscope.driver.fixing.texts import edits_between
from irscope.protocol import Finding, Fix
from irscope.usercode.left_out import left_out

from irscope_server.fixing.own import edited
from irscope_server.fixing.parsing import MOST_CHARACTERS
from irscope_server.fixing.registry import all_families
from irscope_server.fixing.source import Source

_log = logging.getLogger(__name__)


def proposals(finding: Finding, text: str) -> tuple[Fix, ...]:
    """Changes of a text that may remove a finding, the best first; those that cost most are last.

    None leaves out a call with effects.  The finding's own come before all, under their titles.  A family that fails costs its own candidates, never those of others.
    """
    if len(text) > MOST_CHARACTERS:
        return ()
    carried = [fix for fix in finding.fixes if fix.file in ("", finding.file)]
    own = tuple(kept for fix in carried if (kept := edited(text, fix)) != fix)
    asked = [family for family in all_families() if family.fits(finding)]
    if not asked:
        return own
    try:
        source = Source(text)
    except ValueError:
        return own
    found = []
    for family in asked:
        try:
            found += list(family.propose(source, finding))
        except Exception:  # noqa: BLE001  the others may still help
            _log.exception("The family of fixes %s failed", family.name)
    found.sort(key=lambda one: one.last)
    texts = {one.text: one for one in reversed(found) if one.text != text and not left_out(text, one.text)}
    made = (
        Fix(one.title, one.caveat, edits_between(text, one.text), method=one.method)
        for one in found
        if texts.get(one.text) is one
    )
    return (*own, *made)
