"""Jupyter notebooks as something that Python runs: the code cells in order, each with its own name.

A cell is called as a file is, ``/home/me/try.ipynb#cell-3``: so tracebacks, findings and origins name the cell and a
line of it, and whatever works on a file works on a cell.  Cells of code are counted from 1, from top to bottom; an
editor keeps the number of a cell while others come and go.

Nothing of IPython's own syntax is run.  Magics and shell lines become comments, and ``%time`` and similar ones keep
the statement after them; lines and columns stay where they are.
"""

from __future__ import annotations

import ast
import functools
import io
import json
import re
import tokenize
import warnings
from collections.abc import Iterable, Mapping

from irscope.vocabulary.patterns import pattern

_NAME = pattern(r"^(?P<notebook>.*\.ipynb)#cell-(?P<number>\d+)$", re.DOTALL | re.IGNORECASE)

_BODY_IS_PYTHON = frozenset({"time", "timeit", "capture", "prun", "memit", "mprun", "lprun", "py", "python_local"})
"""Cell magics whose cell is Python that runs in the notebook; the cell of any other is not Python, or runs elsewhere."""

_LINE_IS_PYTHON = pattern(
    r"%(?:time|timeit|prun|memit)(?=\s)(?:[ \t]+-(?:[oqvc](?![^\s-])|[nrtplsTD][ \t]*\S+))*[ \t]+(?=\S)"
)
_LINE_MAGIC = pattern(r"^(?P<indent>[ \t]*)(?P<magic>[%!?].*)$")
_HELP = pattern(r"^(?P<indent>[ \t]*)(?P<magic>%{0,2}[\w.*]+\?{1,2})[ \t]*$")
_ASSIGNED = pattern(r"^(?P<target>[ \t]*[A-Za-z_][\w., \t]*=[ \t]*)(?P<magic>[%!](?!=).*)$")


def cell_name(notebook: str, number: int) -> str:
    """What a cell is called where a file would be; the number counts from 1."""
    return f"{notebook}#cell-{number}"


def notebook_of(name: str) -> str | None:
    """The notebook that a cell's name belongs to; None for the name of a file."""
    match = _NAME.match(name)
    return match["notebook"] if match else None


def cell_number(name: str) -> int:
    """The number of a cell by its name; 0 for the name of a file."""
    match = _NAME.match(name)
    return int(match["number"]) if match else 0


def is_notebook(path: str) -> bool:
    """Whether a path names a notebook, by its extension."""
    return path.lower().endswith(".ipynb")


def read_cells(text: str) -> list[str]:
    """The sources of a notebook's code cells, from its JSON.  Raises ValueError if it is not a Python notebook."""
    try:
        data = json.loads(text)
        cells = data["cells"] if "cells" in data else [c for sheet in data["worksheets"] for c in sheet["cells"]]
        language = (data.get("metadata") or {}).get("kernelspec", {}).get("language") or "python"
        sources = [c.get("source", c.get("input", "")) for c in cells if c.get("cell_type") == "code"]
        found = [source if isinstance(source, str) else "".join(source) for source in sources]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ValueError("it is not a Jupyter notebook") from None
    if str(language).lower() not in ("python", "python3"):
        raise ValueError(f"it is a notebook of {str(language)[:40]}, not of Python")
    return found


def joined(cells: Mapping[str, str] | Iterable[tuple[str, str]]) -> str:
    """All cells as one text, which tells two states of a notebook apart; by name, in the order in which they run."""
    pairs = cells.items() if isinstance(cells, Mapping) else cells
    return "\n".join(f"# %% cell-{cell_number(name)}\n{text}" for name, text in pairs)


@functools.lru_cache(maxsize=512)
def python_of_cell(text: str) -> str:
    """A cell's source as Python, with each line and column where it was; what is not Python is a comment."""
    lines = re.split("\r\n|\n|\r", text)
    first = next((number for number, line in enumerate(lines) if line.strip()), None)
    if first is not None and (magic := re.match(r"%%(\w+)", lines[first])):
        if magic[1] not in _BODY_IS_PYTHON:
            return "\n".join(f"# {line}" if line.strip() else line for line in lines)
        lines[first] = f"# {lines[first]}"
    elif _is_python(text):
        return "\n".join(lines)
    for number, line in enumerate(lines):
        changed = _without_magic(line)
        if changed != line and not _is_inside("\n".join(lines[:number])):
            lines[number] = changed
    return "\n".join(lines)


def _without_magic(line: str) -> str:
    if match := _LINE_MAGIC.match(line):
        indent = match["indent"]
        if timed := _LINE_IS_PYTHON.match(match["magic"]):
            return f"{indent}{_padded_if(timed.end())}{match['magic'][timed.end() :]}"
        return f"{indent}{'pass  ' if indent else ''}# {match['magic']}"
    if match := _HELP.match(line):
        return f"{match['indent']}{'pass  ' if match['indent'] else ''}# {match['magic']}"
    if match := _ASSIGNED.match(line):
        return f"{match['target']}None  # {match['magic']}"
    return line


def _padded_if(width: int) -> str:
    """Something of this width (6 at least) before a simple statement that leaves it as it is: ``if 1: ``."""
    return f"if{' ' * (width - 5)}1: "


def _is_python(text: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(text, "<cell>", "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _is_inside(before: str) -> bool:
    """Whether what follows a text goes on with a string, a bracket or a line that ends with a backslash."""
    if before.endswith("\\"):
        return True
    try:
        for _ in tokenize.generate_tokens(io.StringIO(before + "\n").readline):
            pass
    except tokenize.TokenError as error:
        return "EOF in multi-line" in str(error) or "unterminated triple-quoted" in str(error)
    except (SyntaxError, IndentationError):
        pass
    return False
