"""The calls and changes with effects in a text: what each is, and what may keep it from being done."""

from __future__ import annotations

import ast
import dataclasses
import functools
import itertools
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from irscope.usercode.bindings import Function, dotted, last_word, targets_of
from irscope.usercode.effects import effects_of
from irscope.vocabulary.records import dataclass

_STATE = re.compile(r"_?is_(\w+_)?(compiling|tracing|scripting|exporting)")
"""Names that ask whether code is compiled."""
_OF_COMPILER = re.compile(r"torch\.(compile|(compiler|_dynamo|_inductor|backends)\..*|_check\w*|_assert\w*)")
_COMPARED = re.compile(
    r"torch\.(no_grad|enable_grad|inference_mode|set_grad_enabled|autocast|(cuda\.)?amp\.autocast|device)"
    r"|contextlib\.nullcontext"
)
"""Contexts whose effect is on results, which a proof compares."""
_SKIPPED = re.compile(r"(.*\.)?(ignore_logging_functions|reorderable_logging_functions|ignore_logger_methods)")
_TRACED_ONCE = re.compile(r"torch\.(_dynamo|compiler)\.(nonstrict_trace|allow_in_graph|substitute_in_graph)")
_OPERATOR = re.compile(r"torch\.library\.(custom_op|triton_op)")
_GENERATORS = ("random.", "numpy.random.")
"""A number that one of their functions draws may be drawn by another one."""
_DRAWN = re.compile(r"\b((np|numpy)\.)?random\.\w+\([^()]*\)")
_LONGEST = 70
_EXITS = (ast.Return, ast.Raise, ast.Break, ast.Continue)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


@dataclass(frozen=True)
class Place:
    """Where something is: in which function (``.Net.forward`` by name), in how many loops, behind which conditions, and whether one of them keeps
    compiled code from it."""

    function: Function | ast.Lambda | None = None
    name: str = ""
    loops: int = 0
    tests: tuple[str, ...] = ()
    off: bool = False


@dataclass(frozen=True)
class Effect:
    """One call or change.

    Args:
        key: What is called, or what is changed.
        place: Where it is; returns before it are among the conditions.
        needed: Whether it must be kept; else it only stands for one that must.
        compared: Whether it changes a value of the function's own: the proof compares what comes of it.
        names: The full names of what is called, if they are known.
        order: Its number in the text.
        unused: Whether it is a call whose value is not used.
    """

    key: str
    text: str
    place: Place
    needed: bool
    compared: bool
    names: tuple[str, ...]
    order: int
    unused: bool = False

    @property
    def gives_known_value(self) -> bool:
        """Whether it is a call of a function whose name is known, and whose value is used."""
        return bool(self.names) and not self.unused

    def stands_for(self, other: Effect) -> bool:
        """Whether it is done whenever the other one is done in its text."""
        here, there = self.place, other.place
        alike = (self.key, here.loops, here.function is None) == (other.key, there.loops, there.function is None)
        if self.compared:
            return alike and not here.off and len(here.tests) <= len(there.tests)
        return alike and not here.off and not Counter(here.tests) - Counter(there.tests)


