"""The head of a script: the imports of installed packages that come before anything that could change them.

A layer does these imports ahead of the script.  So that they do there what they would do in the script, only such
statements may be between them that no import can notice: definitions, plain values, a seed, a variable of the
environment (which the layer sets as well, in the same order).  With the first other statement the head ends, and the
imports below it are the script's to do.  A module of the user's own is walked through as the import would run it.
"""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Callable
from dataclasses import field
from typing import Literal

from irscope.vocabulary.records import dataclass
from irscope.worker.modules import ModuleKind, find, kind_of_file


@dataclass(frozen=True)
class Step:
    """One statement of a layer.

    Args:
        kind: An import; a variable of the environment that is set; or a filter of warnings or a seed, which is not set
            in the layer, but must not be there if an import sets filters or draws random numbers.
        text: Python that does it in its own namespace.
    """

    kind: Literal["import", "variable", "filter", "seed"]
    text: str


# What may be called at module level between imports: it changes nothing that an import looks at.
_PLAIN_CALLS = frozenset(
    (
        *("logging.getLogger", "os.environ.get", "os.getenv", "Path", "pathlib.Path", "re.compile", "print"),
        *("TypeVar", "typing.TypeVar", "NewType", "namedtuple", "collections.namedtuple", "dataclass", "field"),
        *("dataclasses.dataclass", "dataclasses.field", "partial", "functools.partial", "wraps", "cache", "lru_cache"),
        *("functools.lru_cache", "functools.cache", "range", "len", "int", "str", "float", "bool", "dict", "list"),
        *("set", "tuple", "frozenset", "min", "max", "sum", "sorted", "time.time", "time.perf_counter"),
        *("torch.device", "torch.no_grad"),
        *("torch.inference_mode", "torch.compile", "torch.compiler.disable", "torch._dynamo.disable"),
    )
)
_PLAIN_PREFIXES = ("os.path.",)
_FILTERS = frozenset(("warnings.filterwarnings", "warnings.simplefilter"))
_SEEDS = frozenset(("random.seed", "np.random.seed", "numpy.random.seed", "torch.manual_seed"))
_SETTERS = frozenset(("os.environ.setdefault", "os.putenv"))


def head_of(script: str, read: Callable[[str], str | bytes]) -> tuple[Step, ...]:
    """The steps of a script's head up to its last import that would load something; none if it has no such import.

    Args:
        script: Its path.
        read: Gives the text of a file as it runs.  What it raises is raised here, as is SyntaxError.
    """
    folder = os.path.dirname(os.path.realpath(script))
    walk = _Walk(folder, read)
    walk.through(ast.parse(read(script)), "__main__", None)
    last = max((at for at, step in enumerate(walk.steps) if step.kind == "import"), default=-1)
    return tuple(walk.steps[: last + 1])


