"""The graphs in an artifact beside the source files and the graphs of a run: what differs, at the user's line."""

from __future__ import annotations

import ast
import difflib
import io
import os
import re
import tokenize
from collections.abc import Iterator

from irscope.ir.artifacts.contents import Artifact
from irscope.ir.graph_statements import ORIGIN
from irscope.ir.graphs import Graph, GraphNode, parse_graph, short_target
from irscope.usercode.source import read_source
from irscope.vocabulary.records import dataclass

_FREED = re.compile(r";  (?:[A-Za-z_]\w* = )+None\s*$")
_NAME = re.compile(r"(?<![\w.])[A-Za-z_]\w*")
_NUMBER = re.compile(r"(?<![\w.])-?\d[\w.+-]*")
_IGNORED = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
_SHOWN = 80
_MOST_NODES = 20_000


@dataclass(frozen=True)
class Difference:
    """What differs, and the user's line (0: there is none)."""

    what: str
    file: str = ""
    line: int = 0


def changed_lines(artifact: Artifact, compared: list[str]) -> Iterator[Difference]:
    """User's lines that nodes of the artifact came from and that their function does not have any more."""
    files: dict[str, dict[str, list[tuple[int, _Text]]] | None] = {}
    known = set()
    for file, line, function, code in sorted(_lines_of(artifact)):
        if file not in files:
            is_file = os.path.isabs(file) and file.endswith(".py") and os.path.isfile(file)
            files[file] = _functions(read_source(file) or "") if is_file else None
        functions = files[file]
        if functions is None:
            continue
        known.add(file)
        name = function.rpartition(".")[2]
        if name not in functions:
            if name.isidentifier():
                yield Difference(f"`{name}` is not in the file any more.", file)
            continue
        if not any(_has(body, code) for _, body in functions[name]):
            here = min((first for first, _ in functions[name]), key=lambda first: abs(first - line))
            yield Difference(f"`{_cut(code)}` in `{name}` has changed since it was made.", file, max(here, 1))
    compared += [f"the lines of {os.path.basename(file)} that its graphs came from" for file in sorted(known)]


def _lines_of(artifact: Artifact) -> set[tuple[str, int, str, str]]:
    """``(file, line, function, code)`` of the user's lines that the nodes of its graphs came from."""
    texts = [line for text in artifact.lowered.values() for line in text.split("\n")]
    origins = [found for found in map(ORIGIN.match, texts) if found is not None]
    return {*artifact.code, *((one["file"], int(one["line"]), one["function"], one["code"]) for one in origins)}


@dataclass(frozen=True)
class _Text:
    """A function without space and comments, and its statements as syntax trees."""

    squeezed: str
    statements: frozenset[str]


def _functions(text: str) -> dict[str, list[tuple[int, _Text]]]:
    """The first line and the text of each function, by name."""
    found: dict[str, list[tuple[int, _Text]]] = {}
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return found
    lines = text.splitlines(keepends=True)
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            body = _squeezed("".join(lines[node.lineno - 1 : node.end_lineno]))
            statements = {ast.dump(one) for one in ast.walk(node) if isinstance(one, ast.stmt)}
            found.setdefault(node.name, []).append((node.lineno, _Text(body, frozenset(statements))))
    found.setdefault("<lambda>", []).append((1, _Text(_squeezed(text), frozenset())))
    return found


def _has(function: _Text, code: str) -> bool:
    """Whether a line of code is in a function, however it is laid out."""
    try:
        statements = [ast.dump(one) for one in ast.parse(code).body]
    except (SyntaxError, ValueError, MemoryError, RecursionError):  # the head of a block, or a part of a statement
        statements = []
    return _squeezed(code) in function.squeezed or (bool(statements) and function.statements.issuperset(statements))


def _squeezed(code: str) -> str:
    """Code without space and comments; of code that is cut off, what is whole."""
    words = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(code).readline):
            if token.type not in _IGNORED:
                words.append(token.string)
    except (tokenize.TokenError, SyntaxError):
        pass
    return "".join(words)


