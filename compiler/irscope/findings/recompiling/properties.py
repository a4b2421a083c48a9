"""What to do where a tensor, an object or a mode is of another sort."""

from __future__ import annotations

import re

from irscope.findings.recompiling.facts import Facts
from irscope.findings.recompiling.uses import uses
from irscope.findings.recompiling.words import Words, one_for_each_of_two
from irscope.protocol import GRAD_MODE, Severity

_NORMAL = "This is normal where training and evaluation alternate."
_DTYPES = {
    "Float": "float32", "Double": "float64", "Half": "float16", "BFloat16": "bfloat16", "Long": "int64", "Int": "int32",
    "Short": "int16", "Char": "int8", "Byte": "uint8", "Bool": "bool",
    "ComplexFloat": "complex64", "ComplexDouble": "complex128",
}  # fmt: skip


def dtype_changed(facts: Facts) -> Words:
    """A tensor has another dtype."""
    match = re.search(r"dtype (\w+) → ", facts.guard.what)
    dtype = f"torch.{_DTYPES.get(match[1], '...') if match else '...'}"
    return Words("At most one compile for each dtype.", (_converted(facts, f".to({dtype})", "It keeps one dtype."),))


def stride_changed(facts: Facts) -> Words:
    """A tensor lies in memory in another way."""
    return Words(
        "One compile for each memory layout.",
        (_converted(facts, ".contiguous()", "It copies a tensor that has another layout."),),
    )


def dispatch_changed(facts: Facts) -> Words:
    """PyTorch dispatches the operations of a tensor in another way."""
    if facts.guard.state:
        return Words(
            "One compile in inference mode and one outside of it.",
            ("Call it in one of them alone, or warm up both. `torch.no_grad()` shares the dispatch keys of training.",),
        )
    if "Conjugate" in facts.guard.what:
        hint = _converted(facts, ".resolve_conj()", "It copies a conjugated tensor.")
    else:
        hint = f"Pass `{_name(facts)}` always in the same way: these keys say what PyTorch does at each operation."
    return Words("At most one compile for each set of dispatch keys.", (hint,))


def _converted(facts: Facts, method: str, caveat: str) -> str:
    """The advice to convert an argument: in the call that did not fit, or before it."""
    source, place = facts.guard.source, _place(facts)
    argument = facts.argument(source)
    if argument is None or place is None or not (argument.written or argument.plain):
        return f"Convert the tensor that becomes `{source}` before the call: `{_name(facts)}{method}`. {caveat}"
    written = argument.expression
    if argument.written:
        return f"In the call on line {place}, pass `{written}{method}` instead of `{written}`. {caveat}"
    return f"Before the call on line {place}: `{written} = {written}{method}`. {caveat}"


def _place(facts: Facts, first: bool = False) -> int | None:
    """The line of the first call or of this one."""
    place = facts.calls[0 if first else -1].place if facts.calls else None
    return place.range.start.line if place is not None else None


def requires_grad_changed(facts: Facts) -> Words:
    """A tensor requires grad, or no longer does."""
    argument = facts.argument(facts.guard.source)
    source = argument.expression if argument is not None else facts.guard.source
    return Words(
        one_for_each_of_two(facts, "one with gradients and one without"),
        (f"Both are normal if you train and evaluate. For inference alone pass `{source}.detach()`.",)
        if argument is not None and argument.written
        else ("Set `requires_grad` before the first call, or warm up both.",),
        Severity.HINT,
    )


def rank_changed(facts: Facts) -> Words:
    """A tensor has another number of dimensions."""
    return Words(
        "At most one compile for each number of dimensions.",
        (
            f"Give `{_name(facts)}` the same number of dimensions in each call (`unsqueeze`, `reshape`), or warm up each.",
        ),
    )


def device_changed(facts: Facts) -> Words:
    """A tensor is on another device."""
    return Words("At most one compile for each device.", (f"Move `{_name(facts)}` to one device before the call.",))


