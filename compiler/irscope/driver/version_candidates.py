"""Which functions of PyTorch's compiler may cause the differences of a script, with what takes each back.

Thousands differ between two versions.  Asked about are those that a difference leads to: what was running in Dynamo when a
graph break of only one side was raised, what its classes have gained, and what lowers an operation of the script's graphs.
"""

from __future__ import annotations

import json
import keyword
import os
import re
from collections.abc import Callable, Iterable, Sequence

from irscope.comparing.versions.code import FunctionChange, Installation, Refusal, function_changes, new_methods
from irscope.comparing.versions.differences import Difference
from irscope.comparing.versions.environments import LOWERING, PACKAGE, EnvironmentChange, Facts
from irscope.driver.search import Candidate, Cause, Flip
from irscope.protocol import from_json
from irscope.runner.evidence import REFUSALS

_MOST_BYTES = 16 << 20
_CODEGEN = "torch._inductor.codegen"
_WORD = re.compile(r"[A-Za-z]+")
_TRACING = "torch._dynamo.variables"
_SHORTEST = 4
_COMMON = frozenset({*keyword.kwlist, "torch", "self", "tensor"})
_OF_BREAKS = ("finding", "compile", "graph", "outcome")


def read_refusals(folder: str) -> list[Refusal]:
    """The graph breaks of a run, from its folder of evidence; what cannot be read is left out."""
    found = []
    try:
        with open(os.path.join(folder, REFUSALS), encoding="utf-8") as file:
            lines = file.read(_MOST_BYTES).splitlines()
    except (OSError, ValueError):
        return []
    for line in lines:
        try:
            found.append(from_json(Refusal, json.loads(line)))
        except (ValueError, TypeError, KeyError):
            continue
    return found


class Functions:
    """The functions of both installations that differences lead to.

    Args:
        old, new: What both environments have.
        refusals: The graph breaks of the older and of the newer run.
    """

    def __init__(self, old: Facts, new: Facts, refusals: tuple[Sequence[Refusal], Sequence[Refusal]]) -> None:
        self._facts = old, new
        self._old, self._new = Installation(old.folder), Installation(new.folder)
        self._refusals = refusals

    def of_breaks(self, left: Iterable[Difference]) -> list[Candidate]:
        """What was running when one side broke at a line of these differences, and has other code."""
        return _older(function_changes(self._old, self._new, self._running(left)))

    def gained(self, left: Iterable[Difference]) -> list[Candidate]:
        """Methods that the newer version alone has in the classes of what was running, named after something of the line."""
        differences = list(left)
        words = {word for one in differences for word in _words_of_line(one.file, one.line)}
        found = new_methods(self._old, self._new, self._running(differences))
        return _older(one for one in found if words & set(_WORD.findall(one.name.rpartition(".")[2].replace("_", " "))))

    def about(self, left: Iterable[Difference]) -> list[Candidate]:
        """What in Dynamo's variables says something else about a name in the user's line than the older version."""
        words = {word for one in left if one.kind in _OF_BREAKS for word in _words_of_line(one.file, one.line)}
        words = {word for word in words if len(word) >= _SHORTEST} - _COMMON
        names = dict.fromkeys(self._new.functions_with(words, _TRACING))
        found = [one for one in function_changes(self._old, self._new, names) if one.text and one.change.after]
        return _older(one for one in found if _said(one.text, words) != _said(self._new.text(one.name), words))

    def told(self, left: Iterable[Difference]) -> list[Cause]:
        """For a break that only one side has: where that side raised it, as evidence that Dynamo changed; not confirmed."""
        old, new = (facts.torch for facts in self._facts)
        found = []
        for one in left:
            which = _side_of(one)
            place = f"{one.file}:{one.line}"
            raised = [] if which is None else [refusal for refusal in self._refusals[which] if place in refusal.places]
            if raised and raised[0].functions:
                mine, other = (old, new) if which == 0 else (new, old)
                function = raised[0].functions[0].replace(":", ".")
                how = f"torch {mine} gives up in {function} ({raised[0].gb_type or 'without a type'}), torch {other} does not"
                found.append(Cause((EnvironmentChange(PACKAGE, "torch", old, new),), False, how, (one,)))
        return found

    def of_lowerings(self, changes: Iterable[EnvironmentChange], is_used: Callable[[str], bool]) -> list[Candidate]:
        """What lowers an operation of the script's graphs, and has other code."""
        old, new = self._facts
        names = [
            function
            for one in changes
            if one.kind == LOWERING and (function := new.lowered_by.get(one.name, "")) and is_used(one.name)
            and old.lowered_by.get(one.name) == function
        ]  # fmt: skip
        return _older(one for one in function_changes(self._old, self._new, dict.fromkeys(names)) if one.text)

    def that_write(self, words: set[str]) -> list[Candidate]:
        """What generates code, has other code, and has one of these words of kernels in it."""
        names = dict.fromkeys([*self._new.functions_with(words, _CODEGEN), *self._old.functions_with(words, _CODEGEN)])
        return _older(one for one in function_changes(self._old, self._new, names) if one.text and one.change.after)

    def _running(self, left: Iterable[Difference]) -> list[str]:
        """Functions of Dynamo, those of the breaks that only one side has first."""
        places = {f"{one.file}:{one.line}" for one in left if one.kind in _OF_BREAKS}
        sides = [[one for one in side if places & set(one.places)] for side in self._refusals]
        kinds = [{(one.gb_type, one.places) for one in side} for side in sides]
        only = [
            one
            for side, other in ((0, 1), (1, 0))
            for one in sides[side]
            if (one.gb_type, one.places) not in kinds[other]
        ]
        return list(dict.fromkeys(function for one in only for function in one.functions))


def _side_of(one: Difference) -> int | None:
    """Whether the older or the newer run alone has a graph break; None for another difference."""
    state, _, rest = one.what.partition(": ")
    is_break = one.kind == "finding" and rest.startswith(("graph-break", "compile-error"))
    return {"gone": 0, "new": 1}.get(state) if is_break else None


def _older(changes: Iterable[FunctionChange]) -> list[Candidate]:
    return [(one.change, Flip(code={one.name: one.text})) for one in changes]


def _said(text: str, words: set[str]) -> list[str]:
    """The lines of a function in which one of the words is."""
    return [line.strip() for line in text.split("\n") if words & set(_WORD.findall(line.replace("_", " ")))]


def _words_of_line(file: str, line: int) -> set[str]:
    """Names in a line of the user's; none if the file cannot be read."""
    try:
        with open(file, encoding="utf-8", errors="replace") as opened:
            text = opened.read(_MOST_BYTES).split("\n")
    except OSError:
        return set()
    return set(_WORD.findall(text[line - 1].replace("_", " "))) if 0 < line <= len(text) else set()