@dataclass
class _Names:
    """What the names of one module mean."""

    installed: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Name → an import and an expression that give the same."""
    own: set[str] = field(default_factory=set)


class _Walk:
    def __init__(self, folder: str, read: Callable[[str], str | bytes]) -> None:
        self._folder, self._read = folder, read
        self._seen: set[str] = set()
        self.steps: list[Step] = []

    def through(self, tree: ast.Module, name: str, package: str | None) -> bool:
        """Walks through a module; false if the head ends in it."""
        return self._block(tree.body, name, package, _Names())

    def _block(self, body: list[ast.stmt], name: str, package: str | None, names: _Names) -> bool:
        return all(self._statement(node, name, package, names) for node in body)

    def _statement(self, node: ast.stmt, name: str, package: str | None, names: _Names) -> bool:
        if isinstance(node, ast.Import):
            return all(self._import(alias, names) for alias in node.names)
        if isinstance(node, ast.ImportFrom):
            return self._import_from(node, package, names)
        if isinstance(node, ast.If):
            if _is_type_checking(node.test):
                return self._block(node.orelse, name, package, names)
            if _is_main_guard(node.test):
                return self._block(node.body if name == "__main__" else node.orelse, name, package, names)
        if isinstance(node, ast.Try):
            return self._block(self._what_runs(node), name, package, names)
        if (step := _environment(node)) is not None:
            self.steps.append(step)
            return True
        if self._is_inert(node, names):
            return True
        self._touch(node, names)
        return False

    def _what_runs(self, node: ast.Try) -> list[ast.stmt]:
        """The statements of a ``try`` that run: up to a module that is not there, and then those that handle that.

        What is there is taken to be importable: where it is not the layer is given up.
        """
        for at, one in enumerate(node.body):
            modules = [alias.name for alias in one.names] if isinstance(one, ast.Import) else []
            if isinstance(one, ast.ImportFrom) and not one.level:
                modules = [one.module or ""]
            if any(self._home(module) is None for module in modules):
                handler = next((one for one in node.handlers if _handles_import_error(one)), None)
                return [*node.body[:at], *handler.body, *node.finalbody] if handler else node.body
        return [*node.body, *node.orelse, *node.finalbody]

    # --- imports ------------------------------------------------------------------------------------------------------

    def _import(self, alias: ast.alias, names: _Names) -> bool:
        home = self._home(alias.name)
        top = alias.name.partition(".")[0]
        if home is ModuleKind.INSTALLED:
            text = f"import {alias.name}"
            self._add(text, alias.name, ())
            names.installed[alias.asname or top] = (text, alias.name if alias.asname else top)
        elif isinstance(home, str):
            names.own.add(alias.asname or top)
            return self._own(home, alias.name.split("."))
        return home is not None

    def _import_from(self, node: ast.ImportFrom, package: str | None, names: _Names) -> bool:
        module = node.module or ""
        if node.level:
            if package is None:
                return False
            base = package.split(".")
            base = base[: len(base) - node.level + 1]
            module = ".".join([*base, *filter(None, [module])])
            if not base:
                return False
        if module == "__future__":
            return True
        home = self._home(module)
        if home is ModuleKind.INSTALLED:
            wanted = tuple(alias.name for alias in node.names)
            text = f"from {module} import {', '.join(wanted)}"
            self._add(text, module, wanted)
            for alias in node.names:
                names.installed[alias.asname or alias.name] = (f"from {module} import {alias.name}", alias.name)
        elif isinstance(home, str):
            names.own.update(alias.asname or alias.name for alias in node.names)
            return self._own(home, module.split("."), [alias.name for alias in node.names])
        return home is not None

    def _home(self, module: str) -> ModuleKind | str | None:
        """Where a module's package lies; the file or folder of one of the user's; None if there is none."""
        spec = find(module.partition(".")[0], self._folder)
        if spec is None:
            return None
        if spec.origin is None or not os.path.isabs(spec.origin):  # built in; or a folder without __init__.py
            folders = list(spec.submodule_search_locations or ())
            if not folders:
                return ModuleKind.STANDARD
            return ModuleKind.INSTALLED if kind_of_file(folders[0] + os.sep) is ModuleKind.INSTALLED else folders[0]
        home = kind_of_file(spec.origin)
        return spec.origin if home is ModuleKind.OWN else home

    def _add(self, text: str, module: str, names: tuple[str, ...]) -> None:
        """An import, unless it would find everything loaded."""
        loaded = sys.modules.get(module)
        if loaded is None or any(
            name not in vars(loaded) and f"{module}.{name}" not in sys.modules for name in names if name != "*"
        ):
            self.steps.append(Step("import", text))

    def _own(self, home: str, parts: list[str], wanted: list[str] | None = None) -> bool:
        """Walks through a module of the user's, and the packages around it, in the order in which they are imported."""
        if home.endswith(os.sep + "__init__.py"):
            home = os.path.dirname(home)
        at = home
        for count in range(1, len(parts) + 1):
            if count > 1:
                at = os.path.join(at, parts[count - 1])
            if not self._own_file(at, ".".join(parts[:count])):
                return False
        if not os.path.isdir(at):
            return True
        submodules = [one for one in wanted or () if _module_file(os.path.join(at, one)) is not None]
        return all(self._own_file(os.path.join(at, one), ".".join([*parts, one])) for one in submodules)

    def _own_file(self, at: str, module: str) -> bool:
        file = _module_file(at)
        if file is None:
            return os.path.isdir(at)
        if file in self._seen:
            return True
        self._seen.add(file)
        is_package = os.path.basename(file) == "__init__.py"
        package = module if is_package else module.rpartition(".")[0] or None
        return self.through(ast.parse(self._read(file)), module, package)

    # --- what is between ------------------------------------------------------------------------------------------

    def _is_inert(self, node: ast.stmt, names: _Names) -> bool:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return self._is_inert_function(node, names)
        if isinstance(node, ast.ClassDef):
            return self._is_inert_class(node, names)
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            return self._is_inert_assignment(node, names)
        if isinstance(node, ast.Expr):
            return self._is_inert_expression(node, names)
        return isinstance(node, ast.Pass)

    def _is_inert_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef, names: _Names) -> bool:
        arguments = node.args
        values = [*node.decorator_list, *arguments.defaults, *filter(None, arguments.kw_defaults)]
        plain = _are_foreign(node.decorator_list, names) and self._are_plain(values, names)
        names.own.add(node.name)
        return plain

    def _is_inert_class(self, node: ast.ClassDef, names: _Names) -> bool:
        special = {"__init_subclass__", "__set_name__", "__class_getitem__"}
        inner = _Names(dict(names.installed), set(names.own))
        plain = (
            _are_foreign(node.decorator_list, names)
            and self._are_plain([*node.decorator_list, *node.bases, *(word.value for word in node.keywords)], names)
            and not any(word.arg == "metaclass" for word in node.keywords)
            and not any(getattr(statement, "name", "") in special for statement in node.body)
            and all(self._is_inert(statement, inner) for statement in node.body)
        )
        names.own.add(node.name)
        return plain

    def _is_inert_assignment(self, node: ast.Assign | ast.AnnAssign, names: _Names) -> bool:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if not all(isinstance(target, (ast.Name, ast.Tuple, ast.List)) for target in targets):
            return False
        parts = [part for target in targets for part in ast.walk(target)]
        if any(isinstance(part, (ast.Attribute, ast.Subscript, ast.Starred)) for part in parts):
            return False
        plain = node.value is None or self._are_plain([node.value], names)
        names.own.update(part.id for part in parts if isinstance(part, ast.Name))
        return plain

    def _is_inert_expression(self, node: ast.Expr, names: _Names) -> bool:
        call = node.value
        called = _dotted(call.func) if isinstance(call, ast.Call) else ""
        if called in _FILTERS:
            self.steps.append(Step("filter", ast.unparse(node)))
            return True
        if isinstance(call, ast.Call) and called in _SEEDS:
            self.steps.append(Step("seed", ast.unparse(node)))
            return self._are_plain([*call.args, *(word.value for word in call.keywords)], names)
        return self._are_plain([call], names)

    def _are_plain(self, expressions: list[ast.expr], names: _Names) -> bool:
        """Whether they call only what is known to be harmless; looks up what they take from a package."""
        for expression in expressions:
            for node in ast.walk(expression):
                if isinstance(node, (ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr)):
                    return False
                if isinstance(node, ast.Call):
                    called = _dotted(node.func)
                    root = called.partition(".")[0]
                    if root in names.own or not (called in _PLAIN_CALLS or called.startswith(_PLAIN_PREFIXES)):
                        return False
            for node in _in_order(expression):
                self._look_up(node, names)
        return True

    def _look_up(self, node: ast.AST, names: _Names) -> None:
        """A package may import what an attribute needs when the attribute is asked for, as transformers does."""
        dotted = _dotted(node) if isinstance(node, ast.Attribute) else ""
        root, _, rest = dotted.partition(".")
        if not rest or root in names.own or root not in names.installed:
            return
        text, expression = names.installed[root]
        if expression.partition(".")[0] not in sys.modules and text.split()[1].partition(".")[0] not in sys.modules:
            step = Step("import", f"{text}; {expression}.{rest}")
            if step not in self.steps:
                self.steps.append(step)

    def _touch(self, node: ast.stmt, names: _Names) -> None:
        """What the statement that ends the head takes from packages before its first call has returned."""
        value = node.value if isinstance(node, (ast.Assign, ast.AnnAssign, ast.Expr)) else None
        if value is None:
            return
        for one in _in_order(value):
            if isinstance(one, ast.Call):
                return
            self._look_up(one, names)


