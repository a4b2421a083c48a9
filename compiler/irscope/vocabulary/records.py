"""Dataclasses that cost little to declare.

`dataclasses.dataclass` writes and compiles up to seven methods for each class, which takes half a millisecond.  The
command line and a run's process declare some hundred classes before the script begins, and most of them are never
compared, printed, or even made.  So here only ``__init__`` is written, when the first object is made; the other
methods are the same functions for all classes.  Everything else is the standard library's: fields, `replace`,
`asdict`, matching.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls=None, /, *, frozen=False):
        """A decorator as `dataclasses.dataclass`, with the one option that most classes need."""
        return (lambda cls: _declared(cls, frozen)) if cls is None else _declared(cls, frozen)


def _declared(cls: Any, frozen: bool) -> Any:
    own = set(vars(cls))
    if "__eq__" in own and vars(cls)["__hash__"] is None:
        own.remove("__hash__")  # Python has set it, not the class
    if not cls.__doc__:
        cls.__doc__ = cls.__name__  # else the signature is worked out for it
    dataclasses.dataclass(init=False, repr=False, eq=False)(cls)
    fields = dataclasses.fields(cls)
    methods: dict[str, Any] = {"__init__": _first_init(cls, fields, frozen), "__repr__": _repr_of(fields)}
    # As in the standard library: what may change has no hash.
    methods |= {"__eq__": _eq_of(fields), "__hash__": _hash_of(fields) if frozen else None}
    if frozen:
        methods |= _refusals(cls, fields)
    for name, method in methods.items():
        if name not in own:
            setattr(cls, name, method)
    return cls


def _first_init(cls: Any, fields: tuple[Any, ...], frozen: bool) -> Callable[..., None]:
    """An ``__init__`` that writes the real one when it is called.  Two threads may both do so: the results are alike."""

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        cls.__init__ = real = _written_init(cls, fields, frozen)
        real(self, *args, **kwargs)

    return __init__


def _written_init(cls: Any, fields: tuple[Any, ...], frozen: bool) -> Any:
    names: dict[str, Any] = {"_set": object.__setattr__, "_none_given": _NONE_GIVEN}
    parameters, lines = [], []
    for number, field in enumerate(fields):
        value = field.name
        if field.default_factory is not dataclasses.MISSING:
            names[f"_make{number}"] = field.default_factory
            parameters.append(f"{field.name}=_none_given")
            value = f"_make{number}() if {field.name} is _none_given else {field.name}"
        elif field.default is not dataclasses.MISSING:
            names[f"_default{number}"] = field.default
            parameters.append(f"{field.name}=_default{number}")
        else:
            parameters.append(field.name)
        if not field.init:
            parameters.pop()
            if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
                continue
            value = f"_default{number}" if field.default is not dataclasses.MISSING else f"_make{number}()"
        lines.append(f"_set(self, {field.name!r}, {value})" if frozen else f"self.{field.name} = {value}")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    body = "\n ".join(lines) or "pass"
    exec(f"def __init__({', '.join(['self', *parameters])}):\n {body}", names)
    real = names["__init__"]
    real.__qualname__ = f"{cls.__qualname__}.__init__"
    return real


_NONE_GIVEN: Any = object()


def _values_of(fields: tuple[Any, ...]) -> Callable[[Any], Any]:
    names = [field.name for field in fields if field.compare]
    return attrgetter(*names) if names else lambda _: ()


def _eq_of(fields: tuple[Any, ...]) -> Callable[[Any, object], Any]:
    values = _values_of(fields)

    def __eq__(self: Any, other: object) -> Any:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return values(self) == values(other)

    return __eq__


def _hash_of(fields: tuple[Any, ...]) -> Callable[[Any], int]:
    values = _values_of(fields)

    def __hash__(self: Any) -> int:
        return hash(values(self))

    return __hash__


def _repr_of(fields: tuple[Any, ...]) -> Callable[[Any], str]:
    names = [field.name for field in fields if field.repr]

    def __repr__(self: Any) -> str:
        return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

    return __repr__


def _refusals(cls: Any, fields: tuple[Any, ...]) -> dict[str, Any]:
    names = {field.name for field in fields}

    def __setattr__(self: Any, name: str, value: object) -> None:
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def __delattr__(self: Any, name: str) -> None:
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    return {"__setattr__": __setattr__, "__delattr__": __delattr__}
