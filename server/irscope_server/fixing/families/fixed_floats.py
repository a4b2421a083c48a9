"""Floats of modules and globals that `dynamic=True` makes symbols, and the code then fixes: they are constants at once."""

from __future__ import annotations

import re
from collections.abc import Iterator

from irscope.protocol import Finding

from irscope_server.fixing.imports import at_top, with_import
from irscope_server.fixing.model import Family, Proposal
from irscope_server.fixing.source import Source

_FLOAT = re.compile(r" was fixed to -?\d+\.\d+(?:e[-+]?\d+)? here")
"""What `irscope.findings.kinds.specialization` says of a float."""
_SETTING = "torch._dynamo.config.specialize_float"


def _propose(source: Source, finding: Finding) -> Iterator[Proposal]:
    if _FLOAT.search(finding.message) is None or _SETTING in source.text:
        return
    text = with_import(at_top(source, f"{_SETTING} = True\n"), "torch._dynamo")
    yield Proposal(
        "Let floats be constants of the compiled code",
        "Each other value compiles again. The setting is for all compiled functions of the process.",
        text,
    )


FAMILY = Family("fixed floats", ("specialization",), _propose)
