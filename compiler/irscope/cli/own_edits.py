"""The fixes that findings carry, with the edits that LibCST makes of them, for those who apply them."""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
from collections.abc import Sequence

from irscope.driver.fixing.needs import is_missing
from irscope.protocol import Finding, Fix
from irscope.usercode.source import read_source

_OWN = "irscope_server.fixing.own"


def with_own_edits(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Findings whose fixes keep comments; as they are where the server's package or LibCST is not installed."""
    if not any(fix.changes for one in findings for fix in one.fixes):
        return tuple(findings)
    if importlib.util.find_spec("irscope_server") is None or is_missing():
        return tuple(findings)
    edited = importlib.import_module(_OWN).edited

    def made(finding: Finding, fix: Fix) -> Fix:
        result: Fix = edited(read_source(fix.file or finding.file), fix)
        return result

    return tuple(dataclasses.replace(one, fixes=tuple(made(one, fix) for fix in one.fixes)) for one in findings)
