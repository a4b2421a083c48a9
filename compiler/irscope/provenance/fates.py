"""Why something in a stage became nothing below it, in words.

PyTorch does not tell; each reason follows from what is known: which pass a node was last seen before, whether anything
uses it, whether it only looks at memory of others.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from irscope.ir.nodes import Value
from irscope.pipelines.registry import role_of
from irscope.protocol import StageRef
from irscope.provenance.elements import Item, Items
from irscope.vocabulary.stages import Role

_CONSTANTS = frozenset({"full", "scalar_tensor", "zeros", "ones", "empty", "arange", "full_like", "zeros_like",
                        "ones_like", "iota", "tensor", "constant", "lift_fresh_copy", "empty_strided"})  # fmt: skip

_VIEWS = frozenset({"reshape", "view", "view_as", "transpose", "permute", "expand", "expand_as", "squeeze", "unsqueeze",
                    "flatten", "unflatten", "detach", "t", "contiguous"})  # fmt: skip
"""Methods of tensors that only look at memory, or need do no more here."""

_CONVERSIONS = _VIEWS | {"to", "type", "type_as", "float", "double", "half", "bfloat16", "int", "long", "bool", "cpu", "cuda",
                         "clone", "copy", "copy_", "alias", "lift_fresh", "convert_element_type", "dropout",
                         "new_empty_strided"}  # fmt: skip
"""Operations that give their input again where it is as they would make it."""

_NEUTRAL = {"add": 0, "sub": 0, "mul": 1, "div": 1, "pow": 1}
"""Operations that give their input again where the other operand is this number."""

_MODES = frozenset({"_set_grad_enabled", "_enter_autocast", "_exit_autocast", "_enter_inference_mode",
                    "_exit_inference_mode", "_saved_tensors_hooks_disable", "_saved_tensors_hooks_enable"})  # fmt: skip
"""Operations that compute nothing, and say how what is after them is to be traced."""

_ENDS = {"output": "what the graph returns", "placeholder": "an input of the graph"}
"""What stays of a graph's ends, by operation."""

_WORD = re.compile(r"(?<![\w.])[A-Za-z_]\w*")


def fate_of(item: Item, items: Items, stage: StageRef, versions: Sequence[tuple[StageRef, Mapping[str, Any]]]) -> str:
    """The reason; empty if there is none that is known.

    Args:
        items: All of its stage.
        versions: The graphs of this compile after each pass, in their order, with their data, in which the names of
            nodes are sets.
    """
    role = role_of(stage.name)
    if role is Role.SOURCE:
        return "adds no node to the graph"
    if role is Role.CODE:
        return "" if item.target in items.by_name else "calls a library"
    if role is Role.SCHEDULE:
        return _of_scheduler_node(item.target)
    if not item.op:
        return ""
    if item.op in _ENDS:
        return _ENDS[item.op]
    if removed := next((v for v in versions if item.element.name in v[1]["removed"]), None):
        return f"removed by the pass {version_name(*removed)}"
    return _of_operation(item, items) or _of_users(item, versions)


def _of_operation(item: Item, items: Items) -> str:
    """Why an operation needs no code, by what it computes."""
    facts, operation = item.facts, _operation(item.target)
    if operation == "copy_" and len(item.inputs) > 1 and _is_in(items, item.inputs[1], item.inputs[0]):
        return "a copy that is not needed: its input was computed in place"
    if operation in _MODES:
        return "sets a mode in which AOTAutograd traces what follows it"
    if item.element.name not in items.needed:
        return "dead: nothing that the graph returns needs it"
    if facts is not None and facts.value.kind == "symbol":
        return "a size: computed by the code around the kernels"
    if why := _of_target(item):
        return why
    if gives_its_input(item, items):
        return "changes nothing: its input is of this type and layout already"
    if (facts is not None and facts.is_view) or item.target in _VIEWS:
        return "a view: its readers use the memory as it is"
    if _is_of_constants(item, items):
        return "folded: it depends on constants alone, and was computed when the program was compiled"
    return ""


