"""What to do where a number, a text, a length or a condition changed."""

from __future__ import annotations

from irscope.findings.recompiling.compile_calls import dynamic
from irscope.findings.recompiling.facts import Facts
from irscope.findings.recompiling.sizes import zero_or_one
from irscope.findings.recompiling.uses import growth, uses
from irscope.findings.recompiling.words import DYNAMIC, EACH_VALUE, Words, one_for_each_of_two, rate_as_tensor
from irscope.protocol import Fix, Severity

_INTEGERS = "torch._dynamo.config.allow_unspec_int_on_nn_module = True"
_BOUNDED = "Or bound it: with `collections.deque(maxlen=...)` for the list the recompilations end when `{}` is full. A tensor of fixed size that is written into needs none."


def condition(facts: Facts) -> Words:
    """A condition on sizes or values does not hold."""
    if facts.has_size_0_or_1:
        return zero_or_one(facts)
    if (grown := _growing(facts)) is not None:
        return grown
    if (size := facts.guard.shared_size) is not None:
        return Words(
            f"Both sizes were {size} when this was compiled, so PyTorch took them for one (duck sizing).",
            (
                "Make the first call with sizes that differ.",
                "Or before the first call: `torch.fx.experimental._config.use_duck_shape = False`.",
            ),
        )
    return Words(
        "" if facts.size_now is None else f"The size is {facts.size_now} in this call.",
        (
            "The compiled code is valid only if this is true. PyTorch took the condition from a branch in the code or chose it itself. Keep the values on one side of it, or warm up both.",
        ),
    )


def value(facts: Facts) -> Words:
    """A number, a text, a flag or a length changed."""
    if (grown := _growing(facts)) is not None:
        return grown
    guard, was = facts.guard, facts.guard.was
    if guard.is_left_by_break:
        return Words(
            "", ("A graph break leaves this value for the code after it: without the break it is not guarded.",)
        )
    if hints := rate_as_tensor(guard.source):
        return Words(EACH_VALUE, hints)
    used = uses(facts.file, facts.reader, guard.source)
    if was in ("True", "False"):
        hint = (
            f"`{guard.source}` decides which code is compiled"
            if "decision" in used
            else f"`{guard.source}` is a constant of the compiled code"
        )
        return Words(
            one_for_each_of_two(facts, "one for `True` and one for `False`"),
            (f"{hint}, so this is normal. Warm up both before you measure.",),
        )
    if was == "None" or facts.now.text == "None":
        return Words(
            "One compile for `None` and one for another value are normal.",
            (f"Warm up both before you measure, or pass always the same sort of `{guard.source}`.",),
        )
    if guard.source.startswith("len("):
        return _length(facts, guard.source[4:-1])
    if "decision" in used:
        return _deciding(facts)
    if "range" in used:
        return Words(
            EACH_VALUE,
            (
                f"The loop over a `range` of `{guard.source}` is unrolled, so `{guard.source}` is a constant, also with {DYNAMIC}. Use few values, or a tensor operation instead of the loop.",
            ),
        )
    if _is_number(was):
        return _number(facts, used)
    return Words(EACH_VALUE, (f"Use few values of `{guard.source}`: it is a constant of the compiled code.",))


def _length(facts: Facts, thing: str) -> Words:
    """The length of a list, or how many keys a dictionary has."""
    if facts.calls and thing == facts.calls[-1].parameters.keywords:
        return Words(
            "One compile for each set of keyword arguments.",
            (
                "Pass the same keyword arguments in each call. Two sets, as for the first and for later steps of generation, are normal: warm up both before you measure.",
            ),
        )
    if facts.now.container == "dict":
        return Words(
            "Each new number of keys is one more compile, up to the recompile limit.",
            (
                f"PyTorch guards on how many keys `{thing}` has where the function reads or writes one. Pass only those that the function reads (of a TensorDict `select(...)`), or the tensors themselves.",
            ),
        )
    is_loop = "loop" in uses(facts.file, facts.reader, thing)
    unrolled = ": a loop over it is unrolled" if is_loop else ": it is a constant of the compiled code"
    tensor = ", with operations on the whole of it and no loop" if is_loop else ""
    return Words(
        "Each new length is one more compile, up to the recompile limit.",
        (f"Use few lengths of `{thing}`{unrolled}. Or pass one tensor (`torch.stack`){tensor}.",),
    )


