"""Makes mutants: small changes of single lines, drawn with a seed from all rooms in proportion to their lines.

The same seed draws the same mutants from the same sources, in every version of Python.  A mutant carries the text of its
line, so that it is found again after the code around it has moved.
"""

from __future__ import annotations

import ast
import json
import random
import re
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

TYPESCRIPT = Path(__file__).with_name("mutants_of_typescript.mjs")
SOURCES = {"compiler/irscope": ".py", "server/irscope_server": ".py", "extension/src": ".ts"}
OPPOSITES = {
    "==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">",
    "is not": "is", "is": "is not", "not in": "in", "in": "not in", "and": "or", "or": "and",
}  # fmt: skip
OPERATOR = re.compile(r"is\s+not\b|not\s+in\b|\bis\b|\bin\b|==|!=|<=|>=|<|>")
SKIPPED = (ast.JoinedStr, ast.Import, ast.ImportFrom)  # Python 3.12 places the parts of an f-string differently


@dataclass(frozen=True)
class Mutant:
    """One change of one line.

    line: its 1-based number when the mutant was made
    text: the whole line
    column: where `old` begins in it, in characters
    """

    room: str
    file: str
    line: int
    text: str
    column: int
    old: str
    new: str
    kind: str

    @property
    def id(self) -> str:
        return f"{self.file}:{self.text.strip()}:{self.column}:{self.new}"

    @property
    def changed(self) -> str:
        """The line after the change."""
        return self.text[: self.column] + self.new + self.text[self.column + len(self.old) :]

    def line_in(self, source: str) -> int | None:
        """The number of its line in a text that may have changed since; None where no line is the same."""
        same = [number for number, line in enumerate(source.split("\n"), 1) if line == self.text]
        return min(same, key=lambda number: abs(number - self.line), default=None)

    def apply(self, source: str) -> str | None:
        """The text with the change."""
        number = self.line_in(source)
        if number is None:
            return None
        lines = source.split("\n")
        lines[number - 1] = self.changed
        return "\n".join(lines)

    def as_json(self) -> dict[str, object]:
        return asdict(self)


def make(root: Path, count: int, seed: int) -> list[Mutant]:
    """Draws mutants, at most one a line; without Node none of TypeScript."""
    rooms = files_by_room(root)
    shares = share_out(count, {room: sum(map(lines_of, files)) for room, files in rooms.items()})
    scripts = [path for files in rooms.values() for path in files if path.suffix == ".ts"]
    of_scripts = candidates_of_typescript(root, scripts)
    drawn: list[Mutant] = []
    for room, files in rooms.items():
        candidates: list[Mutant] = []
        for path in files:
            file = path.relative_to(root).as_posix()
            candidates += (
                of_scripts[file] if path.suffix == ".ts" else candidates_of(file, path.read_text(encoding="utf-8"))
            )
        drawn += draw(root, candidates, shares[room], random.Random(f"{seed} {room}"))
    return drawn


def files_by_room(root: Path) -> dict[str, list[Path]]:
    """The source files of each folder below the packages; what lies beside the folders is the package's own room."""
    rooms: dict[str, list[Path]] = defaultdict(list)
    for package, suffix in SOURCES.items():
        for path in sorted((root / package).rglob(f"*{suffix}")):
            below = path.relative_to(root / package).parts
            if not path.name.endswith(".d.ts"):
                rooms[f"{package}/{below[0]}" if len(below) > 1 else package].append(path)
    return dict(sorted(rooms.items()))


def lines_of(path: Path) -> int:
    return path.read_text(encoding="utf-8").count("\n")


def share_out(count: int, lines: dict[str, int]) -> dict[str, int]:
    """One for each room, and the others by the largest remainders of what is proportional to the lines."""
    total, others = sum(lines.values()), max(0, count - len(lines))
    exact = {room: others * number / total for room, number in lines.items()}
    shares = {room: 1 + int(share) for room, share in exact.items()}
    by_remainder = sorted(lines, key=lambda room: (int(exact[room]) - exact[room], room))
    for room in by_remainder[: others - sum(map(int, exact.values()))]:
        shares[room] += 1
    return shares


