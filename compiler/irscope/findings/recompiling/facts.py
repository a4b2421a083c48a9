"""What the advice on a recompilation is made from."""

from __future__ import annotations

import ast
import functools
import itertools
from collections.abc import Mapping, Sequence

from irscope.findings.recompiling.arguments import Argument, CallSite
from irscope.findings.recompiling.calls import Call, Sizes, varying
from irscope.ir.guard_text import FailedGuard
from irscope.vocabulary.records import dataclass


@dataclass(frozen=True)
class Now:
    """What a guarded thing is at the call that did not fit.

    Args:
        text: A plain value (or a length) as text; None for others.
        type: The name of its type; None if the thing is not found.
        of_module: Whether it is an attribute of a module.
        container: The name of the type of a thing whose length is guarded; empty for others.
        is_member: Whether it is a member of an enum.
    """

    text: str | None = None
    type: str | None = None
    of_module: bool = False
    container: str = ""
    is_member: bool = False


@dataclass(frozen=True)
class Facts:
    """What is known about one recompilation.

    Args:
        guard: The guard that failed of the nearest older compile.
        also: What else fails of it.
        guards: The first guard that failed of each older compile, newest first.
        is_again: Whether the function was compiled for the same cause before.
        now: What the guarded thing is now.
        calls: The calls for which the function was compiled, the one of this compile last.
        function: The function in the syntax tree of the user's file; None for a function of a library.
        file: The file of the place where the guarded thing is read.
        reader: The function around that place.
        is_cut: Whether a graph break cuts the function, so that what follows is compiled for itself.
    """

    guard: FailedGuard
    also: tuple[FailedGuard, ...]
    guards: tuple[FailedGuard, ...]
    is_again: bool
    now: Now
    calls: Sequence[Call]
    function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | None
    file: str
    reader: ast.AST | None
    is_cut: bool

    @property
    def older(self) -> tuple[FailedGuard, ...]:
        """The guards of other older compiles that failed too, newest first."""
        return tuple(guard for guard in self.guards if guard is not self.guard)

    @property
    def other(self) -> FailedGuard | None:
        """The first thing of another sort that changed, too; None if there is none."""
        parts = tuple(f"{self.guard.source}{sign}" for sign in ".[" if self.guard.source)
        return next(
            (one for one in self.also if one.code != self.guard.code and not one.source.startswith(parts)), None
        )

    @functools.cached_property
    def sites(self) -> tuple[CallSite, CallSite] | None:
        """The first call and the one of this recompilation."""
        if not self.calls:
            return None
        return CallSite(self.calls[0], self.function), CallSite(self.calls[-1], self.function)

    @functools.cached_property
    def varying(self) -> dict[str, tuple[int, ...]]:
        """The dimensions that were not the same in all calls, of all tensors."""
        found = varying(self.calls)
        source, dimension = self.guard.source, self.guard.dimension
        if dimension is not None and dimension not in found.get(source, ()):
            found[source] = tuple(sorted((*found.get(source, ()), dimension)))
        return found

    @property
    def has_size_0_or_1(self) -> bool:
        """Whether one of the two sizes that differ is 0 or 1, for which PyTorch always compiles."""
        sizes = self.guard.sizes
        if self.guard.text.startswith("2 <= ") and self.guard.dimension is not None:
            sizes = (0 if self.size_now is None else self.size_now,)
        return any(size <= 1 for size in sizes)

    @property
    def size_now(self) -> int | None:
        """The guarded size in the call of this compile; None if the guard is on no size of a tensor of the call."""
        now, dimension = self.tensors.get(self.guard.source), self.guard.dimension
        return (
            now.sizes[dimension] if now is not None and dimension is not None and dimension < len(now.sizes) else None
        )

    @property
    def tensors(self) -> Mapping[str, Sizes]:
        """The tensors of the call."""
        return self.calls[-1].tensors if self.calls else {}

    def argument(self, path: str, first: bool = False) -> Argument | None:
        """What the user's call passes for it."""
        return self.sites[0 if first else 1].argument(path) if self.sites else None

    def line(self, first: bool = False) -> int | None:
        """The line of the call, if a statement can be put before it."""
        return self.sites[0 if first else 1].line if self.sites else None

    def earlier_values(self) -> list[str]:
        """The values of the guarded thing in older compiles, oldest first, where the guards tell them."""
        mine = [guard for guard in reversed(self.guards) if guard.source == self.guard.source]
        return [guard.was for guard in mine if guard.was]

    def grows(self) -> list[str] | None:
        """The values of a number or a length that got larger with each compile, this one's last; None if it did not."""
        texts = [*self.earlier_values(), *([self.now.text] if self.now.text else [])]
        if len(texts) < 3 or not all(text.lstrip("-").isdigit() for text in texts):
            return None
        numbers = [int(text) for text in texts]
        return texts if all(a < b for a, b in itertools.pairwise(numbers)) else None
