"""Where in Dynamo a graph break is raised: the functions that ran, and the lines that were traced.

The trace has the user's side of a break.  A comparison of two versions also asks which function of Dynamo gave up, since
that is what may have other code in another version.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

from irscope.internals.frames import callers
from irscope.internals.hooks import Hook, Undo, replace_attribute

_MOST_FUNCTIONS = 24
_MOST_PLACES = 64
_DYNAMO = "torch._dynamo."
_RAISING = "torch._dynamo.exc"
_WALK = "torch._dynamo.symbolic_convert"
Note = Callable[[str, list[str], list[str]], None]


def refusal_hook(note: Note) -> Hook:
    """Calls ``note`` with the type, the functions and the lines (``file:line``) of each break that is raised, the innermost first."""
    return Hook(
        "which function of Dynamo raised a graph break",
        _RAISING,
        "2.9 to 2.15",
        lambda module: _watch(module, note),
    )


def _watch(module: types.ModuleType, note: Note) -> Undo:
    kind: Any = module.Unsupported
    made = kind.__init__

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        made(self, *args, **kwargs)
        functions, places = _running()
        note(str(getattr(self, "gb_type", "") or ""), functions, places)

    return replace_attribute(kind, "__init__", init)


def _running() -> tuple[list[str], list[str]]:
    """Dynamo's functions up to the instruction at hand, and the lines of all frames that are traced."""
    functions: list[str] = []
    places: list[str] = []
    for here in callers():
        if len(places) >= _MOST_PLACES:
            break
        module = str(here.f_globals.get("__name__", ""))
        is_step = module == _WALK and here.f_code.co_name == "step"
        if not places and not is_step and module.startswith(_DYNAMO) and module != _RAISING:
            name = f"{module}:{_qualified(here)}"
            if name not in functions and len(functions) < _MOST_FUNCTIONS:
                functions.append(name)
        if is_step:
            walk = here.f_locals.get("self")
            code = getattr(walk, "f_code", None)
            places.append(f"{getattr(code, 'co_filename', '')}:{getattr(walk, 'lineno', 0)}")
    return functions, places


def _qualified(frame: types.FrameType) -> str:
    code: Any = frame.f_code
    if hasattr(code, "co_qualname"):
        return str(code.co_qualname)
    owner = frame.f_locals.get("self")  # Python 3.10: the class that defines the function
    name: str = frame.f_code.co_name
    for kind in type(owner).__mro__ if owner is not None else ():
        if getattr(vars(kind).get(name), "__code__", None) is code:
            return f"{kind.__qualname__}.{name}"
    return name
