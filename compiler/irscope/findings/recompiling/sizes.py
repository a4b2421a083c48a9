"""What to do where a size changed."""

from __future__ import annotations

import re

from irscope.findings.recompiling.compile_calls import dynamic_fix
from irscope.findings.recompiling.facts import Facts
from irscope.findings.recompiling.words import DYNAMIC, Words
from irscope.internals.dynamo_frames import Entrance
from irscope.protocol import Marks

_MARK, _UNBACKED = "torch._dynamo.mark_dynamic", "torch._dynamo.decorators.mark_unbacked"


def size(facts: Facts) -> Words:
    """A size of a tensor changed."""
    owned = [path for path in facts.varying if path in facts.tensors and facts.tensors[path].of_module]
    if not owned and re.search(r"\._(?:parameters|buffers)\[", facts.guard.text):
        owned = [facts.guard.source]
    seen = sum(g.source == facts.guard.source and g.dimension == facts.guard.dimension for g in facts.older)
    if owned:
        return Words("Each new size is one more compile, up to the recompile limit.", _parameters(owned))
    if facts.has_size_0_or_1:
        return zero_or_one(facts)
    more = (
        "It is not the first time for this size: each new size is one more compile, up to the recompile limit."
        if seen
        else "This is normal once: PyTorch then makes the size dynamic, except with `dynamic=False`."
    )
    place = facts.calls[-1].place if facts.calls else None
    fix = dynamic_fix((place.file, place.range) if place is not None else None, facts.file, facts.function)
    marks = _marks(facts, _MARK)
    return Words(more, _dynamic(facts, marks), fixes=(fix,) if fix is not None else (), marks=marks)


def _dynamic(facts: Facts, marks: Marks | None) -> tuple[str, ...]:
    whole = f"{DYNAMIC} makes every size dynamic from the start."
    if facts.is_cut:
        return (f"{whole} Marking one tensor is not enough here: a graph break cuts the function into several graphs.",)
    if marks is not None:
        shared = " All tensors that changed together are marked." if len(marks.marked) > 1 else ""
        return (
            f"{_before_the_call(marks)}. One compile then serves every size.{shared} It raises where the code fixes such a size.",
            f"Or {whole}",
        )
    source, code = facts.guard.source, f"`{_MARK}({_last_name(facts.guard.source)}, {facts.guard.dimension})`"
    if facts.calls and facts.calls[-1].entrance is not Entrance.INDIRECT and facts.argument(source) is None:
        if facts.calls[-1].parameters.has(source):
            return (whole, f"Or mark the tensor that is passed for the parameter `{source}`, before the call: {code}.")
        return (whole, f"Or mark the tensor where it is made: {code}.")
    return (whole,)


def _marks(facts: Facts, mark: str) -> Marks | None:
    """Marks all dimensions that vary, of all tensors, before the first call; None if not all tensors can be named there, or
    if a graph break cuts the function: it is then compiled for more than the call passes."""
    line = facts.line(first=True)
    if line is None or facts.sites is None or facts.is_cut:
        return None
    names, made, marked = facts.sites[0].names(), list[tuple[str, str]](), list[str]()
    for path, dims in facts.varying.items():
        if (argument := facts.argument(path, first=True)) is None:
            return None
        name = argument.expression
        if not argument.plain:
            name = argument.parameter.replace("*", "argument")
            name = name if name not in names else f"{name}_input"
            made.append((name, argument.expression))
        at_first = path in facts.calls[0].tensors  # an argument may be None in the first call and a tensor in others
        only = "" if at_first else f"if {name} is not None: "
        marked.append(f"{only}{mark}({name}, {dims[0] if len(dims) == 1 else list(dims)})")
    return Marks(line, tuple(made), tuple(marked), are_unbacked=mark == _UNBACKED)


def _before_the_call(marks: Marks) -> str:
    passed = " and ".join(f"`{name}`" for name, _ in marks.made)
    then = f", and pass {passed} in the call" if passed else ""
    # A statement with a condition must be the first one on its line.
    between = "`, `" if any(statement.startswith("if ") for statement in marks.statements) else "; "
    return f"Before the call on line {marks.line}: `{between.join(marks.statements)}`{then}"


def zero_or_one(facts: Facts) -> Words:
    """What is said, and what to do, if one of the sizes is 0 or 1, for which PyTorch always compiles again."""
    source, dimension = facts.guard.source, facts.guard.dimension
    marks = _marks(facts, _UNBACKED)
    code = (
        f"{_before_the_call(marks)}. One compile then serves"
        if marks is not None
        else f"`{_UNBACKED}({source}, {dimension})` makes one compile serve"
    )
    hints = (
        f"Pad `{source}` to at least 2, or warm up each of these sizes before you measure.",
        f"{code} 0 and 1 too. It raises where the code depends on the size.",
    )
    return Words("Sizes 0 and 1 always get compiles of their own: at most one for each.", hints, marks=marks)


def _parameters(owned: list[str]) -> tuple[str, ...]:
    return (
        f"The size of `{owned[0]}`, which a module owns, changed; PyTorch keeps such sizes fixed, and `mark_dynamic` does not change this. Before the first call: `torch._dynamo.config.force_parameter_static_shapes = False; torch._dynamo.config.force_nn_module_property_static_shapes = False`, and {DYNAMIC}.",
        "Or wrap each module in its own `torch.compile`, if there are few.",
    )


def _last_name(source: str) -> str:
    names = re.findall(r"[^\W\d]\w*", source)
    return names[-1] if names else "x"
