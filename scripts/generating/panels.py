"""What the panels' requests and answers are, from the modules that declare them."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import pkgutil
import re
import typing
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from irscope_server import panels
from irscope_server.base.params import PanelRequest
from irscope_server.base.wire import wire_name

_SIMPLE = {str: "string", int: "number", float: "number", bool: "boolean"}


def modules() -> list[ModuleType]:
    """The modules of the panels: those that answer a request, then those with what several share."""
    names = sorted(found.name for found in pkgutil.iter_modules(panels.__path__, f"{panels.__name__}."))
    found = [importlib.import_module(name) for name in names]
    return sorted(found, key=lambda module: not hasattr(module, "REQUEST"))


def types_of(module: ModuleType) -> dict[str, Any]:
    """The types that a module declares for clients, by their names there: ``MemoryResult`` is ``Memory``."""
    found: dict[str, Any] = {}
    for name in _declared(module):
        value = getattr(module, name)
        is_class = isinstance(value, type) and dataclasses.is_dataclass(value) and not name.endswith("Params")
        if is_class or typing.get_origin(value) in (tuple, typing.Literal):
            found[name.removesuffix("Result")] = value
    return found


def all_types() -> dict[str, Any]:
    """The types of all modules."""
    return {name: value for module in modules() for name, value in types_of(module).items()}


def request_lines(module: ModuleType) -> list[str]:
    """The request of a module as docs/PROTOCOL.md has it: what it is for, its parameters, its answer."""
    request: PanelRequest = module.REQUEST
    about = re.sub(r"^`irscope/\w+`: ", "", _sentence(inspect.cleandoc(module.__doc__ or "").partition("\n\n")[0]))
    parameters = _sentence(inspect.getdoc(request.params) or "")
    answer = request.result.__name__.removesuffix("Result")
    return [
        f"// {about[0].upper()}{about[1:]}",
        f"// Parameters: {re.sub(r'^[A-Z](?=[a-z ])', lambda first: first[0].lower(), parameters)}",
        f'"{request.method}": {{ {", ".join(_parameters(request.params))} }} -> {answer}',
    ]


def _declared(module: ModuleType) -> Iterator[str]:
    """The public names that a module's own text gives to classes and values, in its order."""
    for node in ast.parse(inspect.getsource(module)).body:
        name = ""
        if isinstance(node, ast.ClassDef):
            name = node.name
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
        if name and not name.startswith("_") and not name.isupper():
            yield name


def _sentence(docstring: str) -> str:
    return " ".join(docstring.split()).replace("``", "`").replace("None", "null")


def _parameters(cls: type[Any]) -> Iterator[str]:
    hints = typing.get_type_hints(cls)
    for field in dataclasses.fields(cls):
        kinds = [one for one in typing.get_args(hints[field.name]) or (hints[field.name],) if one is not type(None)]
        optional = "" if field.default is dataclasses.MISSING else "?"
        yield f"{wire_name(field.name)}{optional}: {' | '.join(_SIMPLE[one] for one in kinds)}"
