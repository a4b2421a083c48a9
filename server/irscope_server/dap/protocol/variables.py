"""Scopes and variables of a frame, made when a client looks at them, long lists page by page."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from typing import Any

from irscope.pipelines.registry import role_of
from irscope.protocol import Compile
from irscope.values.expressions import shown
from irscope.values.facts import BadExpression, Facts, Lazy
from irscope.vocabulary.stages import Role

from irscope_server.dap.base.finding_facts import finding_facts
from irscope_server.dap.engine.links import Links
from irscope_server.dap.engine.names import Lookup, Numbers, all_nodes, node_facts, stage_facts
from irscope_server.dap.engine.recording import PlaceInRun, Recording
from irscope_server.dap.engine.trace_scopes import scopes_of_step
from irscope_server.dap.engine.walking import Level
from irscope_server.dap.protocol.wire import Body, WrongMessage
from irscope_server.dap.trace.traces import TraceSection

LONGEST_VALUE = 2000
"""Characters of a value in a list of variables; the clipboard gets all of it."""


class Handles:
    """References to values that have parts.  They hold until a thread moves, as the protocol says."""

    def __init__(self) -> None:
        self._values: dict[int, tuple[Any, str | None]] = {}
        self._next = 1
        self.folder = ""
        """The folder from which the paths of files are told; empty: they are told whole."""

    def clear(self) -> None:
        """Numbers are not used again, so that an old reference never means something new."""
        self._values.clear()

    def add(self, value: Any, path: str | None) -> int:
        """A reference to a value with parts.

        Args:
            path: The expression that gives the value; empty if those of its parts are their names, None if neither it
                nor its parts have any.
        """
        reference, self._next = self._next, self._next + 1
        self._values[reference] = (value, path)
        return reference

    def get(self, reference: int) -> tuple[Any, str | None]:
        """Raises WrongMessage for an invalid or old reference."""
        if reference not in self._values:
            raise WrongMessage(
                f"Unknown variablesReference: {reference}. References are valid only until the next step. Ask for the scopes again."
            )
        return self._values[reference]


def described(value: Any, handles: Handles, path: str | None, *, whole: bool = False) -> Body:
    """A value as the protocol gives it: its text, its type, and a reference where it has parts."""
    text = shown(value)
    body: Body = {"type": type_of(value), "variablesReference": 0}
    if isinstance(value, Facts):
        body["variablesReference"] = handles.add(value, path)
        body["namedVariables"] = len(value.names())
    elif isinstance(value, Sequence) and not isinstance(value, str) and len(value) > 0:
        text = f"({len(value)}) {text}"
        body["variablesReference"] = handles.add(value, path)
        body["indexedVariables"] = len(value)
    body["text"] = text if whole or len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}…"
    return body


_MENU = "__vscodeVariableMenuContext"
"""What VS Code's menus of variables ask for: ``value`` where the value of the frame is told, ``node`` for a node."""


def type_of(value: Any) -> str:
    """The name of a value's type, as a client shows it."""
    if isinstance(value, Facts):
        return value.kind
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "list"
    return {str: "text", bool: "bool", int: "int", float: "float"}.get(type(value), "nothing")


def parts(handles: Handles, reference: int, start: int, count: int, only: str) -> list[Body]:
    """The variables behind a reference.

    Args:
        start, count: The page of a list; count 0 is all of it.
        only: ``named``, ``indexed`` or empty: both.
    """
    value, path = handles.get(reference)
    if isinstance(value, Facts):
        names = [] if only == "indexed" else value.names()
        names = names[start : start + count] if count else names[start:]
        before = None if path is None else f"{path}." if path else ""
        found = [
            _variable(name, _got(value, name), handles, None if before is None else before + name) for name in names
        ]
        return [{**each, _MENU: "value"} for each in found] if value.kind in ("value", "comparison") else found
    if only == "named":
        return []
    stop = min(len(value), start + count) if count else len(value)
    return [_indexed(value, index, handles, path) for index in range(min(start, stop), stop)]


def _got(facts: Facts, name: str) -> Any:
    try:
        return facts.get(name)
    except (BadExpression, LookupError) as error:
        return str(error.args[0]) if error.args else "unknown"


_NOUNS = {
    "shape": "dim",
    "strides": "dim",
    "hints": "hint",
    "reasons": "reason",
    "stages": "stage",
    "compiles": "compile",
    "gaps": "gap",
    "guards": "guard",
    "nodes": "node",
    "origins": "line",
}
"""What an item of a list is called that has no name of its own, by the name of the list."""


