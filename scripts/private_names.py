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
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

INTERNALS = Path(__file__).resolve().parents[1] / "compiler" / "irscope" / "internals"
FIELDS = {"Hook": ("what", "module", "versions", "apply"), "PrivateName": ("what", "module", "name", "versions")}
Function = ast.FunctionDef | ast.Lambda


@dataclass(frozen=True)
class Used:
    """A name that irscope uses: the module or file of torch's, the way in it, and the declaration's place and words."""

    module: str
    chain: tuple[str, ...]
    what: str
    place: str


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
            yield Used(text(given["file"]), chain, what, place)
        elif kind == "PrivateName" and module:
            yield Used(module, tuple(filter(None, text(given["name"]).split("."))), what, place)
        elif kind == "Hook" and module:
            function = _function(given["apply"], tree, parents)
            for chain in _read(function) if function is not None else [()]:
                yield Used(module, chain, what, place)


def _function(node: ast.expr, tree: ast.Module, parents: dict[ast.AST, ast.AST]) -> Function | None:
    """The function that a hook is given: the nearest of its name."""
    if isinstance(node, ast.Lambda):
        inner = node.body.func if isinstance(node.body, ast.Call) else None
        return _function(inner, tree, parents) or node if isinstance(inner, ast.Name) else node
    name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
    around = parents.get(node)
    while around is not None:
        for other in ast.walk(around):
            if isinstance(other, ast.FunctionDef) and other.name == name:
                return other
        around = parents.get(around)
    return None


def _read(function: Function) -> set[tuple[str, ...]]:
    """The ways that a function reads from the module that it gets, its first parameter but for ``self``."""
    first = next((one.arg for one in function.args.args if one.arg != "self"), "")
    aliases: dict[str, tuple[str, ...]] = {first: ()}

    def way(node: ast.AST) -> tuple[str, ...] | None:
        base, name = _step(node)
        before = aliases.get(name) if base is None else way(base)
        return before if base is None or before is None else (*before, name)

    for node in ast.walk(function):
        value = node.value if isinstance(node, (ast.Assign, ast.AnnAssign)) else None
        if value is not None and (chain := way(value)) is not None:
            aliases |= {
                name.id: chain
                for name in ast.iter_child_nodes(node)
                if isinstance(name, ast.Name) and name is not value
            }
    return {(), *(chain for node in ast.walk(function) if (chain := way(node)))}


def _step(node: ast.AST) -> tuple[ast.AST | None, str]:
    """What an expression reads of something, and of what; of nothing: a name."""
    match node:
        case ast.Subscript(ast.Attribute(base, "__dict__"), ast.Constant(str() as name)):
            return base, name
        case ast.Call(ast.Name("replace_attribute"), [base, ast.Constant(str() as name), _]):
            return base, name
        case ast.Call(ast.Name("getattr"), [base, ast.Constant(str() as name)]):
            return base, name
        case ast.Attribute(base, name) if not name.startswith("__"):
            return base, name
    return None, node.id if isinstance(node, ast.Name) else ""


class Tree:
    """The sources of PyTorch."""

    def __init__(self, root: Path) -> None:
        self._root, self._bodies = root, dict[Path, ast.Module]()

    def file(self, module: str) -> Path | None:
        """The file of a module, or of the end of a path."""
        path = self._root / (module if module.endswith(".py") else module.replace(".", "/"))
        places = [path] if module.endswith(".py") else [path.with_name(f"{path.name}.py"), path / "__init__.py"]
        return next((place for place in places if place.is_file()), None)

    def has(self, file: Path, chain: tuple[str, ...], is_function: bool) -> bool:
        """Whether a module defines a name, and a class in it the next; a function may be anywhere in it."""
        body = self._bodies.setdefault(file, ast.parse(file.read_text()))
        if is_function:
            everywhere = [node for node in ast.walk(body) if isinstance(node, ast.FunctionDef)]
            functions = [node for node in everywhere if chain[0] in ("", node.name)]
            words = {getattr(node, "id", getattr(node, "arg", "")) for one in functions for node in ast.walk(one)}
            return bool(functions) and words.issuperset(chain[1:])
        if not chain or file.parent.joinpath(chain[0]).is_dir() or file.with_name(f"{chain[0]}.py").is_file():
            return True
        names = _defined(body)
        classes = [node for node in ast.walk(body) if isinstance(node, ast.ClassDef) and node.name == chain[0]]
        if len(chain) == 1 or not classes:
            return not names.isdisjoint((chain[0], "*"))
        return any(chain[1] in _members(node, body, chain[1]) for node in classes)


def _members(node: ast.ClassDef, module: ast.Module, wanted: str) -> set[str]:
    """The attributes of a class and its bases; with what is wanted if a base is written elsewhere."""
    found = _defined(node)
    for name in (ast.unparse(base).partition("[")[0] for base in node.bases):
        classes = [one for one in module.body if isinstance(one, ast.ClassDef) and one.name == name and one is not node]
        found |= _members(classes[0], module, wanted) if classes else {wanted if name != "Generic" else ""}
    return found


def _defined(body: ast.AST) -> set[str]:
    """The names that are defined, imported or assigned in a module or a class."""
    nodes = list(ast.walk(body))
    found = {one.name for one in nodes if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))}
    found |= {(one.asname or one.name).partition(".")[0] for one in nodes if isinstance(one, ast.alias)}
    stored = (one for one in nodes if isinstance(one, (ast.Name, ast.Attribute)) and isinstance(one.ctx, ast.Store))
    return found | {one.id if isinstance(one, ast.Name) else one.attr for one in stored}


def missing_in(source: Path) -> tuple[list[Used], int]:
    """The names that a source tree lacks, and how many were looked for."""
    tree = Tree(source)
    used = {name for file in sorted(INTERNALS.glob("*.py")) for name in used_in(file)}
    of_torch = [name for name in used if re.match(r"torch(?:[/.]|$)(?!_C\b)", name.module)]
    missing = []
    for name in sorted(of_torch, key=lambda name: (name.module, name.chain, name.place)):
        file = tree.file(name.module)
        if file is None or not tree.has(file, name.chain, name.module.endswith(".py") and bool(name.chain)):
            missing.append(name)
    return missing, len(of_torch)


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
