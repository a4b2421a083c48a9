"""Reads Relax as TVM prints it, TVMScript, which has the syntax of Python.

What a function of Relax computes comes before the call of it, since a printed graph is a plain list.  A kernel that
writes its result into memory that was allocated before is read as an operation that gives this result.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping

from irscope.capture.operation_graphs import ITEM, Names, Operation, Tensor
from irscope.vocabulary.records import dataclass

MAIN = "main"
_CLASS = "cls"
"""What TVM calls the module inside of a function."""
_LITERALS = ("const", "shape", "dtype", "str", "prim_value", "int32", "int64", "float32", "float64", "bool")
_LONGEST = 120
"""Characters of an argument that is shown."""


@dataclass(frozen=True)
class Relax:
    """The graph of a module.

    Args:
        called: Function of TIR → the names of the operations that call it.
        left_out: Statements that are not read, such as branches.
    """

    operations: tuple[Operation, ...]
    called: Mapping[str, tuple[str, ...]]
    left_out: tuple[str, ...]

    @property
    def shapes(self) -> dict[str, str]:
        """What a pass can change about each operation."""
        return {one.name: f"{one.op} {one.target}({', '.join(one.written)}) {one.value}" for one in self.operations}


class RelaxReader:
    """Reads the modules of one compile; a value keeps its name in all of them."""

    def __init__(self) -> None:
        self.names = Names()
        self.results: dict[tuple[str, int], str] = {}
        """Function and number of the call → the name of its result, where Relax has one."""
        self._last: tuple[str, Relax] | None = None

    def read(self, text: str) -> Relax:
        """The graph of a module.  Raises ValueError if the text is not one."""
        relax = _without_tir(text)
        if self._last is None or self._last[0] != relax:  # many passes change functions of TIR alone
            self._last = relax, self._read(relax)
        return self._last[1]

    def _read(self, text: str) -> Relax:
        try:
            tree = ast.parse(text)
        except (SyntaxError, RecursionError, MemoryError) as error:
            raise ValueError(f"not a module of TVM: {type(error).__name__}") from error
        functions = {
            one.name: one
            for module in tree.body
            if isinstance(module, ast.ClassDef)
            for one in module.body
            if isinstance(one, ast.FunctionDef)
        }
        if MAIN not in functions:
            raise ValueError("not a module of TVM: it has no function main")
        return _Reading(self, functions).graph()


class _Reading:
    """The reading of one module."""

    def __init__(self, reader: RelaxReader, functions: Mapping[str, ast.FunctionDef]) -> None:
        self._reader, self._functions = reader, functions
        self._kernels = {name for name, one in functions.items() if _is_of_tir(one)}
        self._found: list[Operation] = []
        self._taken: set[str] = set()
        self._calls: Counter[str] = Counter()
        self._called: dict[str, list[str]] = {}
        self._constants: dict[str, str] = {}
        self._left_out: dict[str, None] = {}
        self._unwritten: set[str] = set()  # operations that allocate a tensor that nothing was written to so far

    def graph(self) -> Relax:
        """What was read."""
        main = self._functions[MAIN]
        values: dict[str, list[str]] = {}
        for one in main.args.args:
            name = self._name(one.arg)
            values[one.arg] = [name]
            self._put(Operation(name, "placeholder", one.arg, value=_tensor(one.annotation)))
        results = tuple(self._body(main.body, values, ""))
        self._put(Operation("output", "output", "output", results, results))
        called = {name: tuple(names) for name, names in self._called.items()}
        return Relax(tuple(self._found), called, tuple(self._left_out))

    def _body(self, body: list[ast.stmt], values: dict[str, list[str]], function: str) -> list[str]:
        """Reads statements; gives what they return."""
        results: list[str] = []
        for statement in body:
            if isinstance(statement, ast.With):
                results = self._body(statement.body, values, function) or results
            elif isinstance(statement, ast.Return) and statement.value is not None:
                results = self._values(statement.value, values)
            elif isinstance(statement, (ast.Assign, ast.AnnAssign)) and statement.value is not None:
                self._assign(statement, statement.value, values, function)
            elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
                if _path(statement.value.func) not in ("R.func_attr", "R.output"):
                    self._call("", statement.value, None, values, function)
            elif not isinstance(statement, ast.Expr):
                self._left_out[type(statement).__name__.lower()] = None
        return results

    def _assign(
        self, statement: ast.Assign | ast.AnnAssign, value: ast.expr, values: dict[str, list[str]], function: str
    ) -> None:
        target, annotation = (
            (statement.target, statement.annotation)
            if isinstance(statement, ast.AnnAssign)
            else (statement.targets[0], None)
        )
        if isinstance(target, ast.Name) and target.id != _CLASS:
            values[target.id] = self._assigned(target.id, value, annotation, values, function)

    def _assigned(
        self, variable: str, value: ast.expr, annotation: ast.expr | None, values: dict[str, list[str]], function: str
    ) -> list[str]:
        """The names of what a variable is from now on."""
        if isinstance(value, ast.Call) and _path(value.func) not in _CONSTANTS:
            return [self._call(variable, value, annotation, values, function)]
        if isinstance(value, ast.Subscript) and isinstance(value.value, ast.Name):
            whole, number = values.get(value.value.id, []), ast.unparse(value.slice)
            if len(whole) > 1 and number.isdigit() and int(number) < len(whole):
                return [whole[int(number)]]
            if len(whole) == 1:
                name = self._name(variable, function)
                self._put(Operation(name, "call_function", ITEM, (whole[0],), (whole[0], number), _tensor(annotation)))
                return [name]
        return self._values(value, values)

    def _call(
        self, variable: str, call: ast.Call, annotation: ast.expr | None, values: dict[str, list[str]], function: str
    ) -> str:
        """Puts the operation of a call; gives its name."""
        path = _path(call.func)
        callee, arguments = _callee(path, call.args)
        inputs: list[str] = []
        written = [self._written(argument, values, inputs) for argument in arguments]
        value = _type_of(call, annotation)
        for keyword in call.keywords:
            if keyword.arg not in _TYPES:
                written.append(f"{keyword.arg}={self._written(keyword.value, values, inputs)}")
        if callee in self._functions and callee not in self._kernels:
            inputs = written = self._inlined(callee, arguments, values)
        target = f"tir.{callee}" if callee in self._kernels else f"relax.{callee or path.removeprefix('R.')}"
        outputs = self._filled(inputs) if not variable and callee else []
        name = self._name_of_call(callee or path, variable, function)
        if value is None and outputs:
            value = next(operation.value for operation in self._found if operation.name == outputs[-1])
        self._put(Operation(name, "call_function", target, tuple(dict.fromkeys(inputs)), tuple(written), value))
        self._results(name, path, outputs, values)
        if callee in self._kernels:
            self._called.setdefault(callee, []).append(name)
        return name

    def _filled(self, inputs: list[str]) -> list[str]:
        """What was allocated for results and is written to for the first time."""
        return [name for name in inputs if name in self._unwritten]

    def _results(self, name: str, path: str, outputs: list[str], values: dict[str, list[str]]) -> None:
        """What allocates is known until something is written there, which then stands for the memory."""
        if path.rpartition(".")[2] == "alloc_tensor":
            self._unwritten.add(name)
        if not outputs:
            return
        self._unwritten.difference_update(outputs)
        results = [name] if len(outputs) == 1 else [self._item(name, number) for number in range(len(outputs))]
        now = dict(zip(outputs, results, strict=True))
        for variable, names in values.items():
            if not now.keys().isdisjoint(names):
                values[variable] = [now.get(one, one) for one in names]

    def _item(self, name: str, number: int) -> str:
        """Puts one of several results."""
        item = self._name(f"{name} {number}", "", name)
        self._put(Operation(item, "call_function", ITEM, (name,), (name, str(number))))
        return item

    def _inlined(self, callee: str, arguments: list[ast.expr], values: dict[str, list[str]]) -> list[str]:
        """Reads what a function of Relax computes; gives the names of its results."""
        inner: dict[str, list[str]] = {}
        function = self._functions[callee]
        for parameter, argument in zip(function.args.args, arguments, strict=False):
            inner[parameter.arg] = self._values(argument, values)
        return self._body(function.body, inner, callee)

    # --- names and texts ----------------------------------------------------------------------------------------------

    def _name_of_call(self, callee: str, variable: str, function: str) -> str:
        """The name of its variable; a call without one has the name of its result in an earlier module."""
        number = self._calls[callee]
        self._calls[callee] += 1
        if variable and variable != "_":
            name = self._name(variable, function)
            self._reader.results[callee, number] = name
            return name
        known = self._reader.results.get((callee, number), "")
        if known and known not in self._taken:
            self._taken.add(known)
            return known
        return self._name(f"{callee} {number}", "", callee.rpartition(".")[2])

    def _name(self, variable: str, function: str = "", like: str = "") -> str:
        """The name of a variable in the texts; one of a function that is called may have the name of another value."""
        is_result = bool(function) and variable.startswith("gv")  # TVM calls that of each function so
        name = "" if is_result else self._reader.names.of(variable, like)
        if is_result or name in self._taken:
            key = f"{function}.{variable}"
            self._calls[key] += 1
            name = self._reader.names.of(f"{key} {self._calls[key]}", variable)
        self._taken.add(name)
        return name

    def _values(self, value: ast.expr, values: Mapping[str, list[str]]) -> list[str]:
        """The names of the operations that a value consists of."""
        if isinstance(value, ast.Name):
            return values.get(value.id, [])
        if isinstance(value, (ast.Tuple, ast.List)):
            return [name for one in value.elts for name in self._values(one, values)]
        return [self._constant(value)]

    def _constant(self, value: ast.expr) -> str:
        """The operation for a constant of the module."""
        text = ast.unparse(value)
        if text not in self._constants:
            is_stored = text.startswith("metadata[")
            name = self._name(text, "", "constant")
            self._constants[text] = name
            note = "" if is_stored else text[:_LONGEST]
            self._put(Operation(name, "get_attr", name, value=_tensor(value), note=note))
        return self._constants[text]

    def _written(self, value: ast.expr, values: Mapping[str, list[str]], inputs: list[str]) -> str:
        """An argument as it is printed; adds the operations that it names to the inputs."""
        if isinstance(value, ast.Name) and value.id in values:
            inputs += values[value.id]
            names = values[value.id]
            return names[0] if len(names) == 1 else f"({', '.join(names)})"
        if isinstance(value, ast.Tuple):
            return f"({', '.join(self._written(one, values, inputs) for one in value.elts)})"
        if isinstance(value, ast.Subscript) and ast.unparse(value).startswith("metadata["):
            inputs.append(self._constant(value))
            return inputs[-1]
        if isinstance(value, ast.Call) and _path(value.func).rpartition(".")[2] in _LITERALS and value.args:
            return _shortened(ast.unparse(value.args[0]))
        text = ast.unparse(value)
        return _shortened(text) if isinstance(value, (ast.Constant, ast.List, ast.UnaryOp)) else repr(_shortened(text))

    def _put(self, operation: Operation) -> None:
        self._found.append(operation)


_CONSTANTS = ("R.const",)


_TIR = "@T.prim_func"


def _without_tir(text: str) -> str:
    """The module without what functions of TIR compute, which is most of it and takes long to parse."""
    found: list[str] = []
    inside = -1  # the indentation of the function of TIR that is left out
    for row in text.split("\n"):
        indent = len(row) - len(row.lstrip())
        if inside >= 0 and (not row or indent > inside or row.lstrip().startswith((")", "#"))):
            continue
        is_head = inside < 0 and bool(found) and found[-1].lstrip().startswith(_TIR) and row.lstrip().startswith("def ")
        inside = -1
        if is_head:
            inside, row = indent, f"{row.partition('(')[0]}(): pass"
        found.append(row)
    return "\n".join(found)


def _is_of_tir(function: ast.FunctionDef) -> bool:
    decorators = (one.func if isinstance(one, ast.Call) else one for one in function.decorator_list)
    return any(_path(one) == "T.prim_func" for one in decorators)


def _callee(path: str, arguments: list[ast.expr]) -> tuple[str, list[ast.expr]]:
    """The function of the module that a call means, empty for another one, and what that is given."""
    if path.rpartition(".")[2].startswith("call_tir") and arguments:
        function = _path(arguments[0])
        if function.startswith(f"{_CLASS}."):
            flat = arguments[1].elts if isinstance(arguments[1], ast.Tuple) else [arguments[1]]
            return function.removeprefix(f"{_CLASS}."), [*flat, *arguments[2:]]
    return path.removeprefix(f"{_CLASS}.") if path.startswith(f"{_CLASS}.") else "", arguments


def _path(value: ast.expr) -> str:
    """``R.nn.relu`` of such an expression; empty for any other."""
    if isinstance(value, ast.Attribute):
        return f"{_path(value.value)}.{value.attr}"
    return value.id if isinstance(value, ast.Name) else ""


def _tensor(annotation: ast.expr | None) -> Tensor | None:
    """The tensor of ``R.Tensor((2, 8), dtype="float32")``; None for anything else."""
    if not isinstance(annotation, ast.Call) or _path(annotation.func) != "R.Tensor":
        return None
    dtype = next((one.value.value for one in annotation.keywords if _is_dtype(one)), "")  # type: ignore[attr-defined]
    if not annotation.args or not isinstance(annotation.args[0], ast.Tuple):
        return Tensor(str(dtype), None)
    return Tensor(str(dtype), tuple(_sizes(annotation.args[0])))


_TYPES = ("out_ty", "ty_args")
"""Keywords that tell the type of what a call gives."""


def _type_of(call: ast.Call, annotation: ast.expr | None) -> Tensor | None:
    """What a call gives, by the annotation of its variable, else by its keywords."""
    told = (annotation, *(keyword.value for keyword in call.keywords if keyword.arg in _TYPES))
    return next(filter(None, map(_tensor, told)), None)


def _is_dtype(keyword: ast.keyword) -> bool:
    return keyword.arg == "dtype" and isinstance(keyword.value, ast.Constant)


def _sizes(shape: ast.Tuple) -> Iterator[int | str]:
    for one in shape.elts:
        value = one.args[0] if isinstance(one, ast.Call) and one.args else one
        is_number = isinstance(value, ast.Constant) and isinstance(value.value, int)
        yield value.value if is_number else ast.unparse(one)  # type: ignore[attr-defined]


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else repr(f"{text[:_LONGEST]}…")
