"""Measures the house: `npm run check:house` prints each goal with what is measured now; the exit code is 1 if one falls short.

Where a number is made of places, an option lists them: `npm run check:house -- --paths` the functions with too many paths,
the worst first, and likewise `--sentences`, `--outside`, `--steps` and `--unsaid`.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import json
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import plain_english
import sentences

ROOT = Path(__file__).resolve().parents[1]
SOURCES = {"irscope": "compiler", "irscope_server": "server"}
"""The root packages, and the folders that they are in."""

ROOMS = (
    "compiler/irscope/fixing",
    "compiler/irscope/driver/fixing",
    "compiler/irscope/driver/trials",
)
"""Where the fixing feature is: the first makes fixes, the second has them tried and writes them, the third runs the trials."""
OF_FIXES = ("compiler/irscope/usercode/caught_errors.py",)
"""Modules of other rooms that fixes alone use: a module does not leave the count by moving."""
SHOWN = "server/irscope_server/language/tried_fixes.py"
"""Decides which fixes are offered, outside of these rooms."""
MOST_LINES = 9500

MOST_UNSAID = 40

MOST_PATHS = 15
MOST_FUNCTIONS = 30
"""The most functions that may have more paths than that."""
MOST_PATHS_OF_ALL = 25

MOST_WORDS = (
    ("words of README.md", ("README.md",), 700),
    ("words of docs/ARCHITECTURE.md", ("docs/ARCHITECTURE.md",), 3000),
    ("words of README.md and all docs", ("README.md", "docs/**/*.md"), 48_000),
)
"""Titles, files and goals; code and tables count, as `wc -w` counts them."""

SECONDS = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "irscope" / "seconds.json"
"""What runs from a fresh clone took on this machine (scripts/lib/seconds.mjs)."""
MOST_SECONDS = (
    ("npm test, from a fresh clone", "suite", 720),
    ("npm start -- --once, from a fresh clone to the first findings", "first findings", 90),
)

STARTS_THE_SERVER = ("compiler/irscope/cli/agents.py",)
"""Commands that start a server: they import it by its name, and no fix comes that way."""

Function = ast.FunctionDef | ast.AsyncFunctionDef
_BRANCHES = (
    ast.If, ast.For, ast.AsyncFor, ast.While, ast.ExceptHandler, ast.IfExp, ast.comprehension, ast.Assert,
    ast.match_case,
)  # fmt: skip


@dataclass(frozen=True)
class Row:
    """A line of the table."""

    title: str
    measured: str
    goal: str
    holds: bool
    option: str = ""
    """What asks for the places."""
    places: tuple[str, ...] = ()


def trees_below(folders: Sequence[str], root: Path = ROOT) -> dict[str, ast.Module]:
    """The syntax of all modules in folders, by their paths from the root."""
    files = sorted(file for folder in folders for file in (root / folder).rglob("*.py"))
    return {file.relative_to(root).as_posix(): ast.parse(file.read_text(encoding="utf-8")) for file in files}


# --- paths ------------------------------------------------------------------------------------------------------------


def paths_of(function: Function) -> int:
    """How many paths a function has, with those of the functions in it, which also count by themselves.

    1, and 1 more for each ``if``, ``for``, ``while``, ``except``, ternary, ``for`` of a comprehension, ``assert``, ``case``,
    and further operand of ``and`` or ``or``.
    """
    nodes = list(ast.walk(function))
    operands = sum(len(node.values) - 1 for node in nodes if isinstance(node, ast.BoolOp))
    return 1 + operands + sum(isinstance(node, _BRANCHES) for node in nodes)


def branched(trees: Mapping[str, ast.Module]) -> list[tuple[int, str]]:
    """Functions with too many paths, the worst first: how many, and where."""
    functions = (
        (paths_of(node), f"{file}:{node.lineno} {node.name}")
        for file, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, Function)
    )
    return sorted((entry for entry in functions if entry[0] > MOST_PATHS), key=lambda entry: (-entry[0], entry[1]))


# --- layers -----------------------------------------------------------------------------------------------------------


def layers_of(project: Mapping[str, Any]) -> set[str]:
    """The packages and modules that the contracts of pyproject.toml put into layers."""
    names = set[str]()
    for contract in project["tool"]["importlinter"]["contracts"]:
        if contract["type"] == "layers":
            layers = [name.strip("() ") for layer in contract["layers"] for name in re.split(r"[|:]", layer)]
            names |= {
                f"{container}.{name}".strip(".") for container in contract.get("containers", [""]) for name in layers
            }
    return names


def outside(trees: Mapping[str, ast.Module], layers: set[str]) -> list[str]:
    """Files that are in no layer, nor is a package that they are in; without those of packages that import nothing of ours."""
    return [
        file
        for file, tree in trees.items()
        if not _is_bare(file, tree) and not layers & {".".join(name) for name in _with_packages(_module_of(file))}
    ]


def _with_packages(module: str) -> Iterator[list[str]]:
    """The names of a module and of the packages that it is in."""
    parts = module.split(".")
    return (parts[: length + 1] for length in range(len(parts)))


def _module_of(file: str) -> str:
    """``compiler/irscope/ir/__init__.py`` → ``irscope.ir``."""
    return ".".join(Path(file).with_suffix("").parts[1:]).removesuffix(".__init__")


def _is_bare(file: str, tree: ast.Module) -> bool:
    return file.endswith("/__init__.py") and not {name.partition(".")[0] for name in _imports(tree)} & set(SOURCES)


# --- the way of a fix -------------------------------------------------------------------------------------------------


def upward_steps(trees: Mapping[str, ast.Module]) -> list[str]:
    """Imports of the server by its name, and parameters of `driver` that take what proposes fixes: the server's, too."""
    aliases = {name: ast.unparse(value) for tree in trees.values() for name, value in _set_in(tree)}
    steps = list[str]()
    for file, tree in trees.items():
        constants = {name: value.value for name, value in _set_in(tree) if isinstance(value, ast.Constant)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and file not in STARTS_THE_SERVER:
                name = _imported(node, constants)
                if name.partition(".")[0] == "irscope_server":
                    steps.append(f"{file}:{node.lineno} imports {name}")
            elif isinstance(node, ast.arg) and "/driver/" in file and _proposes(node.annotation, aliases):
                steps.append(f"{file}:{node.lineno} is given {node.arg}")
    return steps


def _set_in(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """The names that a module sets at its top, with what they are set to."""
    for line in tree.body:
        if isinstance(line, ast.Assign):
            yield from ((target.id, line.value) for target in line.targets if isinstance(target, ast.Name))


def _imported(call: ast.Call, constants: Mapping[str, object]) -> str:
    """The module that a call imports by its name; empty if it is another call."""
    if ast.unparse(call.func).rpartition(".")[2] not in ("import_module", "__import__") or not call.args:
        return ""
    name = call.args[0]
    value = constants.get(name.id) if isinstance(name, ast.Name) else getattr(name, "value", None)
    return value if isinstance(value, str) else ""


def _proposes(annotation: ast.expr | None, aliases: Mapping[str, str]) -> bool:
    """Whether a parameter takes a function that is given a text, or a finding and a text, and gives fixes."""
    text = ast.unparse(annotation) if annotation is not None else ""
    return re.match(r"Callable\[\[(Finding, )?str(, bool)?\], .*\bFix\b", aliases.get(text, text)) is not None


def rooms_with_rules(trees: Mapping[str, ast.Module]) -> set[str]:
    """The packages of which a module says how a text is changed: it makes proposals."""
    return {
        "/".join(file.split("/")[:3])
        for file, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "Proposal"
    }


# --- what is installed ------------------------------------------------------------------------------------------------


def not_installed(trees: Mapping[str, ast.Module], dependencies: Sequence[str]) -> dict[str, int]:
    """Packages that modules import and that nobody gets by default, each with the number of modules."""
    installed = {re.split(r"[^\w-]", name)[0].replace("-", "_") for name in dependencies}
    have = {*sys.stdlib_module_names, *installed, *SOURCES, "torch"}
    counts: dict[str, int] = {}
    for tree in trees.values():
        for package in {name.partition(".")[0] for name in _imports(tree)} - have:
            counts[package] = counts.get(package, 0) + 1
    return counts


def _imports(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


# --- the table --------------------------------------------------------------------------------------------------------


def rows(project: Mapping[str, Any], trees: Mapping[str, ast.Module], lines: Mapping[str, int]) -> Iterator[Row]:
    """All rows of the table, from the project's settings, the syntax of all modules, and how many lines each has."""
    folders = tuple(f"{room}/" for room in ROOMS)
    fixing = {file: tree for file, tree in trees.items() if file.startswith(folders) or file in OF_FIXES}
    total = sum(lines[file] for file in fixing)
    rooms = rooms_with_rules(trees)
    yield Row(
        "lines of source of the fixing feature",
        f"{total:,}, rules in {len(rooms)} room{'s' * (len(rooms) != 1)}",
        f"≤ {MOST_LINES:,}, rules in 1 room",
        total <= MOST_LINES and rooms == {ROOMS[0]},
    )
    read_back = sentences.decisions(of_fixing(trees))
    yield _none("decisions that read a sentence back", "sentences", read_back)
    left_out = outside(trees, layers_of(project))
    in_lines = f"{len(left_out)} ({sum(lines[file] for file in left_out):,} lines)" if left_out else "0"
    yield Row("modules outside every layer contract", in_lines, "0", not left_out, "outside", tuple(left_out))
    steps = upward_steps({file: tree for file, tree in trees.items() if file.startswith("compiler/")})
    yield _none("upward steps on the way of a fix", "steps", steps)
    missing = not_installed(fixing, project["project"]["dependencies"])
    words = ", ".join(f"{count} need {name}" for name, count in sorted(missing.items())) or "0"
    yield Row("modules of fixes that need a package not installed by default", words, "0", not missing)
    functions = branched(trees)
    worst = functions[0][0] if functions else 0
    yield Row(
        f"functions with more than {MOST_PATHS} paths",
        f"{len(functions)}, the worst {worst}",
        f"≤ {MOST_FUNCTIONS}, the worst ≤ {MOST_PATHS_OF_ALL}",
        len(functions) <= MOST_FUNCTIONS and worst <= MOST_PATHS_OF_ALL,
        "paths",
        tuple(f"{count:3} {place}" for count, place in functions),
    )


def rows_of_words(root: Path = ROOT) -> Iterator[Row]:
    """How long the documents are."""
    for title, patterns, most in MOST_WORDS:
        files = [file for pattern in patterns for file in root.glob(pattern)]
        words = sum(len(file.read_text(encoding="utf-8").split()) for file in files)
        yield Row(title, f"{words:,}", f"≤ {most:,}", words <= most)


def rows_of_seconds(noted: Mapping[str, Mapping[str, Any]]) -> Iterator[Row]:
    """How long it takes, as the last such run on this machine has noted it."""
    for title, name, most in MOST_SECONDS:
        run = noted.get(name)
        text = f"{run['seconds']} s on {run['date']}, {run['cores']} cores" if run else "not measured on this machine"
        yield Row(title, text, f"≤ {most} s", run is not None and run["seconds"] <= most)


def _none(title: str, option: str, places: Sequence[str]) -> Row:
    """A row of what should not be: each place begins with its file."""
    files = len({place.partition(":")[0] for place in places})
    return Row(title, f"{len(places)} in {files} files" if places else "0", "0", not places, option, tuple(places))


def unsaid_row(places: Sequence[str]) -> Row:
    """The row of the sentences that a person would not say: each place begins with its file."""
    title, goal = "sentences that a person would not say", f"≤ {MOST_UNSAID}"
    return Row(title, str(len(places)), goal, len(places) <= MOST_UNSAID, "unsaid", tuple(places))


def of_fixing(trees: Mapping[str, ast.Module]) -> dict[str, ast.Module]:
    """The modules of the fixing feature, with what decides which fixes are offered."""
    prefixes = (*(f"{room}/" for room in ROOMS), SHOWN)
    return {file: tree for file, tree in trees.items() if file.startswith(prefixes)}


def table(measured: Sequence[Row]) -> list[str]:
    """The rows as text, in columns."""
    cells = [(row.title, row.measured, row.goal, "holds" if row.holds else "falls short") for row in measured]
    widths = [max(len(row[column]) for row in cells) for column in range(3)]
    return [
        "  ".join([*(cell.ljust(width) for cell, width in zip(row[:3], widths, strict=True)), row[3]]) for row in cells
    ]


def main(args: Sequence[str] | None = None) -> int:
    """Prints the table, or the places of a row; 1 if a row falls short."""
    toml: Any = importlib.import_module("tomllib")  # of Python 3.11
    project = toml.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    trees = trees_below(tuple(SOURCES.values()))
    lines = {file: len((ROOT / file).read_text(encoding="utf-8").splitlines()) for file in trees}
    unsaid = unsaid_row(plain_english.unsaid(plain_english.all_texts()))
    noted = json.loads(SECONDS.read_text(encoding="utf-8")) if SECONDS.exists() else {}
    measured = [*rows(project, trees, lines), *rows_of_words(), unsaid, *rows_of_seconds(noted)]
    parser = argparse.ArgumentParser(prog="npm run check:house --")
    for row in measured:
        if row.option:
            parser.add_argument(
                f"--{row.option}", action="append_const", const=row.places, dest="lists", help=row.title
            )
    lists = parser.parse_args(args).lists
    print("\n".join(table(measured) if lists is None else [place for places in lists for place in places]))
    return 0 if all(row.holds for row in measured) else 1


if __name__ == "__main__":
    sys.exit(main())
