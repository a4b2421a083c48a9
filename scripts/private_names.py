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
        value = (
            node.value if isinstance(node, ast.Constant) else known.get(node.id) if isinstance(node, ast.Name) else ""
        )
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
    around: ast.AST | None = node
    while around is not None:
        around = parents.get(around)
        for other in ast.walk(around) if around is not None else ():
            if isinstance(other, ast.FunctionDef) and other.name == name:
                return other
    return None


def _read(function: Function) -> set[tuple[str, ...]]:
    """The ways that a function reads from the module that it gets, its first parameter but for ``self``."""
    names = [argument.arg for argument in function.args.args if argument.arg != "self"]
    if not names:
        return {()}
    aliases: dict[str, tuple[str, ...]] = {names[0]: ()}

    def way(node: ast.AST) -> tuple[str, ...] | None:
        match node:
            case ast.Name(id=name):
                return aliases.get(name)
            case ast.Subscript(
                value=ast.Attribute(value=base, attr="__dict__"), slice=ast.Constant(value=str() as name)
            ):
                return None if (before := way(base)) is None else (*before, name)
            case ast.Call(
                func=ast.Name(id="getattr" | "replace_attribute"), args=[base, ast.Constant(value=str() as name), *rest]
            ):
                is_sure = not rest or ast.unparse(node.func) == "replace_attribute"
                return None if (before := way(base)) is None or not is_sure else (*before, name)
            case ast.Attribute(value=base, attr=name) if not name.startswith("__"):
                return None if (before := way(base)) is None else (*before, name)
        return None

    found = {()}
    for node in ast.walk(function):  # statements come before what is inside of those after them
        if (
            isinstance(node, (ast.Assign, ast.AnnAssign))
            and node.value is not None
            and (chain := way(node.value)) is not None
        ):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            aliases |= {target.id: chain for target in targets if isinstance(target, ast.Name)}
    for node in ast.walk(function):
        if chain := way(node):
            found.add(chain)
    return found


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
        found = [node for names, node in _defined(body.body) if chain[0] in names or "*" in names]
        classes = [node for node in found if isinstance(node, ast.ClassDef)]
        if not classes or len(chain) == 1:
            return bool(found)
        members = [_members(node, body) for node in classes]
        return any(names is None or chain[1] in names for names in members)


def _members(node: ast.ClassDef, module: ast.Module) -> set[str] | None:
    """The attributes of a class and its bases; None if a base is written elsewhere."""
    found = {name for names, _ in _defined(node.body) for name in names}
    found |= {
        part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Store)
    }
    for base in node.bases:
        name = ast.unparse(base).partition("[")[0]
        classes = [one for one in module.body if isinstance(one, ast.ClassDef) and one.name == name and one is not node]
        inherited = _members(classes[0], module) if classes else set() if name in ("object", "Generic") else None
        if inherited is None:
            return None
        found |= inherited
    return found


def _defined(body: list[ast.stmt]) -> Iterator[tuple[set[str], ast.AST]]:
    """The names that statements define, also those under conditions."""
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield {node.name}, node
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            yield {(alias.asname or alias.name).partition(".")[0] for alias in node.names}, node
        elif isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            yield (
                {name.id for name in ast.walk(node) if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)},
                node,
            )
        else:
            for field in ("body", "orelse", "handlers", "finalbody"):
                yield from _defined(getattr(node, field, []))


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
