"""What Dynamo's variable trackers stand for, in a few words: ``TensorVariable f32[4, 8]cpu = l_x_ from L['x']``.

A description only reads attributes that are there: it never realizes a lazy tracker (which would install guards),
never calls a method of a tracker or of the user's objects, and never asks for a `repr` that could be long.
Trackers are told apart by the names of their classes, so that a class that does not exist in some torch costs nothing;
one that is not known is described by its class alone.
"""

from __future__ import annotations

import types
from collections import deque
from collections.abc import Callable
from typing import Any, Union

from irscope.vocabulary.dtypes import SHORT

_LONGEST = 40
_LONGEST_SOURCE = 120
_FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType)
_PLAIN = (int, float, bool, complex, type(None), type(...))


Description = Union[str, tuple[str, Any, str]]
"""Words; or words, the graph node that the tracker stands for, whose name Dynamo changes when it is stored into a
variable, and more words; see `text_of`."""


def describe(tracker: Any) -> Description:
    """A tracker in a few words.  `stamp` has what may change while the tracker stays the same object."""
    cls = type(tracker)
    words = _WORDS.get(cls)
    if words is None:
        words = _WORDS[cls] = _words_for(cls)
    try:
        facts = words(tracker.__dict__)
    except Exception:  # noqa: BLE001  it is only a description
        facts = ""
    if words is _lazy and facts:
        return facts  # type: ignore[no-any-return]
    source = tracker.__dict__.get("source")
    came_from = "" if source is None else _came_from(source)
    if type(facts) is tuple:
        return (f"{cls.__name__} {facts[0]}", facts[1], came_from)
    return f"{cls.__name__} {facts}{came_from}" if facts else f"{cls.__name__}{came_from}"


def text_of(description: Description) -> str:
    """The words, with the name that the node has now."""
    if isinstance(description, str):
        return description
    return f"{description[0]} = {description[1].name}{description[2]}"


def _came_from(source: Any) -> str:
    """`` from L['x']``; its end, if it is long."""
    try:
        name = source.name
        text = name if type(name) is str else str(name())  # a method before torch 2.10
    except Exception:  # noqa: BLE001
        return ""
    return f" from {text}" if len(text) <= _LONGEST_SOURCE else f" from …{text[-_LONGEST_SOURCE:]}"


def stamp(tracker: Any) -> int | None:
    """Changes when the description of this very object may have: lazy trackers are realized, containers grow.

    None for a tracker that is described once and for all.
    """
    attributes = tracker.__dict__
    if "items" in attributes:
        items = attributes["items"]
        if "index" in attributes:
            return len(items) + 1_000_000 * int(attributes["index"])
        if not isinstance(items, _MUTABLE) or type(tracker).__name__.startswith(_FIXED):
            return None
        return len(items)
    if "_cache" in attributes:
        tracker = attributes["_cache"].vt
        return -1 if tracker is None else stamp(tracker)
    return None


_MUTABLE = (list, dict, deque)  # from torch 2.15 on an OrderedDict's items are one themselves
_FIXED = ("Tuple", "Size", "NamedTuple", "Slice", "Range")


def _words_for(cls: type) -> Callable[[dict[str, Any]], Any]:
    for base in cls.__mro__:
        if base.__name__ in _BY_CLASS:
            return _BY_CLASS[base.__name__]
    return _of_items


def _tensor(of: dict[str, Any]) -> tuple[str, Any]:
    node = of["proxy"].node
    size = of.get("_size")
    if size is None:
        size = node.meta["example_value"].shape
    name = str(of["dtype"]).removeprefix("torch.")
    return (f"{SHORT.get(name, name)}[{', '.join(map(str, size))}]{of['device']}", node)


def _symbol(of: dict[str, Any]) -> tuple[str, Any]:
    return (_short(str(of["sym_num"])), of["proxy"].node)


def _constant(of: dict[str, Any]) -> str:
    return value_words(of["value"])


def value_words(value: Any) -> str:
    """A value of the user's: itself where that is short and harmless, else its type."""
    cls = type(value)
    if cls in _PLAIN:
        return _short(repr(value)) if cls is not int or value.bit_length() < 200 else "int"
    if cls is str:
        return _short(repr(value[:_LONGEST]))
    if cls in _FUNCTIONS or cls is type:
        return str(value.__name__)
    if cls.__module__ == "torch" and cls.__name__ in ("dtype", "device", "layout", "memory_format"):
        return str(value)
    return cls.__name__


def _function(of: dict[str, Any]) -> str:
    function = of["fn"]
    return str(function.__qualname__ if type(function) is types.FunctionType else getattr(function, "__name__", ""))


def _nested_function(of: dict[str, Any]) -> str:
    return text_of(describe(of["fn_name"])).partition(" ")[2].strip("'")


def _named_value(of: dict[str, Any]) -> str:
    value = of["value"]
    if isinstance(value, (type, types.ModuleType, *_FUNCTIONS)):
        return str(value.__name__)
    return str(type(value).__name__)


def _module(of: dict[str, Any]) -> str:
    return str(of["module_key"])


def _instance(of: dict[str, Any]) -> str:
    cls = of.get("value_type") or type(of["value"])
    return str(cls.__name__)


def _iterator(of: dict[str, Any]) -> str:
    return f"at {of['index']} of {len(of['items'])}"


def _of_items(of: dict[str, Any]) -> str:
    items = of.get("items")
    return f"of {len(items)}" if isinstance(items, (list, tuple, dict, deque)) else ""


def _range(of: dict[str, Any]) -> str:
    return ", ".join(str(item.__dict__["value"]) for item in of["items"])


def _lazy(of: dict[str, Any]) -> Description:
    """What has been looked at is described as what it is; else the type of the value and where it comes from."""
    cache = of["_cache"]
    if cache.vt is not None:
        return describe(cache.vt)
    return f"not looked at yet: {value_words(cache.value)}{_came_from(cache.source)}"


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


_WORDS: dict[type, Callable[[dict[str, Any]], Any]] = {}
_BY_CLASS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "LazyVariableTracker": _lazy,
    "TensorVariable": _tensor,
    "SymNodeVariable": _symbol,
    "ConstantVariable": _constant,
    "EnumVariable": _constant,
    "UserFunctionVariable": _function,
    "BaseUserFunctionVariable": _function,
    "NestedUserFunctionVariable": _nested_function,
    "BuiltinVariable": _function,
    "NNModuleVariable": _module,
    "UserDefinedClassVariable": _named_value,
    "UserDefinedObjectVariable": _instance,
    "PythonModuleVariable": _named_value,
    "BaseTorchVariable": _named_value,
    "SkipFunctionVariable": _named_value,
    "ListIteratorVariable": _iterator,
    "RangeVariable": _range,
    "SliceVariable": _range,
}
