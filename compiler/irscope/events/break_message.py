"""PyTorch's own text of a graph break, taken apart."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import json
import os
import re
import sys

from irscope.vocabulary.patterns import pattern
from irscope.vocabulary.records import dataclass

_CHAIN = pattern(r"\*\*\* While handling this graph break, another graph break occurred: \*\*\*")
_LINK = pattern(r"https?://\S*/gb/gb(?P<number>\d+)\.html")
_PART = pattern(r"^  (Higher Order Operator|Explanation|Hint|Developer debug context): ?", re.MULTILINE)
_REASON = pattern(
    r"Graph Break Reason: (?:[^\n]*:\n\s*\n)?(?P<reason>.+?)(?=\n\s*(?:\n|User code traceback:|Traceback \()|\Z)",
    re.DOTALL,
)
DATA_DEPENDENT_GUARD = "data-dependent-guard"
_GUARD = pattern(
    r"Could not (?:guard on|extract specialized integer from) data-dependent expression (?P<expression>.+?) \(unhinted: "
)
_RELATION = pattern(r"(?P<name>Eq|Ne)\((?P<left>[^,]+), (?P<right>[^,]+)\)")
_SIGNS = {"Eq": "==", "Ne": "!="}
_CODE = pattern(r"<code object (\w+) at 0x[0-9a-f]+, file [^>]*>")


@dataclass(frozen=True)
class BreakMessage:
    """One graph break as PyTorch words it.  ``code`` is its GB id, or empty if PyTorch gives none."""

    type: str
    explanation: str
    hints: tuple[str, ...]
    context: str
    code: str
    link: str | None


def parse_break_messages(text: str) -> list[BreakMessage]:
    """The graph breaks in an exception's message, the cause first.

    One break rethrown by another (a break inside a loop) has several; a text that is not a graph break has none.
    """
    return [message for part in _CHAIN.split(text) if (message := _parse(part)) is not None]


def _parse(text: str) -> BreakMessage | None:
    first = _PART.search(text)
    if first is None:
        return None if (reason := _REASON.search(text)) is None else sentences(reason["reason"])
    # What is above the first part ends with the type; before it may be a sentence of who caught the break.
    heads = [line for line in text[: first.start()].strip().split("\n") if line.strip()]
    if not heads:
        return None
    type = heads[-1].strip().removeprefix("Graph Break Reason: ")
    marks = list(_PART.finditer(text))
    parts: dict[str, list[str]] = {}
    for mark, end in zip(marks, [*(m.start() for m in marks[1:]), len(text)], strict=True):
        body = text[mark.end() : end]
        if mark[1] == "Developer debug context":
            body = re.split(r"\n\s*\n", body, maxsplit=1)[0]
        parts.setdefault(mark[1], []).append(_dedent(body))
    link = _LINK.search(text)
    code = f"GB{link['number']}" if link else code_of_type(type)
    return BreakMessage(
        type=type,
        explanation="\n".join(parts.get("Explanation", [])),
        hints=tuple(parts.get("Hint", [])),
        context="\n".join(parts.get("Developer debug context", [])),
        code=code,
        link=link[0] if link else None,
    )


def sentences(text: str) -> BreakMessage:
    """A break without parts, of which torch 2.9 still has some: the first sentence is its type.  What comes behind an
    empty line (where the user's code was) is left out."""
    plain = " ".join(re.split(r"\n\s*\n", text.strip(), maxsplit=1)[0].split())
    type, _, more = _CODE.sub(r"`\1`", plain).partition(". ")
    type = type.rstrip(".:")
    return BreakMessage(type, more, (), "", code_of_type(type), None)


def parse_data_dependent_guard(text: str) -> BreakMessage | None:
    """What an exception says of a guard on a number that only the graph computes; None if it is of something else.

    PyTorch gives it no id, and words it in several ways: by itself, in a loop, as a branch.
    """
    match = _GUARD.search(text)
    if match is None:
        return None
    asked = match["expression"]
    if relation := _RELATION.fullmatch(asked):  # ``Eq(u0, 0)`` is ``u0 == 0``
        asked = f"{relation['left']} {_SIGNS[relation['name']]} {relation['right']}"
    return BreakMessage("Data-dependent guard", "", (), asked, DATA_DEPENDENT_GUARD, None)


def _dedent(body: str) -> str:
    return "\n".join(
        line.strip() if i == 0 else line.removeprefix("    ").rstrip()
        for i, line in enumerate(body.strip("\n").split("\n"))
    ).strip()


def code_of_type(type: str) -> str:
    """The GB id of a type, from the registry that ships inside the installed torch; empty if it has none."""
    return _registry().get(type, "")


@functools.lru_cache(maxsize=1)
def _registry() -> dict[str, str]:
    torch = getattr(sys.modules.get("torch"), "__file__", None) or _file_of_torch()
    path = os.path.join(os.path.dirname(torch), "_dynamo", "graph_break_registry.json")
    try:
        with open(path, encoding="utf-8") as file:
            entries = json.load(file)
        return {str(versions[0]["Gb_type"]): str(code) for code, versions in entries.items() if versions}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def _file_of_torch() -> str:
    """The file of a torch that is installed here and not imported, as when a trace is opened."""
    with contextlib.suppress(ImportError, ValueError):
        return getattr(importlib.util.find_spec("torch"), "origin", None) or ""
    return ""
