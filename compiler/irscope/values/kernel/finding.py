"""What is looked for in all programs of a launch: accesses of an element, and conditions that are met after a statement."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from irscope.values.expressions import evaluate
from irscope.values.facts import BadExpression
from irscope.values.kernel.blocks import block_facts
from irscope.values.kernel.memory import Checks
from irscope.values.kernel.recording import Recorder

_MOST_FOUND = 1000


class Finder(Recorder):
    """Looks for conditions that are met after a statement, and tells which execution of a line an access belongs to.

    Args:
        conditions: By line of the kernel's text.
    """

    def __init__(self, *given: Any, conditions: Mapping[int, str]) -> None:
        super().__init__(*given, elements=True)
        self._conditions = conditions
        self._times: Counter[int] = Counter()
        self.found: dict[int, int] = {}
        """Lines whose condition was met in the program that ran last, and how often it had executed the line before."""

    def __call__(self, run: Callable[[], None]) -> None:
        """Runs a program."""
        self._times.clear()
        self.found.clear()
        super().__call__(run)

    def times(self, line: int) -> int:
        """How often the program has executed a line before."""
        return self._times[line]

    def _done(self, line: int, names: Mapping[str, Any]) -> None:
        self._times[line] += 1
        if (condition := self._conditions.get(line)) is not None and line not in self.found:
            with contextlib.suppress(BadExpression):  # a name that has no value yet
                if evaluate(condition, lambda name: block_facts(self.described(name, names[name], names))):
                    self.found[line] = self._times[line] - 1


class Found:
    """What a `Finder` finds.

    Args:
        around: What runs each program, if nothing is looked for.
    """

    def __init__(self, around: Callable[[Callable[[], None]], None] | None) -> None:
        self.around = around
        self.rows: list[dict[str, Any]] = []
        """``number`` of the program, ``line``, ``times`` that it had executed the line before; ``kind``: *condition*, *read* or *write*."""

    def look(self, finder: Finder, checks: Checks, asked: Mapping[tuple[str, int], tuple[str, int]]) -> None:
        """Looks from now on, also for accesses of elements: of the memory, with the parameter and index that are asked for."""

        def add(line: int, times: int, **row: Any) -> None:
            if len(self.rows) < _MOST_FOUND:
                self.rows.append({**row, "number": checks.number, "line": line, "times": times})

        def run(program: Callable[[], None]) -> None:
            finder(program)
            for line, times in finder.found.items():
                add(line, times, kind="condition")

        def touched(argument: str, index: int, kind: str) -> None:
            name, element = asked[argument, index]
            add(
                line := checks.line(),
                finder.times(line),
                kind="read" if kind == "read" else "write",
                argument=name,
                index=element,
            )

        checks.watched = {name: frozenset(at for other, at in asked if other == name) for name, _ in asked}
        checks.touched = touched
        self.around = run
