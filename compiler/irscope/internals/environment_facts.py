"""What an environment has that can change a compile: settings, decompositions, lowerings, passes and packages.

It runs in a separate process in the environment that is asked about, and prints JSON.  Settings are read as a script
finds them after its imports, so a default that an environment variable or ``sitecustomize`` changes is a changed default.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import importlib
import importlib.metadata
import inspect
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

VERSIONS = "2.9 to 2.15"
CONFIGS = (
    "torch._dynamo.config",
    "torch._functorch.config",
    "torch._inductor.config",
    "torch.fx.experimental._config",
    "torch.compiler.config",
    "torch.distributed.config",
)
"""Modules with settings of the compiler."""
_TABLES = {
    "decomposition": ("torch._inductor.decomposition", "decompositions"),
    "lowering": ("torch._inductor.lowering", "lowerings"),
}
_PASSES = "torch._inductor.fx_passes"
_LONGEST = 2000


def facts() -> dict[str, Any]:
    """All facts of this process's environment.  What this version of PyTorch does not have is named in ``missing``."""
    torch: Any = importlib.import_module("torch")
    missing: list[str] = []
    found: dict[str, Any] = {
        "torch": str(torch.__version__),
        "python": sys.version.split()[0],
        "settings": {},
        "packages": _packages(),
        "missing": missing,
        "folder": os.path.dirname(os.path.abspath(str(torch.__file__))),
    }
    for name in CONFIGS:
        with _noting(missing, name):
            found["settings"].update(_settings(name))
    for what, (module, name) in _TABLES.items():
        found[what] = {}
        with _noting(missing, module):
            found[what] = _digests(getattr(importlib.import_module(module), name))
    found["lowered_by"] = {}
    module, table = _TABLES["lowering"]
    with _noting(missing, module):
        found["lowered_by"] = _functions(getattr(importlib.import_module(module), table))
    found["pass"] = {}
    with _noting(missing, _PASSES):
        found["pass"] = dict(_pass_functions())
    return found


@contextlib.contextmanager
def _noting(missing: list[str], name: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # noqa: BLE001  another version may fail in any way; the other facts are still of use
        missing.append(f"{name} ({type(error).__name__})")


def _settings(module: str) -> dict[str, str]:
    config: Any = importlib.import_module(module)
    values = config.get_config_copy() if hasattr(config, "get_config_copy") else config.shallow_copy_dict()
    found = {f"{module}.{name}": text for name, value in values.items() if (text := literal(value)) is not None}
    # Where the packages are is not a setting.
    site = os.path.dirname(os.path.dirname(os.path.abspath(str(importlib.import_module("torch").__file__))))
    return {name: text for name, text in found.items() if site not in text and sys.prefix not in text}


def literal(value: object) -> str | None:
    """How a plain value is written, so that another process can read it; None for another object."""
    try:
        text = repr(sorted(value, key=repr) if isinstance(value, (set, frozenset)) else value)
        if len(text) > _LONGEST:
            return None
        ast.literal_eval(text)
    except Exception:  # noqa: BLE001  the printing of any object can fail in any way
        return None
    return text


def _digests(table: Mapping[Any, Any]) -> dict[str, str]:
    """A digest of the source of each function in a table, by what it is for.  All overloads of one operation are one."""
    found: dict[str, list[str]] = {}
    seen: dict[int, str] = {}
    for operation, function in list(table.items()):
        if id(function) not in seen:
            seen[id(function)] = _source_digest(function)
        name = _name_of(operation)
        found.setdefault(name, []).append(f"{getattr(operation, '_overloadname', '')}={seen[id(function)]}")
    return {name: _short("".join(sorted(parts))) for name, parts in found.items()}


def _functions(table: Mapping[Any, Any]) -> dict[str, str]:
    """The function that does the work for each operation, as ``module:name``."""
    found = {}
    for operation, function in list(table.items()):
        inner = inspect.unwrap(function)
        module, name = getattr(inner, "__module__", ""), getattr(inner, "__qualname__", "")
        if module and name:
            found[_name_of(operation)] = f"{module}:{name}"
    return found


def _name_of(operation: Any) -> str:
    """``aten.gelu``; of a function without an overload its name, since how it prints has an address."""
    packet = getattr(operation, "overloadpacket", None)
    if packet is not None:
        return str(packet)
    text = str(operation)
    return str(getattr(operation, "__qualname__", text)) if " at 0x" in text or " object " in text else text


def _source_digest(function: Callable[..., Any]) -> str:
    """The text of the function that does the work: most are wrapped."""
    try:
        inner = inspect.unwrap(function)
        return _short(inspect.getsource(inner))
    except (OSError, TypeError, ValueError):
        return getattr(function, "__name__", "")


def _pass_functions() -> Iterator[tuple[str, str]]:
    """Each top-level function in the files of Inductor's passes, by ``file.function``, with a digest of its text."""
    folder = os.path.dirname(str(importlib.import_module(_PASSES).__file__))
    for root, _, files in os.walk(folder):
        for file in sorted(one for one in files if one.endswith(".py")):
            with open(os.path.join(root, file), encoding="utf-8") as opened:
                text = opened.read()
            lines = text.split("\n")
            for node in ast.parse(text).body:
                if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                    yield f"{file[:-3]}.{node.name}", _short("\n".join(lines[node.lineno - 1 : node.end_lineno]))


def _packages() -> dict[str, str]:
    found = {}
    for distribution in importlib.metadata.distributions():
        with contextlib.suppress(Exception):  # a broken package is not a reason to fail
            found[str(distribution.metadata["Name"]).lower()] = str(distribution.version)
    return found


def _short(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def main() -> None:
    """Writes the facts to standard output, where nothing else may be."""
    out = os.dup(1)
    os.dup2(2, 1)  # what is imported may print
    with os.fdopen(out, "w", encoding="utf-8") as answer:
        json.dump(facts(), answer)
