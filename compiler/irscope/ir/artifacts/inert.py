"""Reads a pickle without unpickling it: a global becomes a `Record`, and nothing is imported or called.

The opcodes come from the standard library's ``pickletools``, which only splits bytes.  This module keeps the stack and the
memo that the pickle machine has.  Work is bounded by the number of opcodes; memory by the bytes of the pickle.
"""

from __future__ import annotations

import io
import pickletools
from collections.abc import Iterator
from typing import Any

MOST_BYTES = 1 << 30
MOST_OPCODES = 3_000_000
MOST_DEPTH = 20_000
"""Marks that are open at once; real pickles stay below 1,000."""


class PickleError(Exception):
    """The bytes are not a whole pickle, or they exceed a limit."""


class Record:
    """An object that the pickle would make.

    Args:
        name: Its global (``torch._dynamo.guards.GuardsState``), or the call that makes it.
        args: What that is called with.
    """

    __slots__ = ("args", "items", "name", "state")

    def __init__(self, name: str, args: tuple[Any, ...] = ()) -> None:
        self.name, self.args = name, args
        self.state: Any = None
        self.items: list[Any] = []

    @property
    def short(self) -> str:
        """The last part of its name."""
        return self.name.rpartition(".")[2]

    def get(self, field: str, default: Any = None) -> Any:
        """A field of its state: of ``__dict__`` or of slots."""
        for part in self.state if isinstance(self.state, tuple) else (self.state,):
            if isinstance(part, dict) and field in part:
                return part[field]
        return default