def _of_target(item: Item) -> str:
    """Why an operation needs no code, whatever its inputs are."""
    if _operation(item.target) in _CONSTANTS:
        return "a constant: written into the kernels that use it"
    if item.op == "get_attr":
        return "a constant of the module"
    if item.target.startswith("torch._functorch.predispatch."):
        return "a marker of torch.func, removed by tracing"
    return "one of several results of the operation before it" if item.target == "operator.getitem" else ""


def _is_of_constants(item: Item, items: Items) -> bool:
    """Whether all that an operation depends on are constants, which are a part of the compiled program."""
    seen: set[str] = set()
    todo = list(item.inputs)
    while todo:
        if (name := todo.pop()) in seen:
            continue
        seen.add(name)
        above = items.by_name.get(name)
        if above is None or above.op not in ("call", "get_attr"):
            return False
        if above.op == "call" and not above.inputs and _operation(above.target).lower() not in _CONSTANTS:
            return False  # a random number, for one
        todo += above.inputs
    return bool(seen)


def _of_users(item: Item, versions: Sequence[tuple[StageRef, Mapping[str, Any]]]) -> str:
    """Why a node is needed no more, by what became of the nodes that used it."""
    users = item.facts.users if item.facts is not None else ()
    for version, data in versions:
        if any(user in data["removed"] or user in data["changed"] for user in users):
            return f"no longer needed since the pass {version_name(version, data)} changed what used it"
    return ""


def gives_its_input(item: Item, items: Items) -> bool:
    """Whether a node's result is its first input as it was: of a conversion that has nothing to convert."""
    operation = _operation(item.target).removeprefix("_").removesuffix("_copy")
    may = operation in _CONVERSIONS or (item.number != "" and float(item.number) == _NEUTRAL.get(operation))
    same = item.facts is not None and any(_value(items, above) == item.facts.value for above in item.inputs[:1])
    return may and same


def _is_in(items: Items, name: str, memory: str) -> bool:
    """Whether a node's result lies in the memory of another, because it was written there or is a view of it."""
    seen = set()
    while name != memory:
        item = items.by_name.get(name) if name not in seen else None  # a text from elsewhere may go round
        seen.add(name)
        views = item is not None and item.facts is not None and item.facts.is_view
        if item is None or not item.inputs or not (item.writes_in_place or views):
            return False
        name = item.inputs[0]
    return True


def firsts_of(items: Items, rows: list[str]) -> dict[str, str]:
    """Node → the first one that computes the same from the same, whatever copies lie between."""
    found: dict[str, str] = {}
    first: dict[str, str] = {}
    for item in items.items:
        if item.op != "call" or item.writes_in_place:
            continue  # it is there for what it changes, however often it is there
        if gives_its_input(item, items):
            found[item.element.name] = found.get(item.inputs[0], item.inputs[0])
        elif item.element.line <= len(rows):
            target, _, value = rows[item.element.line - 1].partition(";")[0].partition(" = ")
            if target.strip().partition(":")[0] != item.element.name:
                continue  # `a[0] = b;  setitem = a` changes a
            same = _WORD.sub(lambda match: found.get(match[0], match[0]), value.strip())
            found[item.element.name] = first.setdefault(same, item.element.name)
    return found


def _of_scheduler_node(kind: str) -> str:
    if "Nop" in kind:
        return "computes nothing: memory that other kernels write parts of"
    if "Extern" in kind:
        return "one of several results of a library call"
    return ""


def _value(items: Items, name: str) -> Value | None:
    item = items.by_name.get(name)
    return item.facts.value if item is not None and item.facts is not None else None


def version_name(version: StageRef, data: Mapping[str, Any]) -> str:
    """The name of the pass that made a version of a graph; empty if it is not known."""
    return str(data.get("pass") or getattr(version, "passed", ""))


def _operation(target: str) -> str:
    parts = target.split(".")
    return parts[3] if parts[:2] == ["torch", "ops"] and len(parts) > 3 else parts[-1]
