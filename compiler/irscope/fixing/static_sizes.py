"""A text that compiles for each size, in place of one for all sizes.

No finding asks for it: `irscope fix --measure` tries it where sizes are dynamic, and says what was measured.
"""

from __future__ import annotations

import ast

from irscope.fixing.compile_calls import compiling, with_dynamic
from irscope.fixing.source import source_of
from irscope.fixing.texts import edits_between
from irscope.protocol import Fix

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
        source = source_of(text)
        compiled = compiling(source)
        marks = [
            statement
            for statement in source.all(ast.Expr)
            if isinstance(statement.value, ast.Call) and source.full_name(statement.value.func) in _MARKS
        ]
        if len(compiled) != 1 or not (are_dynamic or marks or _is_dynamic(compiled[0])):
            return None
        changed = source.changed(dict.fromkeys(marks), with_dynamic(source, compiled, "False"))
    except ValueError:
        return None
    return Fix(_TITLE, _CAVEAT, edits_between(text, changed))


def _is_dynamic(compiled: ast.expr) -> bool:
    keywords = compiled.keywords if isinstance(compiled, ast.Call) else []
    return any(
        keyword.arg == "dynamic" and isinstance(keyword.value, ast.Constant) and keyword.value.value is True
        for keyword in keywords
    )
