"""A text that compiles for each size, in place of one for all sizes.

No finding asks for it: `irscope fix --measure` tries it where sizes are dynamic, and says what was measured.
"""

from __future__ import annotations

import libcst as cst
import libcst.matchers as m
from irscope.fixing.texts import edits_between
from irscope.protocol import Fix

from irscope_server.fixing.families.sizes import compiling, with_dynamic
from irscope_server.fixing.source import Change, Source

_TITLE = "Compile for each size (`dynamic=False`)"
_CAVEAT = "Each size is one more compile, up to the recompile limit."
_MARKS = ("torch._dynamo.mark_dynamic", "torch._dynamo.maybe_mark_dynamic")


def static_sizes(text: str, are_dynamic: bool) -> Fix | None:
    """The change of a text with one call of ``torch.compile``; None if its sizes are not dynamic.

    Parameters
    ----------
    are_dynamic
        Whether a run has made sizes dynamic that the text does not call so.
    """
    try:
        source = Source(text)
    except ValueError:
        return None
    compiled = compiling(source)
    marks = [one for one in m.findall(source.module, m.SimpleStatementLine()) if _is_mark(source, one)]
    if len(compiled) != 1 or not (are_dynamic or marks or _is_dynamic(compiled[0])):
        return None
    changes: dict[cst.CSTNode, Change] = {one: cst.RemoveFromParent() for one in marks}
    changed = source.changed(changes | with_dynamic(compiled, "False"))
    return Fix(_TITLE, _CAVEAT, edits_between(text, changed))


def _is_mark(source: Source, line: cst.CSTNode) -> bool:
    assert isinstance(line, cst.SimpleStatementLine)
    small = line.body[0]
    call = small.value if isinstance(small, cst.Expr) else None
    return len(line.body) == 1 and isinstance(call, cst.Call) and source.full_name(call.func) in _MARKS


def _is_dynamic(compiled: cst.CSTNode) -> bool:
    dynamic = m.Arg(m.Name("True"), keyword=m.Name("dynamic"))
    return isinstance(compiled, cst.Call) and any(m.matches(arg, dynamic) for arg in compiled.args)