class _Key:
    """A dict's key that is not plain; compared by identity, so that no hash is chosen by the pickle."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


def read(data: bytes) -> Any:
    """What a pickle describes: plain data, and a `Record` for each object.  Raises PickleError."""
    if len(data) > MOST_BYTES:
        raise PickleError(f"it has more than {MOST_BYTES >> 30} GiB")
    try:
        return _Machine().run(data)
    except PickleError:
        raise
    except (ValueError, IndexError, KeyError, TypeError, OverflowError, MemoryError, RecursionError) as error:
        raise PickleError(f"it is damaged or cut off ({type(error).__name__})") from error


def walk(value: Any) -> Iterator[Any]:
    """All values below one, itself first; each object once, however it is nested."""
    seen: set[int] = set()
    left = [value]
    while left:
        here = left.pop()
        below: Any = ()
        if isinstance(here, Record):
            below = (*here.args, here.state, *here.items)
        elif isinstance(here, dict):
            below = (*here, *here.values())
        elif isinstance(here, (list, tuple, set, frozenset)):
            below = here
        elif isinstance(here, _Key):
            below = (here.value,)
        if below != ():
            if id(here) in seen:
                continue
            seen.add(id(here))
        yield here
        left.extend(reversed(tuple(below)))


def _plain_key(key: Any) -> Any:
    if isinstance(key, (str, bytes, bool, type(None))) or (isinstance(key, int) and abs(key) < 1 << 60):
        return key
    return _Key(key)


_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_EMPTY: dict[str, Any] = {"EMPTY_LIST": list, "EMPTY_DICT": dict, "EMPTY_SET": list, "EMPTY_TUPLE": tuple}
_OF_ARGUMENT = frozenset(
    [
        "INT",
        "BININT",
        "BININT1",
        "BININT2",
        "LONG",
        "LONG1",
        "LONG4",
        "STRING",
        "BINSTRING",
        "SHORT_BINSTRING",
        "BINBYTES",
        "SHORT_BINBYTES",
        "BINBYTES8",
        "BYTEARRAY8",
        "UNICODE",
        "SHORT_BINUNICODE",
        "BINUNICODE",
        "BINUNICODE8",
        "FLOAT",
        "BINFLOAT",
    ]
)
_IGNORED = frozenset(("PROTO", "FRAME", "READONLY_BUFFER"))
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}


class _Machine:
    def __init__(self) -> None:
        self._stack: list[Any] = []
        self._marks: list[list[Any]] = []
        self._memo: dict[int, Any] = {}

    def run(self, data: bytes) -> Any:
        for number, (opcode, argument, _) in enumerate(pickletools.genops(io.BytesIO(data))):
            if number >= MOST_OPCODES:
                raise PickleError(f"it has more than {MOST_OPCODES:,} opcodes")
            if opcode.name == "STOP":
                return self._stack.pop()
            self._step(opcode.name, argument)
        raise PickleError("it is cut off")

    def _step(self, name: str, argument: Any) -> None:
        if name in _OF_ARGUMENT:
            self._stack.append(argument)
        elif name in _CONSTANTS:
            self._stack.append(_CONSTANTS[name])
        elif name in _EMPTY:
            self._stack.append(_EMPTY[name]())
        elif name in _TUPLES:
            self._tuple(_TUPLES[name])
        elif name not in _IGNORED:
            getattr(self, f"_{name.lower()}")(argument)

    def _memoize(self, _: Any) -> None:
        self._memo[len(self._memo)] = self._stack[-1]

    def _put(self, index: int) -> None:
        self._memo[index] = self._stack[-1]

    _binput = _long_binput = _put

    def _get(self, index: int) -> None:
        self._stack.append(self._memo[index])

    _binget = _long_binget = _get

    def _mark(self, _: Any) -> None:
        if len(self._marks) >= MOST_DEPTH:
            raise PickleError(f"it is nested more than {MOST_DEPTH:,} deep")
        self._marks.append(self._stack)
        self._stack = []

    def _to_mark(self) -> list[Any]:
        """What is above the last mark, which goes."""
        found, self._stack = self._stack, self._marks.pop()
        return found

    def _tuple(self, count: Any) -> None:
        if count is None:
            found = self._to_mark()
        else:
            found = self._stack[-count:]
            if len(found) < count:
                raise IndexError
            del self._stack[-count:]
        self._stack.append(tuple(found))

    def _pop(self, _: Any) -> None:
        if self._stack:
            self._stack.pop()
        else:
            self._to_mark()

    def _pop_mark(self, _: Any) -> None:
        self._to_mark()

    def _dup(self, _: Any) -> None:
        self._stack.append(self._stack[-1])

    def _list(self, _: Any) -> None:
        found = self._to_mark()
        self._stack.append(found)

    _frozenset = _list

    def _dict(self, _: Any) -> None:
        found = self._to_mark()
        self._stack.append({})
        self._set(found)

    def _set(self, pairs: list[Any]) -> None:
        target = self._stack[-1]
        for key, value in zip(pairs[::2], pairs[1::2], strict=True):
            if isinstance(target, dict):
                target[_plain_key(key)] = value
            else:
                target.items.append((key, value))

    def _setitem(self, _: Any) -> None:
        value, key = self._stack.pop(), self._stack.pop()
        self._set([key, value])

    def _setitems(self, _: Any) -> None:
        self._set(self._to_mark())

    def _add(self, values: list[Any]) -> None:
        target = self._stack[-1]
        (target.items if isinstance(target, Record) else target).extend(values)

    def _append(self, _: Any) -> None:
        self._add([self._stack.pop()])

    def _appends(self, _: Any) -> None:
        self._add(self._to_mark())

    _additems = _appends

    def _global(self, argument: str) -> None:
        self._stack.append(Record(argument.replace(" ", ".")))

    def _stack_global(self, _: Any) -> None:
        attribute, module = self._stack.pop(), self._stack.pop()
        if not (isinstance(attribute, str) and isinstance(module, str)):
            raise TypeError
        self._stack.append(Record(f"{module}.{attribute}"))

    def _reduce(self, _: Any) -> None:
        args, callee = self._stack.pop(), self._stack.pop()
        self._made(callee, args)

    _newobj = _reduce

    def _newobj_ex(self, _: Any) -> None:
        kwargs, args, callee = self._stack.pop(), self._stack.pop(), self._stack.pop()
        self._made(callee, (*args, kwargs))

    def _made(self, callee: Any, args: Any) -> None:
        if not isinstance(args, tuple):
            raise TypeError
        if isinstance(callee, Record) and callee.name == "builtins.getattr" and callee.args[1:]:
            name = f"{getattr(callee.args[0], 'name', '?')}.{callee.args[1]}"
        else:
            name = callee.name if isinstance(callee, Record) else "?"
        is_bytes = name == "_codecs.encode" and args[1:] == ("latin1",) and isinstance(args[0], str)
        self._stack.append(
            args[0].encode("latin1", "replace") if is_bytes else Record(name, args)
        )  # as protocol 2 has them

    def _inst(self, argument: str) -> None:
        found = tuple(self._to_mark())
        self._stack.append(Record(argument.replace(" ", "."), found))

    def _obj(self, _: Any) -> None:
        callee, *args = self._to_mark()
        self._made(callee, tuple(args))

    def _build(self, _: Any) -> None:
        state = self._stack.pop()
        if isinstance(self._stack[-1], Record):
            self._stack[-1].state = state

    def _persid(self, argument: Any) -> None:
        self._stack.append(Record("persistent id", (argument,)))

    def _binpersid(self, _: Any) -> None:
        self._stack.append(Record("persistent id", (self._stack.pop(),)))

    def _ext1(self, argument: Any) -> None:
        self._stack.append(Record(f"copyreg extension {argument}"))

    _ext2 = _ext4 = _ext1

    def _next_buffer(self, _: Any) -> None:
        self._stack.append(Record("buffer outside the pickle"))