class Written:
    """All effects of a text, and what it tells the compiler to leave out.

    Args:
        functions: The ones of the original, for a changed text: what is in another one that nothing calls is not done.
    """

    def __init__(self, tree: ast.Module, functions: Collection[str] | None = None) -> None:
        self.known = effects_of(tree)
        self.effects: list[Effect] = []
        self.statements: dict[str, list[tuple[str, int]]] = {}
        """Simple statements, by their text: the functions that they are in, and their numbers in the text."""
        self.lines: dict[str, list[str]] = {}
        """The same, by function."""
        self._order = 0
        self._exits: dict[ast.AST | None, list[tuple[str, bool]]] = {}
        self._state = _state_names(tree)
        nodes = list(ast.walk(tree))
        self.functions = {one.name for one in nodes if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef))}
        self._uncalled = (
            self.functions - set(map(last_word, nodes)) - (self.functions if functions is None else set(functions))
        )
        self._loops_around = _loops_around(nodes, self.functions.difference(functions or self.functions))
        self._read = set(map(dotted, nodes))
        stores = Counter(dotted(one) for node in nodes for one in targets_of(node))
        self._given = {
            dotted(target): node.value
            for node in nodes
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name) and stores[target.id] == 1
        }
        self._all(tree.body, Place())
        self.marks = [mark for node in nodes for mark in self._marks(node)]

    # --- the walk -----------------------------------------------------------------------------------------------------

    def _all(self, nodes: Sequence[ast.AST | None], place: Place) -> None:
        for node in filter(None, nodes):
            self._visit(node, place)

    def _visit(self, node: ast.AST, place: Place) -> None:
        self._note(node, place)
        if isinstance(node, _SCOPES):
            self._enter(node, place)
        elif isinstance(node, (ast.If, ast.IfExp)):
            self._choose(node, place)
        elif isinstance(node, ast.BoolOp):
            self._visit(node.values[0], place)
            self._all(node.values[1:], self._behind(place, *node.values[:-1]))
        elif isinstance(node, (ast.For, ast.AsyncFor, ast.While)):
            test = node.test if isinstance(node, ast.While) else node.iter
            self._visit(test, place)
            self._bind(targets_of(node), place, node)
            self._all(node.body, self._looping(place, test))
            self._all(node.orelse, place)
        elif isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            self._comprehend(node, place)
        elif isinstance(node, (ast.match_case, ast.ExceptHandler)):
            self._all(node.body, self._behind(place, node))
        elif isinstance(node, ast.withitem):
            self._visit(node.context_expr, place)
            if not isinstance(node.context_expr, ast.Call):
                self._add(f"with {ast.unparse(node.context_expr)}", node.context_expr, place)
            self._bind(targets_of(node), place, node)
        elif isinstance(node, ast.Call):
            self._call(node, place, unused=False)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            self._call(node.value, place, unused=True)
        else:
            self._pass_through(node, place)

    def _comprehend(self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp, place: Place) -> None:
        for loop in node.generators:
            self._visit(loop.iter, place)
            place = self._looping(place, loop.iter)
            self._all(loop.ifs, place)
            place = self._behind(place, *loop.ifs) if loop.ifs else place
        self._all([node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt], place)

    def _pass_through(self, node: ast.AST, place: Place) -> None:
        """What is in a node that neither chooses nor repeats, what it binds, and whether it leaves the function."""
        # What an error is made with is not an effect: other checks look at errors.
        raised = node.exc if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) else node
        self._all(list(ast.iter_child_nodes(raised)), place)
        if not isinstance(node, ast.AnnAssign) or node.value is not None:
            self._bind(targets_of(node), place, node)
        if isinstance(node, _EXITS):
            self._exits.setdefault(place.function, []).append((f"exit {place.tests}", place.off))

    def _note(self, node: ast.AST, place: Place) -> None:
        self._order += 1
        if isinstance(node, ast.stmt) and not hasattr(node, "body"):
            text = line_of(node)
            self.statements.setdefault(text, []).append((place.name, self._order))
            self.lines.setdefault(place.name, []).append(text)
        if isinstance(node, (ast.Call, ast.Compare)):  # a loop may become operations on all elements at once
            for iterated in self.known.used_up(node):
                if not isinstance(iterated, ast.GeneratorExp):
                    self._add(f"iterate {ast.unparse(iterated)}", node, place)

    def _enter(self, node: Function | ast.Lambda | ast.ClassDef, place: Place) -> None:
        if isinstance(node, ast.ClassDef):
            self._all([*node.decorator_list, *node.bases, *node.keywords], place)
            self._all(node.body, dataclasses.replace(place, name=f"{place.name}.{node.name}"))
            return
        own = "" if isinstance(node, ast.Lambda) else node.name
        decorators: list[ast.expr] = [] if isinstance(node, ast.Lambda) else node.decorator_list
        body: Sequence[ast.AST] = [node.body] if isinstance(node, ast.Lambda) else node.body
        self._all([*node.args.defaults, *node.args.kw_defaults, *decorators], place)
        tests = (*place.tests, f"call {own}") if not own or place.function is not None else place.tests
        name, off = (f"{place.name}.{own}" if own else place.name), place.off or own in self._uncalled
        self._all(body, Place(node, name, self._loops_around.get(own, 0), tests, off))

    def _choose(self, node: ast.If | ast.IfExp, place: Place) -> None:
        """If both sides have an effect, one is needed."""
        self._visit(node.test, place)
        inner, start = self._behind(place, node.test), len(self.effects)
        self._all(node.body if isinstance(node, ast.If) else [node.body], inner)
        middle = len(self.effects)
        self._all(node.orelse if isinstance(node, ast.If) else [node.orelse], inner)
        left = Counter(one.key for one in self.effects[start:middle])
        for number, effect in enumerate(self.effects[middle:], middle):
            if left[effect.key] > 0:
                left[effect.key] -= 1
                self.effects[number] = dataclasses.replace(effect, needed=False)

    def _behind(self, place: Place, *tests: ast.AST) -> Place:
        off = place.off or any(self._is_off(one) for one in tests)
        return dataclasses.replace(place, tests=(*place.tests, *map(self._test, tests)), off=off)

    def _test(self, test: ast.AST) -> str:
        """A condition as text; if it is a name, the condition that was given this name: ``decided = bool(x > 0)``."""
        value = self._given.get(dotted(test), test)
        is_bool = (
            isinstance(value, ast.Call) and len(value.args) == 1 and self.known.names(value.func) == ("builtins.bool",)
        )
        text = line_of(value.args[0] if isinstance(value, ast.Call) and is_bool else value)
        return _DRAWN.sub("random()", text)

    def _looping(self, place: Place, over: ast.expr) -> Place:
        return dataclasses.replace(place, loops=place.loops + 1, off=place.off or self._asks(over))

    def _is_off(self, test: ast.AST) -> bool:
        """Whether a test asks whether code is compiled, or nothing that can be another time."""
        if isinstance(test, ast.Constant):
            return not test.value
        return self._asks(test) or not any(
            isinstance(one, (ast.Name, ast.ExceptHandler, ast.match_case)) for one in ast.walk(test)
        )

    def _asks(self, test: ast.AST) -> bool:
        return any(_asks(one, self._state) for one in ast.walk(test))

    # --- what is an effect --------------------------------------------------------------------------------------------

    def _call(self, call: ast.Call, place: Place, unused: bool) -> None:
        function = call.func
        self._all([function.value if isinstance(function, ast.Attribute) else function], place)
        self._all([*call.args, *(keyword.value for keyword in call.keywords)], place)
        names = self.known.names(function)
        if isinstance(function, ast.Attribute) and not names and re.fullmatch(r".*[^_]_", function.attr):
            flag = ".requires_grad" if function.attr == "requires_grad_" else ""
            self._change(f"{ast.unparse(function.value)}{flag}", call, place)
            return
        self._add(
            f"call {_generator(names) or ast.unparse(function)}",
            call,
            place,
            needed=not self._is_harmless(call, names, unused),
            names=names,
            unused=unused,
        )

    def _is_harmless(self, call: ast.Call, names: tuple[str, ...], unused: bool) -> bool:
        """Whether a call need not be kept: it only writes, gives a value, or sets what a proof compares."""
        # A method whose value is not used is called for its effect: a set has an `add`, too.
        is_for_effect = unused and isinstance(call.func, ast.Attribute) and not names
        if self.known.is_output(call) or (self.known.only_gives_value(call) and not is_for_effect):
            return True
        return bool(names) and all(_OF_COMPILER.fullmatch(name) or _COMPARED.fullmatch(name) for name in names)

    def _bind(self, targets: Sequence[ast.expr], place: Place, node: ast.AST) -> None:
        for target in targets:
            if isinstance(target, (ast.Tuple, ast.List, ast.Starred)):
                self._bind(target.elts if not isinstance(target, ast.Starred) else [target.value], place, node)
            elif isinstance(target, ast.Subscript):
                self._change(ast.unparse(target.value), node, place)
            elif isinstance(target, ast.Name):
                outer = target.id in _outer_names(place.function)
                needed = outer or isinstance(node, ast.NamedExpr)
                self._add(f"change {target.id}", node, place, needed=needed, compared=not outer)
            else:
                self._change(ast.unparse(target), node, place)

    def _change(self, what: str, node: ast.AST, place: Place) -> None:
        names = self.known.names(ast.parse(what, mode="eval").body)
        if names and all(map(_OF_COMPILER.fullmatch, names)):
            return
        self._add(f"change {what}", node, place, compared="." not in what)
        copied = self._given.get(what)
        if (
            isinstance(copied, ast.Call)
            and last_word(copied.func) == "clone"
            and isinstance(copied.func, ast.Attribute)
        ):
            self._add(f"change {ast.unparse(copied.func.value)}", node, place, needed=False, compared=True)

    def _add(
        self,
        key: str,
        node: ast.AST,
        place: Place,
        needed: bool = True,
        compared: bool = False,
        names: tuple[str, ...] = (),
        unused: bool = False,
    ) -> None:
        exits = self._exits.get(place.function, []) if place.function is not None else []
        tests = (*place.tests, *(test for test, _ in exits))
        place = dataclasses.replace(place, tests=tests, off=place.off or any(off for _, off in exits))
        self.effects.append(Effect(key, line_of(node), place, needed, compared, names, self._order, unused))

    # --- what the compiler is told ------------------------------------------------------------------------------------

    def _marks(self, node: ast.AST) -> Iterator[str]:
        """What compiled code leaves out, or does only while it is traced, since a setting or a mark says so."""
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and _SKIPPED.fullmatch(dotted(node.func.value))
        ):
            skipped = (arg for arg in node.args if not self.known.writes(arg) and not self._is_of_loggers(arg))
            yield from (f"This leaves out `{line_of(arg)}` while compiling." for arg in skipped)
        elif any(_SKIPPED.fullmatch(dotted(target)) for target in targets_of(node)):
            yield f"This may leave out more than output while compiling: `{line_of(node)}`."
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            for decorator in node.decorator_list:
                yield from self._marked(decorator, node.name)
        elif isinstance(node, ast.Call) and node.args and (function := dotted(node.args[0]).rpartition(".")[2]):
            yield from self._marked(node.func, function)

    def _is_of_loggers(self, function: ast.expr) -> bool:
        names = self.known.names(function)
        return bool(names) and all(name.startswith("logging.Logger.") for name in names)

    def _marked(self, mark: ast.expr, function: str) -> Iterator[str]:
        names = self.known.names(mark.func if isinstance(mark, ast.Call) else mark)
        once = any(map(_TRACED_ONCE.fullmatch, names))
        if not once and not any(map(_OPERATOR.fullmatch, names)):
            return
        if once:
            yield from (f"This does `{one.text}` only while tracing." for one in self._acting(function, once))
        elif f"{function}.register_effect" not in self._read:
            yield from (f"This may leave out `{one.text}`." for one in self._acting(function, once))

    def _acting(self, function: str, once: bool, seen: tuple[str, ...] = ()) -> Iterator[Effect]:
        """What a function does that would be missed: if it is done once, everything unknown; else what gives no value,
        or is a method of something unknown, also in functions of the file that it calls."""
        for effect in self.effects:
            changes_own = effect.key.startswith("change ") and "." not in effect.key
            if effect.place.name.rpartition(".")[2] != function or not effect.needed or changes_own:
                continue
            called = effect.key.removeprefix("call ")
            if once or effect.unused or not called.isidentifier():
                if not effect.gives_known_value or (once and not all(map(_is_of_numpy, effect.names))):
                    yield effect
            elif called in self.functions and called not in seen:
                yield from self._acting(called, once, (*seen, function))