def _deciding(facts: Facts) -> Words:
    source = facts.guard.source
    told = f"A branch depends on `{source}`, so a tensor would break the graph."
    decide = f"before the call and pass the result (`True` or `False`) instead of `{source}`: at most two compiles."
    if _is_number(facts.guard.was):
        once = f"{told} {DYNAMIC} compiles a number once for each side of the branch, if it is not a global or an attribute of a module."
        return Words.told("", [(once, dynamic(facts)), (f"Or decide {decide}", None)])
    return Words(EACH_VALUE, (f"{told} Decide {decide}", "Or use few values, and warm up each before you measure."))


def _number(facts: Facts, used: set[str]) -> Words:
    source, is_int = facts.guard.source, facts.guard.was.lstrip("-").isdigit()
    tensor = f"Or make `{source}` a tensor, `torch.tensor({facts.guard.was})`: its value is then not a constant."
    others = [(tensor, None)] if used == {"arithmetic"} else []
    if "G['" in facts.guard.text and ".__closure__" not in facts.guard.text:
        given = f"Pass `{source}` as an argument: a global number is a constant of the compiled code."
        return Words.told(EACH_VALUE, [(given, None), *others])
    if is_int and facts.now.of_module:
        of_module = f"Before the first call: `{_INTEGERS}`, and {DYNAMIC}. An integer of a module is else a constant of the compiled code."
        return Words.told(EACH_VALUE, [(of_module, dynamic(facts, _INTEGERS)), *others])
    seen = any(guard.source == source for guard in facts.older)
    if seen and not is_int:
        # AOTAutograd makes a number a tensor where it can; where it cannot, it is fixed at each compile.
        more = f"Make `{source}` a tensor, `torch.tensor({facts.guard.was})`: PyTorch cannot make this number dynamic here, also not with {DYNAMIC}."
        return Words(EACH_VALUE, (more,))
    more = EACH_VALUE if seen else "This is normal once: PyTorch then makes the number dynamic where it can."
    return Words.told(more, [(f"{DYNAMIC} makes the number dynamic from the start.", dynamic(facts)), *others])


def _growing(facts: Facts) -> Words | None:
    """For a number or a length that grows with each compile, which makes each call another program."""
    source, values = facts.guard.source, facts.grows()
    first = facts.guard.text == f"not {source}"
    if values is None and not first:
        return None
    line = growth(facts.file, facts.reader, f"len({source})" if first else source)
    if line is None:
        return None
    is_length = first or source.startswith("len(")
    thing = source[4:-1] if source.startswith("len(") else source
    keep = f"Keep `{thing}` out of the compiled function: change it (line {line}) and read it after the call."
    hints: list[tuple[str, Fix | None]] = [(keep, None)]
    if is_length:
        hints.append((_BOUNDED.format(thing), None))
    else:
        if facts.now.of_module:
            set_up = f"Or before the first call: `{_INTEGERS}`, and {DYNAMIC}: one compile, and one for each other side of a branch that depends on it."
            hints.append((set_up, dynamic(facts, _INTEGERS)))
        if "decision" not in uses(facts.file, facts.reader, source):
            hints.append(("Or make it a tensor, in a module by `self.register_buffer`.", None))
    if values is None:
        return Words.told(f"Line {line} makes it longer: each new length may be one more compile.", hints)
    more = (
        f"It grows on line {line} ({', '.join(values[-4:])}): each call is one more compile, up to the recompile limit."
    )
    return Words.told(more, hints, Severity.WARNING)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
