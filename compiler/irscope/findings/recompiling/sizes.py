"""What to do where a size changed."""

from __future__ import annotations

import re

from irscope.findings.recompiling.compile_calls import dynamic
from irscope.findings.recompiling.facts import Facts
from irscope.findings.recompiling.marks import MARK, UNBACKED, marks_of
from irscope.findings.recompiling.words import DYNAMIC, Words
from irscope.internals.dynamo_frames import Entrance
from irscope.protocol import Fix

Hint = tuple[str, "Fix | None"]
_STATIC = (
    "torch._dynamo.config.force_parameter_static_shapes = False",
    "torch._dynamo.config.force_nn_module_property_static_shapes = False",
)


def size(facts: Facts) -> Words:
    """A size of a tensor changed."""
    owned = [path for path in facts.varying if path in facts.tensors and facts.tensors[path].of_module]
    if not owned and re.search(r"\._(?:parameters|buffers)\[", facts.guard.text):
        owned = [facts.guard.source]
    seen = sum(g.source == facts.guard.source and g.dimension == facts.guard.dimension for g in facts.older)
    if owned:
        return Words.told("Each new size is one more compile, up to the recompile limit.", _parameters(facts, owned))
    if facts.has_size_0_or_1:
        return zero_or_one(facts)
    more = (
        "It is not the first time for this size: each new size is one more compile, up to the recompile limit."
        if seen
        else "This is normal once: PyTorch then makes the size dynamic, except with `dynamic=False`."
    )
    return Words.told(more, _dynamic(facts))


def _dynamic(facts: Facts) -> list[Hint]:
    fix, marks = dynamic(facts), marks_of(facts, MARK)
    whole = f"{DYNAMIC} makes every size dynamic from the start."
    if facts.is_cut:
        cut = "Marking one tensor is not enough here: a graph break cuts the function into several graphs."
        return [(f"{whole} {cut}", fix)]
    if marks is not None:
        shared = " All tensors that changed together are marked." if len(marks.marked) > 1 else ""
        serves = f"One compile then serves every size.{shared} It raises where the code fixes such a size."
        return [(f"{marks.hint}. {serves}{_besides(facts)}", marks.fix), (f"Or {whole}", fix)]
    source, code = facts.guard.source, f"`{MARK}({_last_name(facts.guard.source)}, {facts.guard.dimension})`"
    if facts.calls and facts.calls[-1].entrance is not Entrance.INDIRECT and facts.argument(source) is None:
        if facts.calls[-1].parameters.has(source):
            mark = f"Or mark the tensor that is passed for the parameter `{source}`, before the call: {code}."
        else:
            mark = f"Or mark the tensor where it is made: {code}."
        return [(whole, fix), (mark, None)]
    return [(whole, fix)]


def _besides(facts: Facts) -> str:
    """What changed in the same call, too, and is not served by a size that is dynamic; else empty."""
    other = facts.other
    if other is None or other.code in ("recompile-size", "recompile-condition") or not other.source:
        return ""
    return f" `{other.source}` changed in the same call, too: for that there is still one more compile."


def zero_or_one(facts: Facts) -> Words:
    """What is said, and what to do, if one of the sizes is 0 or 1, for which PyTorch always compiles again."""
    source, dimension = facts.guard.source, facts.guard.dimension
    marks = marks_of(facts, UNBACKED)
    code = (
        f"{marks.hint}. One compile then serves"
        if marks is not None
        else f"`{UNBACKED}({source}, {dimension})` makes one compile serve"
    )
    hints: list[Hint] = [
        (f"Pad `{source}` to at least 2, or warm up each of these sizes before you measure.", None),
        (
            f"{code} 0 and 1 too. It raises where the code depends on the size.{_besides(facts)}",
            marks.fix if marks is not None else None,
        ),
    ]
    return Words.told("Sizes 0 and 1 always get compiles of their own: at most one for each.", hints)


def _parameters(facts: Facts, owned: list[str]) -> list[Hint]:
    return [
        (
            f"The size of `{owned[0]}`, a parameter or buffer, changed; PyTorch keeps such sizes fixed, and `mark_dynamic` does not change this. Before the first call: `{'; '.join(_STATIC)}`, and {DYNAMIC}.",
            dynamic(facts, *_STATIC),
        ),
        ("Or wrap each module in its own `torch.compile`, if there are few.", None),
    ]


def _last_name(source: str) -> str:
    names = re.findall(r"[^\W\d]\w*", source)
    return names[-1] if names else "x"