def _are_foreign(decorators: list[ast.expr], names: _Names) -> bool:
    """Whether none of them is the user's own function; ``@x.setter`` is a property's."""
    dotted = [_dotted(one.func if isinstance(one, ast.Call) else one) for one in decorators]
    return not any(
        one.partition(".")[0] in names.own and one.partition(".")[2] not in ("setter", "getter", "deleter")
        for one in dotted
    )


def _in_order(node: ast.AST) -> list[ast.AST]:
    """The expressions of an expression, in the order in which their values are there; not those of a lambda's body."""
    if isinstance(node, (ast.Lambda, ast.GeneratorExp, ast.ListComp, ast.SetComp, ast.DictComp)):
        return [node]
    if isinstance(node, ast.Attribute) and _dotted(node):
        return [node]
    found: list[ast.AST] = []
    for child in ast.iter_child_nodes(node):
        found += _in_order(child)
    return [*found, node]


def _environment(node: ast.stmt) -> Step | None:
    """A variable of the environment that is set to a text that is there."""
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Subscript):
        target = node.targets[0]
        good = _dotted(target.value) == "os.environ" and _is_text(target.slice) and _is_text(node.value)
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        call = node.value
        good = _dotted(call.func) in _SETTERS and not call.keywords and all(map(_is_text, call.args))
    else:
        return None
    return Step("variable", f"import os; {ast.unparse(node)}") if good else None


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _handles_import_error(handler: ast.ExceptHandler) -> bool:
    caught = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    names = {"ModuleNotFoundError", "ImportError", "Exception", "BaseException"}
    return any(one is None or _dotted(one) in names for one in caught)


def _is_type_checking(test: ast.expr) -> bool:
    return _dotted(test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")


def _is_main_guard(test: ast.expr) -> bool:
    return isinstance(test, ast.Compare) and ast.unparse(test) in ("__name__ == '__main__'", "'__main__' == __name__")


def _dotted(node: ast.AST) -> str:
    """``a.b.c``; empty for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def _module_file(path: str) -> str | None:
    for file in (os.path.join(path, "__init__.py"), path + ".py", path):
        if os.path.isfile(file) and file.endswith(".py"):
            return file
    return None
