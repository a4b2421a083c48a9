"""Graph breaks at a transform of ``torch.func`` that is not compiled and calls compiled code: nothing in it breaks."""

from __future__ import annotations

import ast

from irscope.events.stack import FramePlace
from irscope.findings.deliberate import shown, words
from irscope.fixing.advice.model import Option, Words
from irscope.fixing.source import source_of_file
from irscope.usercode.source import node_at_range

_EXAMPLE = "torch.compile(torch.vmap(f))(x)"
_DO = "Compile outside of the transform"


def words_of(place: FramePlace, whole: str) -> Words:
    """The words, with an edit where the line shows the transform.

    Args:
        whole: What runs as plain Python; empty if the graph is cut.
    """
    what = f"{shown(place)} calls a compiled function from a transform of `torch.func` that is not compiled"
    why = "PyTorch does not compile a function that `vmap`, `grad` or `jvp` calls as plain Python. Nothing in it breaks the graph."
    return words(what, whole, why, (_compiled_outside(place),))


def _compiled_outside(place: FramePlace) -> Option:
    """``torch.compile(torch.vmap(f))(x)`` for ``torch.vmap(f)(x)``; an example for a call that is written in another way."""
    source, node = source_of_file(place.file), node_at_range(place.file, place.range)
    made = node.func if isinstance(node, ast.Call) else None
    if source is None or not isinstance(made, ast.Call):
        return Option(_DO, _EXAMPLE)
    code = f"{source.module_name('torch') or 'torch'}.compile({source.code(made)})"
    whole = source.code(node, {made: code}) if node is not None else code
    return Option(_DO, whole, "", source.edits({made: code}))
