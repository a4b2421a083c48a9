"""Sizes that are fixed because a message says them: the text is made in each trace, though the error may never come."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst
import libcst.matchers as m
from irscope.protocol import Finding

from irscope_server.fixing.model import Family, Proposal
from irscope_server.fixing.source import Source

_TITLE = "Leave the size out of the message of the check"
_CAVEAT = "The error then does not say the size."
_CHECK = m.Call(func=m.Name("_assert") | m.Name("check") | m.Attribute(attr=m.Name("_assert") | m.Name("_check")))


def _propose(source: Source, finding: Finding) -> Iterator[Proposal]:
    for node in source.on_line(finding.range.start.line, cst.FormattedString):
        call = source.first_around(node, cst.Call)
        if call is None or not m.matches(call, _CHECK) or node not in (arg.value for arg in call.args):
            continue
        parts = [_without_size(part) for part in node.parts]
        plain = all(isinstance(part, cst.FormattedStringText) for part in parts)
        made: cst.BaseExpression = node.with_changes(parts=parts)
        if plain:
            words = "".join(part.value for part in parts if isinstance(part, cst.FormattedStringText))
            made = cst.SimpleString(f"{node.start.lstrip('fF')}{words.replace('{{', '{').replace('}}', '}')}{node.end}")
        if any(part not in node.parts for part in parts):
            yield Proposal(_TITLE, _CAVEAT, source.changed({node: made}))


def _without_size(part: cst.BaseFormattedStringContent) -> cst.BaseFormattedStringContent:
    """A part of a message, or dots in the place of a value of the function's; a module's own values are constants."""
    if not isinstance(part, cst.FormattedStringExpression):
        return part
    names = {one.value for one in m.findall(part.expression, m.Name()) if isinstance(one, cst.Name)}
    words = {one.attr.value for one in m.findall(part.expression, m.Attribute()) if isinstance(one, cst.Attribute)}
    return part if names - words <= {"self"} else cst.FormattedStringText("…")


FAMILY = Family("messages", ("specialization",), _propose)
