"""Which private names of PyTorch's that irscope uses are not in a source tree of PyTorch; not a part of `npm test`.

    python scripts/private_names.py --source DIR

``DIR`` is a checkout, or the folder that has an installed ``torch`` in it; it is not imported.  The names are
those of the declarations in `irscope.internals`: what a `PrivateName` is, where a `FrameLook` looks, and what the
function of a `Hook` reads of its module.  What it reads of an object whose class is not written there is not checked,
nor are names of C.  The exit code is 1 if a name is missing: its hook leaves a capture gap in that version.
"""

from __future__ import annotations

import argparse
import ast
import functools
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

INTERNALS = Path(__file__).resolve().parents[1] / "compiler" / "irscope" / "internals"
FIELDS = {"Hook": ("what", "module", "versions", "apply"), "PrivateName": ("what", "module", "name", "versions")}
Function = ast.FunctionDef | ast.Lambda


class Used(NamedTuple):
    """A name that irscope uses: the module or file of torch's, the way in it, and the declaration's place and words."""

    module: str
    chain: tuple[str, ...]
    place: str
    what: str


def used_in(file: Path) -> Iterator[Used]:
    """The names of the declarations in a file."""
    tree = ast.parse(file.read_text())
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    known = {
        target.id: node.value.value
        for node in tree.body if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets if isinstance(target, ast.Name)
    }  # fmt: skip

    def text(node: ast.expr | None) -> str:
        value = getattr(node, "value", "") if not isinstance(node, ast.Name) else known.get(node.id)
        return value if isinstance(value, str) else ""

    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
        kind, place = ast.unparse(call.func), f"{file.name}:{call.lineno}"
        given = dict(zip(FIELDS.get(kind, ()), call.args, strict=False))
        given |= {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg is not None}
        what, module = text(given.get("what")), text(given.get("module"))
        if kind == "FrameLook" and text(given.get("file")).endswith(".py"):
            local = text(given.get("local")).partition(".")[0]
            chain = (text(given.get("function")), *([local] if local else []))
            yield Used(text(given["file"]), chain, place, what)
        elif kind == "PrivateName" and module:
            yield Used(module, tuple(filter(None, text(given["name"]).split("."))), place, what)
        elif kind == "Hook" and module:
            function = _function(given["apply"], parents)
            for chain in _read(function) if function is not None else [()]:
                yield Used(module, chain, place, what)


def _function(node: ast.expr, parents: dict[ast.AST, ast.AST]) -> Function | None:
    """The function that a hook is given: the nearest of its name."""
    if isinstance(node, ast.Lambda):
        return _function(node.body.func if isinstance(node.body, ast.Call) else node.body, parents) or node
    name, around = getattr(node, "id", getattr(node, "attr", "")), parents.get(node)
    while around is not None:
        for other in ast.walk(around):
            if isinstance(other, ast.FunctionDef) and other.name == name:
                return other
        around = parents.get(around)
    return None


def _read(function: Function) -> set[tuple[str, ...]]:
    """The ways that a function reads from the module that it gets, its first parameter but for ``self``."""
    aliases = {next((one.arg for one in function.args.args if one.arg != "self"), ""): tuple[str, ...]()}

    def way(node: ast.AST) -> tuple[str, ...] | None:
        match node:
            case ast.Name(name):
                return aliases.get(name)
            case (
                ast.Subscript(ast.Attribute(base, "__dict__"), ast.Constant(str() as name))
                | ast.Call(ast.Name("replace_attribute"), [base, ast.Constant(str() as name), _])
                | ast.Call(ast.Name("getattr"), [base, ast.Constant(str() as name)])
                | ast.Attribute(base, name)
            ) if not (isinstance(node, ast.Attribute) and name.startswith("__")):
                before = way(base)
                return None if before is None else (*before, name)
        return None

    for node in ast.walk(function):
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value and (chain := way(node.value)) is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            aliases |= {target.id: chain for target in targets if isinstance(target, ast.Name)}
    return {(), *(chain for node in ast.walk(function) if (chain := way(node)))}


def _has(source: Path, name: Used, nodes_of: Callable[[Path], list[ast.AST]]) -> bool:
    """Whether a module defines a name and, if the module has that class, the next; a function may be anywhere in it."""
    path = source / (name.module if name.module.endswith(".py") else name.module.replace(".", "/"))
    file = next(filter(Path.is_file, (path, path.with_name(f"{path.name}.py"), path / "__init__.py")), None)
    if file is None:
        return False
    nodes = nodes_of(file)
    if name.module.endswith(".py"):
        functions = [node for node in nodes if isinstance(node, ast.FunctionDef) and name.chain[0] in ("", node.name)]
        words = {getattr(node, "id", getattr(node, "arg", "")) for one in functions for node in ast.walk(one)}
        return bool(functions) and words.issuperset(name.chain[1:])
    first = name.chain[0] if name.chain else "__init__"
    if file.parent.joinpath(first).is_dir() or file.with_name(f"{first}.py").is_file() or not name.chain:
        return True
    is_class = any(isinstance(node, ast.ClassDef) and node.name == first for node in nodes)
    names = _defined(nodes)
    return "*" in names or names.issuperset(name.chain[: 1 + is_class])


def _defined(nodes: list[ast.AST]) -> set[str]:
    """The names that are defined, imported or assigned anywhere in a module."""
    found = {one.name for one in nodes if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))}
    found |= {(one.asname or one.name).partition(".")[0] for one in nodes if isinstance(one, ast.alias)}
    stored = (one for one in nodes if isinstance(one, (ast.Name, ast.Attribute)) and isinstance(one.ctx, ast.Store))
    return found | {one.id if isinstance(one, ast.Name) else one.attr for one in stored}


def missing_in(source: Path) -> tuple[list[Used], int]:
    """The names that a source tree lacks, and how many were looked for."""
    used = {name for file in INTERNALS.glob("*.py") for name in used_in(file)}
    of_torch = [name for name in sorted(used) if re.match(r"torch(?:[/.]|$)(?!_C\b)", name.module)]
    nodes_of = functools.cache(lambda file: list(ast.walk(ast.parse(file.read_text()))))
    return [name for name in of_torch if not _has(source, name, nodes_of)], len(of_torch)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", type=Path, required=True)
    missing, count = missing_in(parser.parse_args().source)
    for name in missing:
        print(f"missing  {name.module} {'.'.join(filter(None, name.chain))}  ({name.place}: {name.what})")
    print(f"{count - len(missing)} of {count} names are there")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