def _indexed(value: Sequence[Any], index: int, handles: Handles, path: str | None) -> Body:
    item = value[index]
    if isinstance(value, Lazy) and value.label is not None:
        label = value.label(index)
        return _variable(f"[{label}]", item, handles, f"{path}[{label}]" if path else None)
    if isinstance(item, Facts) and (item.label or "name" in item.names()):
        name = item.label or str(item.get("name"))
    else:
        name = f"{_NOUNS.get((path or '').rpartition('.')[2], 'item')} {index}"
    return _variable(name, item, handles, f"{path}[{index}]" if path else None)


def _variable(name: str, value: Any, handles: Handles, path: str | None) -> Body:
    body = described(value, handles, path)
    body.update(
        name=name, value=inside(body.pop("text"), handles.folder), presentationHint={"attributes": ["readOnly"]}
    )
    if path:
        body["evaluateName"] = path
    if isinstance(value, Facts) and value.kind == "node":
        body[_MENU] = "node"
    return body


_LIBRARY = re.compile(
    r"(?<![\w.-])(?:[A-Za-z]:)?[\\/](?:[^'\"\n:]*?[\\/])??"
    r"(?:lib(?:64)?[\\/]python3[\d.]*(?:[\\/](?:site|dist)-packages)?|(?:site|dist)-packages)[\\/]"
)
"""Where an environment keeps libraries, from the root of the file system."""


def inside(text: str, folder: str) -> str:
    """A text with the paths of files told from the folder, those of libraries from the library: ``torch/nn/functional.py``.

    An expression still has the whole path.
    """
    return _LIBRARY.sub("", text.replace(os.path.join(folder, ""), "") if folder else text)


def scopes(
    level: Level, recording: Recording, links: Links, handles: Handles, values: Numbers | None = None
) -> list[Body]:
    """The scopes of a frame: what is there, where it came from and goes to, its stage, compile and run."""
    bodies: list[Body] = []

    def scope(name: str, value: Any, path: str | None, *, hint: str = "", expensive: bool = False) -> None:
        body = described(value, handles, path)
        if body["variablesReference"]:
            body.pop("text")
            body.pop("type")
            body.update(name=name, expensive=expensive)
            if hint:
                body["presentationHint"] = hint
            bodies.append(body)

    section, place = level.section, level.place
    if place is not None:
        lookup = Lookup(recording, place, None, values=values)
        _add_blocks(scope, section.blocks(place.spot))
        walked = isinstance(section, TraceSection) and section.walk is not None
        if isinstance(section, TraceSection) and walked:
            for one in scopes_of_step(section, place.spot, recording.tracks[place.compile].source.graph):
                scope(one.name, one.value, one.path, hint=one.hint, expensive=one.expensive)
        if level.spot.name in section.nodes:
            scope("Node", node_facts(section, level.spot.name), "node", hint="locals")
        scope("Value", _or_nothing(lookup, "value"), "value")
        scope("Compared", _or_nothing(lookup, "comparison"), "comparison")
        for finding in level.spot.findings if not walked else ():
            scope("Finding", finding_facts(finding), "finding")
        scope("Kernel", _or_nothing(lookup, "kernel"), "kernel")
        if not walked:  # there the call stack tells it
            scope("Came from", _linked(recording, links.parents(place)), "")
        scope("Became", _linked(recording, links.children(place)), "")
        if not section.is_source:
            scope("Stage", stage_facts(section), "stage")
            if not walked:
                scope("Nodes", all_nodes(section), "nodes", expensive=True)
        scope("Compile", lookup("compile"), "compile")
        scope("Findings", lookup("findings"), "findings")
        if _has_guards(section.compile):
            scope("Guards", Facts("guards", "", {"guards": lambda: lookup("guards")}), "", expensive=True)
        scope("Run", lookup("run"), "run")
    return bodies


def _add_blocks(scope: Callable[..., None], blocks: Sequence[Facts]) -> None:
    """The scopes of a statement of a kernel."""
    for each in blocks:
        scope(each.kind, each, "", hint="locals")


def _has_guards(compile: Compile) -> bool:
    return any(role_of(stage.name) is Role.GUARDS for stage in compile.stages)


def _or_nothing(lookup: Callable[[str], Any], name: str) -> Any:
    try:
        return lookup(name)
    except LookupError:
        return None


def _linked(recording: Recording, places: Sequence[PlaceInRun]) -> Lazy:
    def item(index: int) -> Any:
        place = places[index]
        section, spot = recording.section(place), recording.spot(place)
        if spot.name in section.nodes:
            return node_facts(section, spot.name)
        return _place_facts(spot.file or section.title, spot.line)

    return Lazy(len(places), item)


def _place_facts(file: str, line: int) -> Facts:
    """A line of a file or a stage."""
    return Facts("place", f"{file}:{line}", {"name": f"{os.path.basename(file)}:{line}", "file": file, "line": line})