# --- graphs of a run ----------------------------------------------------------------------------------------------------


def distance(made: str, now: str) -> int:
    """How many statements of two printed graphs differ, whatever their names and sizes."""
    before, after = _statements(made), _statements(now)
    matcher = difflib.SequenceMatcher(None, [text for _, text in before], [text for _, text in after], autojunk=False)
    same = sum(block.size for block in matcher.get_matching_blocks())
    return max(len(before), len(after)) - same


def functions_of(made: str) -> set[str]:
    """The user's functions that the nodes of a printed graph came from, without their classes."""
    return {found["function"].rpartition(".")[2] for found in map(ORIGIN.match, made.split("\n")) if found}


def is_other(made: str, now: str) -> bool:
    """Whether two printed graphs have less than half of their statements in common: they are of two functions."""
    longest = max(len(_statements(made)), len(_statements(now)))
    return 2 * (longest - distance(made, now)) < longest


def graph_changes(made: str, now: str) -> list[Difference]:
    """What the graph of a run does and an artifact's does not, at the lines of the run; the first of each line."""
    before, after = _statements(made), _statements(now)
    matcher = difflib.SequenceMatcher(None, [text for _, text in before], [text for _, text in after], autojunk=False)
    found: list[Difference] = []
    for kind, first, last, begin, end in matcher.get_opcodes():
        if kind == "equal":
            continue
        for offset in range(max(last - first, end - begin)):
            old = before[first + offset] if first + offset < last else None
            new = after[begin + offset] if begin + offset < end else None
            node = new[0] if new else (after[min(end, len(after) - 1)][0] if after else None)
            file, line = (
                (node.origin.file, node.origin.line) if node is not None and node.origin is not None else ("", 0)
            )
            difference = Difference(_said(old, new), file, line)
            if all((one.file, one.line) != (file, line) for one in found):
                found.append(difference)
    return found


_Statement = tuple[GraphNode, str]


def _said(old: _Statement | None, new: _Statement | None) -> str:
    if old is not None and new is not None:
        was, now = _operation(old), _operation(new)
        if was != now:
            return f"The graph had {was} when it was made and has {now} now{_at(new)}."
        numbers = [_NUMBER.findall(text) for text in (old[1], new[1])]
        changed = [pair for pair in zip(*numbers, strict=False) if pair[0] != pair[1]]
        if changed:
            return f"A constant of {now} was {changed[0][0]} when it was made and is {changed[0][1]} now{_at(new)}."
        return f"The arguments of {now} have changed since it was made{_at(new)}."
    if new is not None:
        return f"The graph has {_operation(new)} now, which it did not have when it was made{_at(new)}."
    return f"The graph had {_operation(old)} when it was made, and does not have it now." if old else ""


def _at(statement: _Statement) -> str:
    return f": `{_cut(statement[0].code)}`" if statement[0].code else ""


def _operation(statement: _Statement) -> str:
    return short_target(statement[0].target)


def _statements(text: str) -> list[_Statement]:
    """The calls of a printed graph; names in them are replaced by how far back they were made."""
    lines = text.split("\n")
    graph = _graph(text)
    numbers = {node.name: number for number, node in enumerate(graph.nodes)}
    found = []
    for number, node in enumerate(graph.nodes):
        if node.op == "call" and 0 < node.line <= len(lines):
            value = _FREED.sub("", lines[node.line - 1].partition(" = ")[2])
            found.append((node, _NAME.sub(lambda word, at=number: _numbered(word[0], numbers, at), value)))  # type: ignore[misc]
    return found


def _numbered(name: str, numbers: dict[str, int], at: int) -> str:
    return f"v{at - numbers[name]}" if name in numbers else name


def _graph(text: str) -> Graph:
    try:
        graph = parse_graph(text)
    except ValueError:
        return Graph(())
    return Graph(graph.nodes[:_MOST_NODES])


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