def _is_of_numpy(name: str) -> bool:
    return name.startswith("numpy.")


def _generator(names: tuple[str, ...]) -> str:
    """What draws the number that a call of a function gives; empty if it draws none."""
    drawing = (one for one in _GENERATORS if names and all(name.startswith(one) for name in names))
    return next(drawing, "")


@functools.lru_cache(maxsize=64)
def _outer_names(function: ast.AST | None) -> frozenset[str]:
    """The names of the module, or of a function around it, that a function binds."""
    nodes = ast.walk(function) if function is not None else ()
    return frozenset(name for one in nodes if isinstance(one, (ast.Global, ast.Nonlocal)) for name in one.names)


def _loops_around(nodes: Sequence[ast.AST], functions: Collection[str]) -> dict[str, int]:
    """In how many loops a function is called, of some that one call each reaches."""
    calls = Counter(last_word(node.func) for node in nodes if isinstance(node, ast.Call))
    return Counter(
        name
        for loop in nodes
        if isinstance(loop, (ast.For, ast.AsyncFor, ast.While))
        for node in itertools.chain.from_iterable(map(ast.walk, loop.body))
        if isinstance(node, ast.Call) and (name := last_word(node.func)) in functions and calls[name] == 1
    )


def _state_names(tree: ast.Module) -> set[str]:
    """The names that tell whether code is compiled, beside those that `_STATE` knows."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            found |= {alias.asname for alias in node.names if alias.asname and _STATE.fullmatch(alias.name)}
    size = -1
    while size < len(found):
        size = len(found)
        for node in ast.walk(tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                names = {node.name, f"self.{node.name}"}
                values: list[ast.AST] = [one for one in ast.walk(node) if isinstance(one, ast.Return)]
            else:
                names, value = set(map(dotted, targets_of(node))), getattr(node, "value", None)
                values = [value] if isinstance(value, ast.AST) else []
            if any(_asks(inner, found) for one in values for inner in ast.walk(one)):
                found |= names
    return found - {""}


def _asks(node: ast.AST, state: set[str]) -> bool:
    return isinstance(node, (ast.Name, ast.Attribute)) and (
        _STATE.fullmatch(last_word(node)) is not None or dotted(node) in state
    )


def line_of(node: ast.AST) -> str:
    """The first line of a node, for a sentence."""
    text = ast.unparse(node).split("\n")[0]
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