def draw(root: Path, candidates: Iterable[Mutant], count: int, chance: random.Random) -> list[Mutant]:
    """Draws lines, and of each a change that can be parsed and means something else."""
    by_line: dict[tuple[str, int], list[Mutant]] = defaultdict(list)
    for candidate in candidates:
        by_line[candidate.file, candidate.line].append(candidate)
    lines = sorted(by_line)
    chance.shuffle(lines)
    drawn: list[Mutant] = []
    for line in lines:
        if len(drawn) == count:
            break
        kind = chance.choice(sorted({candidate.kind for candidate in by_line[line]}))
        mutant = chance.choice([candidate for candidate in by_line[line] if candidate.kind == kind])
        if differs(mutant, (root / mutant.file).read_text(encoding="utf-8")):
            drawn.append(mutant)
    return sorted(drawn, key=lambda mutant: (mutant.file, mutant.line))


def differs(mutant: Mutant, source: str) -> bool:
    """Whether the changed file can be parsed and is another program."""
    changed = mutant.apply(source)
    if changed is None or changed == source:
        return False
    if not mutant.file.endswith(".py"):
        return True  # checked by what made it
    try:
        return ast.dump(ast.parse(changed)) != ast.dump(ast.parse(source))
    except SyntaxError:
        return False


def candidates_of_typescript(root: Path, files: list[Path]) -> dict[str, list[Mutant]]:
    made: dict[str, list[Mutant]] = defaultdict(list)
    node = shutil.which("node")
    if node is None or not (root / "node_modules" / "typescript").exists():
        return made
    names = [path.relative_to(root).as_posix() for path in files]
    done = subprocess.run([node, str(TYPESCRIPT), *names], cwd=root, capture_output=True, text=True, check=True)
    for found in json.loads(done.stdout):
        made[found["file"]].append(Mutant(room=room_of(found["file"]), **found))
    return made


def room_of(file: str) -> str:
    package = next(package for package in SOURCES if file.startswith(f"{package}/"))
    folder, _, rest = file[len(package) + 1 :].partition("/")
    return f"{package}/{folder}" if rest else package


def candidates_of(file: str, source: str) -> list[Mutant]:
    """All changes of a Python file, in the order of its text."""
    lines = source.split("\n")
    return [
        Mutant(room_of(file), file, place.line, lines[place.line - 1], place.start, place.text, new, kind)
        for place, new, kind in Changes(lines).of(ast.parse(source))
    ]


@dataclass(frozen=True)
class Place:
    """A part of one line, in characters."""

    line: int
    start: int
    text: str


Change = tuple[Place, str, str]