def _name(facts: Facts) -> str:
    argument = facts.argument(facts.guard.source)
    return argument.expression if argument is not None and argument.plain else facts.guard.source


def training_changed(facts: Facts) -> Words:
    """A module is in the other of its two modes."""
    return Words(
        one_for_each_of_two(facts, "one for train mode and one for eval mode"),
        ("Train and eval mode are different programs, so this is normal. Warm up both before you measure.",),
        Severity.HINT,
    )


def global_state_changed(facts: Facts) -> Words:
    """A setting of PyTorch as a whole changed."""
    if facts.guard.state == GRAD_MODE:
        return Words(f"{one_for_each_of_two(facts, 'one with grad mode and one without')} {_NORMAL}", (), Severity.HINT)
    return Words(
        "One compile for each setting of this state.",
        ("Set it once, before the first call, or call each variant in one setting alone.",),
    )


def type_changed(facts: Facts) -> Words:
    """An argument has another type."""
    was, now = facts.guard.was, facts.now.type
    always = f", or pass always a {'tensor' if was == 'tensor' else f'`{was}`'}" if was else ""
    hints = [f"Each type is other code. Warm up each before you measure{always}."]
    if was == "tensor" and now in ("int", "float", "bool"):
        hints.insert(0, _wrapped(facts, "torch.tensor({})"))
    elif now == "Tensor" and was in ("int", "float", "bool"):
        hints.insert(0, f"Pass a tensor in each call: `torch.tensor(...)` instead of a `{was}`.")
    return Words("At most one compile for each type.", tuple(hints))


def _wrapped(facts: Facts, form: str) -> str:
    argument = facts.argument(facts.guard.source)
    line = _place(facts)
    if argument is None or not argument.written or line is None:
        return f"Pass a tensor for `{facts.guard.source}` in each call."
    return f"In the call on line {line}, pass `{form.format(argument.expression)}` instead of `{argument.expression}`."


def object_changed(facts: Facts) -> Words:
    """An argument is another object than the one that the code was compiled for."""
    if facts.guard.was == "of the class":
        return Words("One more compile.", (f"Set `{facts.guard.source}` before the first call of the compiled code.",))
    if facts.now.is_member:
        return Words(
            "One compile for each member that is passed, and no more.",
            (f"`{facts.guard.source}` is a member of an enum, so this is normal. Warm up each before you measure.",),
        )
    if "decision" in uses(facts.file, facts.reader, facts.guard.source):
        return Words(
            "One compile for each object.",
            (f"A branch depends on `{facts.guard.source}`, so this is normal. Warm up each before you measure.",),
        )
    source = facts.guard.source
    named = f"`{source}`" if source and "___" not in source else "it"
    return Words(
        "Each other object is one more compile, up to the recompile limit.",
        (f"Create {named} once, outside of the loop, and pass the same object, or pass what differs as an argument.",),
    )


def aliasing_changed(facts: Facts) -> Words:
    """Two arguments are one tensor in one of the two calls: the newest one, or the one that was compiled for."""
    more = one_for_each_of_two(facts, "one for one tensor and one for two")
    first = "were one object" in facts.guard.what
    argument = facts.argument(facts.guard.other, first) if facts.guard.other else None
    line = _place(facts, first)
    caveat = "Not if the function writes to one of them and reads the other."
    if argument is None or not argument.written or line is None:
        return Words(more, (f"Pass a copy (`.clone()`) for `{facts.guard.other or 'the second'}`. {caveat}",))
    return Words(
        more,
        (f"In the call on line {line}, pass `{argument.expression}.clone()` for `{facts.guard.other}`. {caveat}",),
    )


def backend_changed(facts: Facts) -> Words:
    """The function is compiled with another backend, or with other options."""
    return Words(
        "One compile for each backend and set of options.",
        (
            "Compile it once, and call that compiled function everywhere. A new backend object for each `torch.compile`, such as a lambda, counts as another one.",
        ),
    )
