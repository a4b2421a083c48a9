"""Dataclasses that cost little to declare.

`dataclasses.dataclass` writes and compiles up to seven methods for each class, which takes half a millisecond.  The
command line and a run's process declare some hundred classes before the script begins, and most of them are never
compared, printed, or even made.  So here the fields are worked out when they are asked for, and each method is made
when it is first called.  Everything else is the standard library's: fields, `replace`, `asdict`, matching.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls=None, /, *, frozen=False, kw_only=False):
        """A decorator as `dataclasses.dataclass`, with the options that the classes here need."""
        return (lambda cls: _declared(cls, frozen, kw_only)) if cls is None else _declared(cls, frozen, kw_only)


def _declared(cls: Any, frozen: bool, kw_only: bool) -> Any:
    own = set(vars(cls))
    if "__eq__" in own and vars(cls)["__hash__"] is None:
        own.remove("__hash__")  # Python has set it, not the class
    if not cls.__doc__:
        cls.__doc__ = cls.__name__  # else the signature is worked out for it
    for name in _DERIVED:
        setattr(cls, name, _Derived(cls, name, kw_only))
    methods: dict[str, Any] = {
        "__init__": _made_later(cls, "__init__", lambda: _written_init(cls, frozen)),
        "__repr__": _made_later(cls, "__repr__", lambda: _repr_of(cls)),
        "__eq__": _made_later(cls, "__eq__", lambda: _eq_of(cls)),
        # As in the standard library: what may change has no hash.
        "__hash__": _made_later(cls, "__hash__", lambda: _hash_of(cls)) if frozen else None,
    }
    if frozen:
        methods |= {name: _refusal(cls, name) for name in ("__setattr__", "__delattr__")}
    for name, method in methods.items():
        if name not in own:
            setattr(cls, name, method)
    if "__init__" in own:
        dataclasses.fields(cls)  # the defaults are in place before an object is made
    return cls


_DERIVED = ("__dataclass_fields__", "__dataclass_params__", "__match_args__")
_deriving = threading.RLock()


class _Derived:
    """Stands for an attribute that the standard library gives a dataclass, until one of them is asked for."""

    def __init__(self, cls: Any, name: str, kw_only: bool) -> None:
        self._cls, self._name, self._kw_only = cls, name, kw_only

    def __get__(self, _instance: object, owner: Any) -> Any:
        with _deriving:  # another thread may be at it
            if vars(self._cls)[self._name] is self:
                dataclasses.dataclass(init=False, repr=False, eq=False, kw_only=self._kw_only)(self._cls)
                positional = [one.name for one in dataclasses.fields(self._cls) if one.init and not one.kw_only]
                setattr(self._cls, _DERIVED[-1], tuple(positional))
        return getattr(owner, self._name)


def _made_later(cls: Any, name: str, make: Callable[[], Any]) -> Any:
    """A method that makes the real one when it is called.  Two threads may both do so: the results are alike."""

    def first(self: Any, *args: Any, **kwargs: Any) -> Any:
        real = make()
        setattr(cls, name, real)
        return real(self, *args, **kwargs)

    first.__name__ = name
    return first


def _written_init(cls: Any, frozen: bool) -> Any:
    fields = dataclasses.fields(cls)
    names: dict[str, Any] = {"_set": object.__setattr__, "_none_given": _NONE_GIVEN}
    parameters, lines = [], []
    for number, field in enumerate(sorted(fields, key=lambda field: field.kw_only is True)):
        value = field.name
        if field.kw_only and field.init and "*" not in parameters:
            parameters.append("*")
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
    text = f"def __init__({', '.join(['self', *parameters])}):\n {body}"
    # Not the text itself: to execute a text makes CPython forget that a KeyboardInterrupt is about to end the process.
    exec(compile(text, "<record>", "exec"), names)
    real = names["__init__"]
    real.__qualname__ = f"{cls.__qualname__}.__init__"
    return real


_NONE_GIVEN: Any = object()


def _values_of(fields: tuple[Any, ...]) -> Callable[[Any], Any]:
    names = [field.name for field in fields if field.compare]
    return attrgetter(*names) if names else lambda _: ()


def _eq_of(cls: Any) -> Callable[[Any, object], Any]:
    values = _values_of(dataclasses.fields(cls))

    def __eq__(self: Any, other: object) -> Any:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return values(self) == values(other)

    return __eq__


def _hash_of(cls: Any) -> Callable[[Any], int]:
    values = _values_of(dataclasses.fields(cls))

    def __hash__(self: Any) -> int:
        return hash(values(self))

    return __hash__


def _repr_of(cls: Any) -> Callable[[Any], str]:
    names = [field.name for field in dataclasses.fields(cls) if field.repr]

    def __repr__(self: Any) -> str:
        return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

    return __repr__


def _refusal(cls: Any, name: str) -> Any:
    """The ``__setattr__`` or ``__delattr__`` of a class whose objects do not change."""
    does = "assign to" if name == "__setattr__" else "delete"

    def refuse(self: Any, attribute: str, *value: object) -> None:
        if type(self) is cls or any(field.name == attribute for field in dataclasses.fields(cls)):
            raise dataclasses.FrozenInstanceError(f"cannot {does} field {attribute!r}")
        getattr(super(cls, self), name)(attribute, *value)

    refuse.__name__ = name
    return refuse