class Changes:
    """The changes of the nodes of one file that lie on a single line."""

    def __init__(self, lines: list[str]) -> None:
        self._lines = lines

    def of(self, node: ast.AST, inside: bool = False) -> Iterator[Change]:
        """The changes of a node and of what is in it; ``inside`` a function, whose statements can be dropped."""
        if isinstance(node, SKIPPED) or is_for_type_checkers(node):
            return
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            return  # a docstring
        for change in CHANGES.get(type(node), ()):
            yield from change(self, node)
        if inside and isinstance(node, ast.stmt) and is_droppable(node):
            yield from self._put(node, "pass", "statement dropped")
        inside = inside or isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "type_params"):
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from self.of(child, inside)

    def compare(self, node: ast.Compare) -> Iterator[Change]:
        for left, right in zip([node.left, *node.comparators], node.comparators, strict=False):
            yield from self._operator(left, right, OPERATOR, "comparison turned round")

    def bool_op(self, node: ast.BoolOp) -> Iterator[Change]:
        for left, right in zip(node.values, node.values[1:], strict=False):
            yield from self._operator(left, right, re.compile(r"\b(and|or)\b"), "and/or")

    def unary(self, node: ast.UnaryOp) -> Iterator[Change]:
        operand = self._place(node.operand)
        if isinstance(node.op, ast.Not) and operand is not None:
            yield from self._put(node, f"({operand.text})", "not taken away")

    def test(self, node: ast.If | ast.While | ast.IfExp) -> Iterator[Change]:
        place = self._place(node.test)
        if place is not None and not isinstance(node.test, (ast.Constant, ast.UnaryOp)):
            yield place, f"(not ({place.text}))", "not added"

    def constant(self, node: ast.Constant) -> Iterator[Change]:
        value = node.value
        if isinstance(value, bool):
            yield from self._put(node, str(not value), "constant changed")
        elif isinstance(value, (int, float)):
            yield from self._put(node, str(value + 1), "constant changed")
        elif isinstance(value, (str, bytes)) and value:
            yield from self._put(node, '""' if isinstance(value, str) else 'b""', "constant changed")

    def call(self, node: ast.Call) -> Iterator[Change]:
        if len(node.args) == 1 and isinstance(node.args[0], ast.GeneratorExp):
            return  # its parentheses are those of the call
        given: list[ast.expr | ast.keyword] = [*node.args, *node.keywords]
        arguments = sorted(given, key=lambda argument: (argument.lineno, argument.col_offset))
        places = [self._place(argument) for argument in arguments]
        for number, place in enumerate(places):
            if place is None:
                continue
            following = places[number + 1] if number + 1 < len(places) else None
            previous = places[number - 1] if number else None
            start, end = place.start, place.start + len(place.text)
            if following is not None and following.line == place.line:
                end = following.start
            elif number + 1 < len(places):
                continue  # the next one is on another line
            elif previous is not None and previous.line == place.line:
                start = previous.start + len(previous.text)
            elif number:
                continue
            yield Place(place.line, start, self._lines[place.line - 1][start:end]), "", "argument dropped"

    def returned(self, node: ast.Return) -> Iterator[Change]:
        if node.value is not None and not (isinstance(node.value, ast.Constant) and node.value.value is None):
            yield from self._put(node.value, "None", "None returned")

    def sliced(self, node: ast.Slice) -> Iterator[Change]:
        for bound in (node.lower, node.upper):
            place = None if bound is None else self._place(bound)
            if place is not None:
                yield place, f"({place.text}) + 1", "slice off by one"

    def _operator(self, left: ast.expr, right: ast.expr, operator: re.Pattern[str], kind: str) -> Iterator[Change]:
        first, second = self._place(left), self._place(right)
        if first is None or second is None or first.line != second.line:
            return
        line = self._lines[first.line - 1]
        match = operator.search(line, first.start + len(first.text), second.start)
        if match is not None:
            new = OPPOSITES[" ".join(match[0].split())]
            yield Place(first.line, match.start(), match[0]), new, kind

    def _put(self, node: ast.expr | ast.stmt, new: str, kind: str) -> Iterator[Change]:
        place = self._place(node)
        if place is not None:
            yield place, new, kind

    def _place(self, node: ast.expr | ast.stmt | ast.keyword) -> Place | None:
        """Where a node is, if it is on a single line."""
        if node.end_lineno != node.lineno or node.end_col_offset is None:
            return None
        line = self._lines[node.lineno - 1].encode()  # columns of ast count bytes
        text = line[node.col_offset : node.end_col_offset].decode()
        return Place(node.lineno, len(line[: node.col_offset].decode()), text)


CHANGES: dict[type[ast.AST], Sequence[Callable[[Changes, Any], Iterator[Change]]]] = {
    ast.Compare: (Changes.compare,),
    ast.BoolOp: (Changes.bool_op,),
    ast.UnaryOp: (Changes.unary,),
    ast.If: (Changes.test,),
    ast.While: (Changes.test,),
    ast.IfExp: (Changes.test,),
    ast.Constant: (Changes.constant,),
    ast.Call: (Changes.call,),
    ast.Return: (Changes.returned,),
    ast.Slice: (Changes.sliced,),
}


def is_for_type_checkers(node: ast.AST) -> bool:
    if isinstance(node, ast.If):
        return "TYPE_CHECKING" in ast.dump(node.test)
    return isinstance(node, ast.Assign) and any(
        isinstance(target, ast.Name) and target.id in ("__all__", "TYPE_CHECKING") for target in node.targets
    )


def is_droppable(node: ast.stmt) -> bool:
    """Not an assignment to a local name: the next line would be a NameError."""
    if isinstance(node, ast.Assign):
        return all(isinstance(target, (ast.Attribute, ast.Subscript)) for target in node.targets)
    return isinstance(node, (ast.Expr, ast.AugAssign, ast.Raise, ast.Continue, ast.Break, ast.Delete))
