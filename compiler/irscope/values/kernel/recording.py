"""What one program of a kernel does, statement by statement: the blocks that each statement makes."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any

from irscope.values.kernel.functions import wide
from irscope.values.kernel.kernel_text import names_of_statement
from irscope.vocabulary.records import dataclass

MOST_STATEMENTS = 20_000
"""A program with more is recorded up to there."""
MOST_ELEMENTS = 4096
"""The most elements of a block that are kept."""


@dataclass
class Statement:
    """One execution of a statement.

    Args:
        line: The line of the kernel's text.
        values: What it made, by name, as `described` gives it.
        breaks: Names of what it made that is not finite though everything that it read is.
    """

    line: int
    values: dict[str, dict[str, Any]] = field(default_factory=dict)
    breaks: tuple[str, ...] = ()

    def data(self) -> dict[str, Any]:
        """As JSON."""
        return {"line": self.line, "values": self.values, "breaks": list(self.breaks)}


class Recorder:
    """Looks on while a program runs, and records it; more than one program after the other.

    Args:
        describe: The pointer at an address, in words.
    """

    def __init__(self, tree: ast.Module, code: Any, pointer: Callable[[int], str], *, elements: bool = False) -> None:
        self._code, self._pointer, self._elements = code, pointer, elements
        self.statements: list[Statement] = []
        self.is_cut = False
        self._by_line: dict[int, tuple[tuple[str, ...], tuple[str, ...], ast.stmt]] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.stmt) and not isinstance(node, ast.FunctionDef | ast.If | ast.While):
                self._by_line.setdefault(node.lineno, (*names_of_statement(node), node))
        self._finite: dict[str, bool] = {}
        self._before = 0

    def __call__(self, run: Callable[[], None]) -> None:
        """Runs a program and records it."""
        previous = sys.gettrace()
        sys.settrace(self._enter)
        try:
            run()
        finally:
            sys.settrace(previous)

    def _enter(self, frame: Any, event: str, _: Any) -> Any:
        if frame.f_code is not self._code:
            return None
        self._before = 0
        return self._see

    def _see(self, frame: Any, event: str, _: Any) -> Any:
        if event in ("line", "return"):
            if self._before and not self.is_cut:
                self._done(self._before, frame.f_locals)
            self._before = frame.f_lineno if event == "line" else 0
        return self._see

    def _done(self, line: int, names: Mapping[str, Any]) -> None:
        known = self._by_line.get(line)
        if known is None:
            return
        if len(self.statements) >= MOST_STATEMENTS:
            self.is_cut = True
            return
        written, read, node = known
        statement = Statement(line)
        was_finite = all(self._finite.get(name, True) for name in read)
        broken = []
        for name in written:
            if name in names:
                facts = self.described(name, names[name], names)
                statement.values[name] = facts
                is_finite = not facts.get("non_finite")
                self._finite[name] = is_finite
                if not is_finite and was_finite and not _means_it(node):
                    broken.append(name)
        statement.breaks = tuple(broken)
        self.statements.append(statement)

    def described(self, name: str, value: Any, names: Mapping[str, Any]) -> dict[str, Any]:
        """A value of the kernel as plain data: of a block its shape, dtype, and statistics of what its mask leaves."""
        np: Any = sys.modules["numpy"]
        handle = getattr(value, "handle", None)
        if handle is None or not hasattr(handle, "data"):
            plain = getattr(value, "value", value)
            if isinstance(plain, bool | int | float | str) or plain is None:
                return {
                    "kind": "number",
                    "value": plain if not isinstance(plain, float) or np.isfinite(plain) else str(plain),
                }
            return {"kind": "other", "type": type(value).__name__}
        kind = str(value.dtype)  # a comparison's handle has the type of what it compares
        shape = [int(size) for size in getattr(value, "shape", ())]
        if kind.startswith("pointer<"):
            flat = np.asarray(handle.data).ravel()
            return {
                "kind": "pointer",
                "dtype": kind,
                "shape": shape,
                "to": self._pointer(int(flat[0])) if flat.size else "",
            }
        return self._block(wide(np.asarray(handle.data), value.dtype), kind, shape, {each: names[each] for each in names if each != name and each.endswith("mask")})  # fmt: skip

    def _block(self, data: Any, kind: str, shape: list[int], masks: Mapping[str, Any]) -> dict[str, Any]:
        np: Any = sys.modules["numpy"]
        mask = _mask_of(data.shape, masks, np) if kind != "int1" else None
        live = data if mask is None else data[mask]
        facts: dict[str, Any] = {"kind": "block", "dtype": kind, "shape": shape, "count": int(data.size), "masked": int(data.size - live.size), "min": None, "max": None, "nan": 0, "inf": 0, "non_finite": 0}  # fmt: skip
        if live.size:
            floating = live.dtype.kind == "f"
            if floating:
                facts["nan"], facts["inf"] = int(np.isnan(live).sum()), int(np.isinf(live).sum())
                facts["non_finite"] = facts["nan"] + facts["inf"]
                live = live[np.isfinite(live)]
            if live.size:
                low, high = live.min(), live.max()
                facts["min"], facts["max"] = (float(low), float(high)) if floating else (int(low), int(high))
        if self._elements and data.size <= MOST_ELEMENTS:
            facts["elements"] = [_plain(each) for each in data.ravel().tolist()]
            if mask is not None and facts["masked"]:
                facts["live"] = np.broadcast_to(mask, data.shape).ravel().astype(int).tolist()
        return facts


def _plain(number: Any) -> Any:
    if isinstance(number, float):
        return number if number == number and abs(number) != float("inf") else str(number)
    return number


def _mask_of(shape: tuple[int, ...], masks: Mapping[str, Any], np: Any) -> Any:
    """The lanes of a block that the kernel's masks leave; None if no mask fits its shape."""
    found = None
    for value in masks.values():
        data = np.asarray(getattr(getattr(value, "handle", None), "data", 0))
        if (
            data.dtype.kind != "b"
            or data.ndim != len(shape)
            or any(own not in (1, size) for own, size in zip(data.shape, shape, strict=True))
        ):
            continue
        whole = np.broadcast_to(data, shape)
        found = whole if found is None else found & whole
    return found


def _means_it(node: ast.stmt) -> bool:
    """Whether a statement has an infinity or NaN as a constant: where a reduction begins, or of what is masked."""
    for each in ast.walk(node):
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Name) and each.func.id == "float":
            return True
        if isinstance(each, ast.Constant) and isinstance(each.value, float) and abs(each.value) == float("inf"):
            return True
    return False
