"""Runs a script with functions of PyTorch's compiler as another version has them.

A comparison of two versions confirms a function as a cause in this way: the newer environment is run with the text of the
older one's.  A text that needs what this version does not have is not put in place, which leaves a capture gap.
"""

from __future__ import annotations
import __future__

import builtins
import dis
import functools
import types
from collections.abc import Iterator, Mapping
from typing import Any

from irscope.internals.hooks import Hook, Undo

_VERSIONS = "2.9 to 2.15"
_FLAGS = __future__.annotations.compiler_flag
"""Annotations are not evaluated: they may name what the module no longer imports."""
_NAMES = {"unimplemented_v2": "unimplemented"}
"""What 2.9 calls another way, and takes the same arguments."""
_TABLES = ("lowerings", "decompositions", "inplaceable_foreach_ops", "foreach_ops", "needs_realized_inputs")


def hooks(code: Mapping[str, str]) -> list[Hook]:
    """What puts the texts in place: by ``module:function`` or ``module:Class.method``; an empty text takes a method away."""
    found = []
    for name, text in code.items():
        module, _, path = name.partition(":")
        if not module.startswith("torch."):
            raise ValueError(f"{name} is not a function of PyTorch.")
        what = f"the function {module}.{path} as another version has it"
        found.append(Hook(what, module, _VERSIONS, functools.partial(_replaced, path, text)))
    return found


def _replaced(path: str, text: str, module: types.ModuleType) -> Undo:
    """Raises AttributeError or NameError if the text does not fit this version."""
    owner, _, name = path.rpartition(".")
    holder: Any = module
    for part in owner.split(".") if owner else ():
        holder = getattr(holder, part)
    if not text and not (owner and name in vars(holder)):
        raise AttributeError(f"{module.__name__} has no method {path}")
    undo = _kept(module, holder, name)
    try:
        if text:
            setattr(holder, name, _made(module, holder if owner else None, name, text))
        else:
            delattr(holder, name)
    except BaseException:
        undo()
        raise
    return undo


def _made(module: types.ModuleType, owner: Any, name: str, text: str) -> Any:
    """The function of a text.  ``super()`` finds its class in a variable ``__class__`` of the function around it."""
    if owner is not None:
        lines = "\n".join(f"    {line}" for line in text.split("\n"))
        text = f"def _around(__class__):\n{lines}\n    return {name}"
    compiled = compile(text, f"<{module.__name__} of another version>", "exec", _FLAGS, dont_inherit=True)
    space = vars(module)
    wanted = {one for one in _globals(compiled) if one not in space and not hasattr(builtins, one)} - {name, "_around"}
    known = {one: space[_NAMES[one]] for one in wanted if _NAMES.get(one) in space}
    if missing := wanted - known.keys():
        raise NameError(f"this version has no {', '.join(sorted(missing))}")
    space.update(known)  # a name that nothing else uses
    found: dict[str, Any] = {}
    exec(compiled, space, found)  # the function's globals are the module's own
    return found["_around"](owner) if owner is not None else found[name]


def _globals(code: types.CodeType) -> Iterator[str]:
    """Names that a text reads from its module."""
    defined = {one.argval for one in dis.get_instructions(code) if one.opname.startswith("STORE_")}
    for one in dis.get_instructions(code):
        if one.opname == "LOAD_GLOBAL" or (one.opname == "LOAD_NAME" and one.argval not in defined):
            yield str(one.argval)
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            yield from _globals(inner)


def _kept(module: types.ModuleType, holder: Any, name: str) -> Undo:
    """What sets everything back: the function, and the tables in which its decorators write."""
    missing = object()
    before = vars(holder).get(name, missing)
    tables = [(table, dict(table)) for one in _TABLES if isinstance(table := vars(module).get(one), dict)]

    def undo() -> None:
        if before is not missing:
            setattr(holder, name, before)
        elif name in vars(holder):
            delattr(holder, name)
        for table, was in tables:
            table.clear()
            table.update(was)

    return undo
