"""The names in the text of a stage: where each is made, and where it is used.

Texts of generated code are regular, so a pattern for names and one for definitions in each language are enough.  A use
belongs to the nearest definition above it (the temporaries of a kernel are named again in each loop), or else to
the first one below, as in the tables at the end of MLIR and LLVM IR.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Occurrence:
    """A name in a line; lines are 0-based, columns indices into the line as a Python string."""

    line: int
    start: int
    end: int
    name: str
    defines: bool


class NameIndex:
    """All names of a text."""

    def __init__(self, occurrences: Iterable[Occurrence]) -> None:
        self._by_line: dict[int, list[Occurrence]] = defaultdict(list)
        self._by_name: dict[str, list[Occurrence]] = defaultdict(list)
        for one in sorted(occurrences):
            self._by_line[one.line].append(one)
            self._by_name[one.name].append(one)

    def at(self, line: int, column: int) -> Occurrence | None:
        """The name at a place, or just before it."""
        return next((one for one in self._by_line.get(line, ()) if one.start <= column <= one.end), None)

    def definition(self, one: Occurrence) -> Occurrence | None:
        """Where a name is made that is used somewhere."""
        if one.defines:
            return one
        made = [other for other in self._by_name[one.name] if other.defines]
        above = [other for other in made if other.line < one.line]
        return above[-1] if above else next(iter(made), None)

    def references(self, one: Occurrence) -> list[Occurrence]:
        """Every use of what a name means at a place, its definition among them."""
        mine = self.definition(one)
        alike = self._by_name[one.name]
        if mine is None:
            return alike
        return [other for other in alike if other == mine or (not other.defines and self.definition(other) == mine)]


@dataclass(frozen=True)
class _Language:
    """How names look, and which of those in a line are made there.

    Args:
        made: Gives spans of a line in which every name is defined.
        ignored: Comments and strings.
    """

    name: re.Pattern[str]
    made: Callable[[str], Iterator[tuple[int, int]]]
    ignored: re.Pattern[str]


def names_in(rows: Sequence[str], language: str, only: Collection[str] | None = None) -> NameIndex:
    """The names of a text in one of the languages that stages have; none for a language that is not known here.

    Args:
        only: Names to be found, if they are known.
    """
    known = _LANGUAGES.get(language)
    return NameIndex(() if known is None else _occurrences(enumerate(rows), known, only))


def names_in_output_code(rows: Sequence[str], kernels: Sequence[tuple[int, int, str]]) -> NameIndex:
    """The names of output code: those of its kernels' texts are names of the kernel only.

    Args:
        kernels: First and last line (0-based) of each definition, and its language.
    """
    found: list[Occurrence] = []
    at = 0
    for first, last, language in sorted(kernels):
        found += _occurrences(((n, rows[n]) for n in range(at, min(first + 1, len(rows)))), _PYTHON)
        inside = _occurrences(
            ((n, rows[n]) for n in range(first + 1, min(last + 1, len(rows)))), _LANGUAGES.get(language, _PYTHON)
        )
        found += [Occurrence(o.line, o.start, o.end, f"{first}:{o.name}", o.defines) for o in inside]
        at = last + 1
    found += _occurrences(((n, rows[n]) for n in range(at, len(rows))), _PYTHON)
    return NameIndex(found)


def _occurrences(
    rows: Iterable[tuple[int, str]], language: _Language, only: Collection[str] | None = None
) -> Iterator[Occurrence]:
    for number, row in rows:
        ignored = [match.span() for match in language.ignored.finditer(row)]
        starts = [start for start, _ in ignored]
        made = list(language.made(row))
        for match in language.name.finditer(row):
            start, end = match.span()
            name = match[0].partition("#")[0] if match[0].startswith("%") else match[0]
            end = start + len(name)
            at = bisect_left(starts, start + 1) - 1
            if (at >= 0 and start < ignored[at][1]) or (only is not None and name not in only):
                continue
            defines = any(first <= start and end <= last for first, last in made)
            yield Occurrence(number, start, end, name, defines)


def _spans(*patterns: str) -> Callable[[str], Iterator[tuple[int, int]]]:
    """The groups of patterns, wherever they match in a line."""
    compiled = [re.compile(pattern) for pattern in patterns]

    def find(row: str) -> Iterator[tuple[int, int]]:
        for pattern in compiled:
            for match in pattern.finditer(row):
                yield from (match.span(group) for group in range(1, (pattern.groups or 0) + 1) if match[group])

    return find


_STRING = r'"(?:[^"\\]|\\.)*"'
_KEYWORDS = (
    r"(?!(?:if|else|for|while|return|def|class|in|and|or|not|is|None|True|False|import|from|as|del|with|lambda|auto|int"
    r"|float|double|bool|void|const|static_cast|reinterpret_cast|long|unsigned|char|template|using|std|at)\b)"
)

_PYTHON = _Language(
    re.compile(rf"(?<![\w.]){_KEYWORDS}[A-Za-z_]\w*"),
    _spans(
        r"^\s*([A-Za-z_]\w*(?:\s*,\s*[A-Za-z_]\w*)*)\s*(?:=(?!=)|:\s*\"[^\"]*\"(?:\s*=|$))",
        r"^\s*(?:async )?(?:def|class)\s+(\w+)",
        r"\bfor\s+([\w, ]+?)\s+in\b",
        r"^\s*(?:import|from)\s.*?(\w+)\s*$",
        r"^\s*def\s+\w+\((.*)\)",
    ),
    re.compile(rf"#.*$|'(?:[^'\\]|\\.)*'|{_STRING}"),
)
_CPP = _Language(
    re.compile(rf"(?<![\w.>:]){_KEYWORDS}[A-Za-z_]\w*"),
    _spans(
        r"\b(?:auto|float|double|bool|int|long|u?int(?:8|16|32|64)_t|[\w:]+(?:<[^;=]*>)+)\s*[&*]?\s*([A-Za-z_]\w*)\s*(?=[=;({\[])",
        r"\b(?:float|double|bool|half|bfloat16|at::\w+|c10::\w+|long|int|u?int(?:8|16|32|64)_t)\s*\*?\s*([A-Za-z_]\w*)\s*(?=[,)])",
    ),
    re.compile(rf"//.*$|^\s*#.*$|{_STRING}"),
)
_MLIR = _Language(
    re.compile(r"%[\w$.-]+(?:#\d+)?|#[A-Za-z_][\w$-]*|@[\w$.-]+|\^[\w$]+"),
    _spans(
        r"^\s*((?:%[\w$.-]+(?::\d+)?\s*,?\s*)+)=(?!=)",
        r"^(#[\w$-]+)\s*=",
        r"\b(?:func|llvm\.func)\b[^@]*(@[\w$.-]+)\(",
        r"(?:^\s*\^\w+\(|[(,]\s*)(%[\w$.-]+):\s",
        r"\b(?:for|parallel)\s+(%[\w$.-]+)\s*=|(?:iter_args\(|,\s*)(%[\w$.-]+)\s*=\s*%",
        r"^\s*(\^[\w$]+)",
    ),
    re.compile(rf"//.*$|{_STRING}"),
)
_LLVM = _Language(
    re.compile(r"[%@](?:[-\w$.]+)|![0-9]+|#\d+|^[-\w$.]+(?=:)"),
    _spans(
        r"^\s*(%[-\w$.]+)\s*=",
        r"^(![0-9]+)\s*=",
        r"^attributes\s+(#\d+)\s*=",
        r"^(@[-\w$.]+)\s*=",
        r"^(?:define|declare)\b[^@]*(@[-\w$.]+)\(",
        r"(?:^define.*?|)(%[-\w$.]+)(?=(?:,|\)).*\{$)",
    ),
    re.compile(rf";.*$|{_STRING}"),
)
_PTX = _Language(
    re.compile(r"%[A-Za-z]\w*|\$L\w+|\b[A-Za-z_]\w*_param_\d+\b|\b(?:global_smem|__func_retval\w*)\b"),
    _spans(
        r"^\s*(?:@!?%\w+\s+)?(?!st\b|red\b|bra\b|ret\b|bar\b|call\b|membar\b|fence\b|cp\b|prefetch)[a-z]\w*[\w.:]*\s+(\{[^}]*\}|%\w+(?:\|%\w+)?)\s*,",
        r"^\s*(\$L\w+):",
        r"^\s*\.param\b.*?(\w+_param_\d+)",
        r"\.shared\b.*?(\w+)\[",
    ),
    re.compile(r"//.*$"),
)
_SASS = _Language(
    re.compile(r"\bU?R\d+\b|\bU?P\d\b|\.L_x_\d+|\.text\.[\w$]+"),
    _spans(
        r"\*/\s+(?:@!?U?P\w+\s+)?(?!ST|RED|BRA|EXIT|BAR|RET|CALL|BSSY|BSYNC|WARPSYNC|DEPBAR|NOP)[A-Z][\w.]*\s+(U?[RP]\d+)\b",
        r"\*/\s+(?:@!?U?P\w+\s+)?[A-Z]*SETP[\w.]*\s+U?P\w+,\s*(U?P\d)",
        r"^\s*(\.L_x_\d+|\.text\.[\w$]+):",
    ),
    re.compile(r"//.*$"),
)
_ASM = _Language(
    re.compile(r"%[a-z]\w*|\.L[\w$.]+|(?<![\w.%$])[A-Za-z_][\w$.]*(?=:|@|\()|(?<=\s)_\w+"),
    _spans(r"^\s*([.\w$@]+):"),
    re.compile(rf"^\s*#.*$|//.*$|;.*$|{_STRING}"),
)
_LANGUAGES = {
    "python": _PYTHON, "triton": _PYTHON, "cpp": _CPP, "mlir": _MLIR, "llvm": _LLVM, "ptx": _PTX, "sass": _SASS,
    "asm": _ASM,
}  # fmt: skip
