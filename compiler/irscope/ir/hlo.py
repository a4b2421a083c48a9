"""XLA's HLO, read from the text that XLA dumps for a module.

A module has computations; one of them is the entry.  Each instruction is a line:
``%add.1 = f32[2,4]{1,0} add(%a, %b), metadata={op_name="jit(forward)/add~model.py:7/add"}``.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import field

from irscope.vocabulary.records import dataclass

_HEAD = re.compile(r"^(?P<entry>ENTRY )?%?(?P<name>[\w.-]+) \(.*\) -> .*\{$")
_INSTRUCTION = re.compile(r"^\s+(?P<root>ROOT )?%?(?P<name>[\w.-]+) = (?P<rest>.*)$")
_ARRAY = re.compile(r"(?P<type>[a-z]\w*)\[(?P<sizes>[\d,<=? ]*)\](?:\{(?P<layout>[\d,]*)[^}]*\})?")
_NAME = re.compile(r"%([\w.-]+)")
_CALLED = re.compile(
    r"\b(?:calls|to_apply|body|condition|true_computation|false_computation|branch_computations)=(?:%[\w.-]+|\{[^}]*\})"
)
_OP_NAME = re.compile(r'op_name="((?:[^"\\]|\\.)*)"')
_TABLES = ("FileNames", "FunctionNames", "FileLocations", "StackFrames")
_ATTRIBUTE = re.compile(r"(?P<name>[a-z_]\w*)=(?P<value>\{|\"(?:[^\"\\]|\\.)*\"|[^,{]+)")


@dataclass(frozen=True)
class Array:
    """The type of an array: XLA's element type, its sizes, and its dimensions from the fastest to the slowest."""

    type: str
    sizes: tuple[int, ...]
    layout: tuple[int, ...]


@dataclass(frozen=True)
class Instruction:
    """One instruction.

    Args:
        shape: As printed, with the layout; that of a tuple has several arrays.
        operands: Names of instructions of the same computation.
        literal: For a constant or a parameter: what is printed between its brackets.
        attributes: Names and values as printed, without metadata and without the computations that it calls.
        called: The computations that it calls, by name.
        op_name: Where it came from: ``jit(forward)/relu~model.py:7/max``.
    """

    name: str
    shape: str
    opcode: str
    operands: tuple[str, ...]
    literal: str
    attributes: tuple[tuple[str, str], ...]
    called: tuple[str, ...]
    op_name: str
    is_root: bool

    @property
    def arrays(self) -> tuple[Array, ...]:
        """The arrays of its shape."""
        return _arrays(self.shape)


@dataclass
class Module:
    """The computations of a module by name, in their order, and the name of the entry."""

    computations: dict[str, list[Instruction]] = field(default_factory=dict)
    entry: str = ""

    def instructions(self) -> Iterator[Instruction]:
        """The instructions of all computations."""
        for body in self.computations.values():
            yield from body


def parse_hlo(text: str) -> Module:
    """Reads the module in a dump, and skips lines that it cannot parse.  Raises ValueError if the module has no entry."""
    module, body = Module(), list[Instruction]()
    for line in text.split("\n"):
        if head := (_HEAD.match(line) if not line.startswith(" ") else None):
            body = module.computations.setdefault(head["name"], [])
            if head["entry"]:
                module.entry = head["name"]
        elif found := _read(line):
            body.append(found)
    if not module.entry:
        raise ValueError("the text has no HLO module with an entry")
    return module


def clean_hlo(text: str) -> str:
    """The text without the tables of stack frames, which are those of the program that called XLA."""
    rows, is_table = [], False
    for line in text.split("\n"):
        if line in _TABLES:
            is_table = True
        elif is_table and not line.strip():
            is_table = False
        elif not is_table:
            rows.append(re.sub(r" stack_frame_id=\d+", "", line))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(rows)).strip("\n") + "\n"


@functools.lru_cache(maxsize=20_000)
def _read(line: str) -> Instruction | None:
    """The instruction of a line, if it has one.  A pass leaves most lines as they were."""
    match = _INSTRUCTION.match(line)
    return _instruction(match) if match else None


def _instruction(match: re.Match[str]) -> Instruction | None:
    rest = re.sub(r"/\*[^*]*\*/", "", match["rest"])
    end = _closing(rest, 0) + 1 if rest.startswith("(") else rest.find(" ")
    shape, rest = rest[:end], rest[end:].lstrip()
    opcode, bracket, _ = rest.partition("(")
    if end <= 0 or not bracket:
        return None
    close = _closing(rest, len(opcode))
    inside, after = rest[len(opcode) + 1 : close], rest[close + 1 :]
    is_plain = opcode in ("constant", "parameter")
    told = _OP_NAME.search(after)
    return Instruction(
        match["name"],
        shape,
        opcode,
        () if is_plain else tuple(_NAME.findall(inside)),
        inside.strip() if is_plain else "",
        tuple(_attributes(after)),
        tuple(name for one in _CALLED.findall(after) for name in _NAME.findall(one)),
        told[1] if told else "",
        bool(match["root"]),
    )


def _attributes(text: str) -> Iterator[tuple[str, str]]:
    at = 0
    while match := _ATTRIBUTE.search(text, at):
        value, at = match["value"], match.end()
        if value == "{":
            at = _closing(text, match.end() - 1, "{", "}") + 1
            value = text[match.end() - 1 : at]
        if match["name"] != "metadata" and not _CALLED.match(f"{match['name']}={value}"):
            yield match["name"], value.strip()


def _closing(text: str, start: int, left: str = "(", right: str = ")") -> int:
    depth = 0
    for at in range(start, len(text)):
        depth += (text[at] == left) - (text[at] == right)
        if depth == 0:
            return at
    return len(text)


@functools.lru_cache(maxsize=2_000)
def _arrays(shape: str) -> tuple[Array, ...]:
    return tuple(_array(match) for match in _ARRAY.finditer(shape))


def _array(match: re.Match[str]) -> Array:
    sizes = tuple(int(size) for size in re.findall(r"\d+", match["sizes"]))
    layout = tuple(int(one) for one in (match["layout"] or "").split(",") if one)
    return Array(match["type"], sizes, layout if len(layout) == len(sizes) else tuple(reversed(range(len(sizes)))))
