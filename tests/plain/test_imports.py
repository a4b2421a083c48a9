"""Who may import what: the rules in docs/ARCHITECTURE.md."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from sources import COMPILER, ROOT, SERVER, Nodes, found_by, name_of, rule

STDLIB = frozenset(sys.stdlib_module_names)
SERVER_MAY = STDLIB | {"pygls", "lsprotocol", "attrs", "mcp", "irscope", "irscope_server"}
COMPILER_MAY = STDLIB | {"torch", "irscope"}
IF_INSTALLED = {("kineto_quick.py", "msgspec"), ("lines.py", "anyio"), ("lines.py", "pydantic")}
"""A reader of files, which works without it; that it loads without it is tested below.  Packages that mcp itself needs: its streams
and messages are made with them."""

# The boot file and the entry points do their work when they are imported.
RUNS_WHEN_IMPORTED = {"irscope.__main__", "irscope.driver.boot", "irscope_server.__main__"}


def modules_of(folder: Path) -> dict[str, Path]:
    """Every module below a folder by its full name."""
    found = {}
    for path in sorted(folder.rglob("*.py")):
        parts = path.relative_to(folder).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@rule
def imports_of(nodes: Nodes) -> Iterator[tuple[int, str]]:
    """Line and top-level name of every import in a file, those inside functions included."""
    for node in nodes.of(ast.Import):
        for alias in node.names:
            yield node.lineno, alias.name.partition(".")[0]
    for origin in nodes.of(ast.ImportFrom):
        if origin.level == 0 and origin.module:
            yield origin.lineno, origin.module.partition(".")[0]
    for call in nodes.of(ast.Call):
        if call.args and isinstance(call.args[0], ast.Constant):
            if name_of(call.func) in ("import_module", "__import__"):
                yield call.lineno, str(call.args[0].value).partition(".")[0]


def forbidden(folder: Path, may: frozenset[str] | set[str]) -> list[str]:
    return [
        f"{path.relative_to(ROOT)}:{line} imports {name}"
        for path in modules_of(folder).values()
        for line, name in found_by(imports_of)[path]
        if name not in may
        and not (name and "pipeline_captures" in path.parts)
        and (path.name, name) not in IF_INSTALLED
    ]


def test_the_server_imports_only_what_it_may() -> None:
    assert len(modules_of(SERVER)) > 10
    assert forbidden(SERVER, SERVER_MAY) == []


def test_the_capture_side_imports_only_what_it_may() -> None:
    """Other compilers only inside `pipeline_captures/`; never pygls or lsprotocol."""
    assert len(modules_of(COMPILER)) > 30
    # A kernel is interpreted in a process of its own, which needs Triton and what that brings.
    in_process = [each for each in forbidden(COMPILER, COMPILER_MAY) if "/values/kernel/" not in each]
    assert in_process == []
    assert {each.rpartition(" ")[2] for each in forbidden(COMPILER, COMPILER_MAY)} <= {"numpy", "triton"}


def test_the_capture_side_never_imports_the_server() -> None:
    names = {name for path in modules_of(COMPILER).values() for _, name in found_by(imports_of)[path]}
    assert not names & {"irscope_server", "pygls", "lsprotocol"}


OF_PROTOCOL = ("irscope.vocabulary.", "irscope.protocol.")


def test_the_protocol_needs_the_standard_library_and_the_vocabulary_alone() -> None:
    """Directly and through the modules of the vocabulary that it imports."""
    modules = modules_of(COMPILER)
    waiting = [name for name in modules if name.startswith("irscope.protocol")]
    assert len(waiting) > 3
    seen: set[str] = set()
    while waiting:
        path = modules[waiting.pop()]
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(OF_PROTOCOL):
                assert node.module is not None
                waiting += {node.module} - seen
                seen.add(node.module)
            elif isinstance(node, (ast.Import, ast.ImportFrom)):
                names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [one.name for one in node.names]
                assert {name.partition(".")[0] for name in names} <= STDLIB, (path, names)
    assert "irscope.vocabulary.limits" in seen


_IMPORT_ALL = """
import importlib, json, sys

class Blocker:
    '''Refuses to import, and remembers that somebody tried.'''
    tried = []
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in BLOCKED:
            Blocker.tried.append(name)
            raise ImportError(f"{name} is not allowed here")

sys.meta_path.insert(0, Blocker())
for module in MODULES:
    importlib.import_module(module)
print(json.dumps({"tried": Blocker.tried, "loaded": sorted({name.partition(".")[0] for name in sys.modules})}))
"""


def import_all(modules: list[str], blocked: list[str], *flags: str, path: list[Path]) -> dict[str, list[str]]:
    """Really imports modules in a fresh interpreter that cannot import some others."""
    head = (
        f"import sys\nsys.path[:0] = {[str(each) for each in path]!r}\nMODULES = {modules!r}\nBLOCKED = {blocked!r}\n"
    )
    done = subprocess.run(
        [sys.executable, *flags, "-c", head + _IMPORT_ALL], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def importable(folder: Path) -> list[str]:
    return [name for name in modules_of(folder) if name not in RUNS_WHEN_IMPORTED]


def test_the_server_and_all_that_it_imports_load_without_torch() -> None:
    done = import_all(importable(SERVER), ["torch", "numpy", "triton", "transformers"], path=[])
    assert done["tried"] == []
    assert {"irscope", "irscope_server", "pygls"} <= set(done["loaded"])


def test_every_module_of_the_capture_side_loads_without_any_package() -> None:
    """In an interpreter without site-packages (-S): users' environments hold torch and nothing of ours; and torch itself
    is imported by the script alone, after it has set what torch reads meanwhile."""
    done = import_all(importable(COMPILER), ["torch", "pygls", "lsprotocol"], "-S", "-I", path=[COMPILER])
    assert done["tried"] == []
    # The standard library has one module that is named after the machine.
    loaded = {name for name in done["loaded"] if not name.startswith("_sysconfigdata_")}
    assert loaded - STDLIB - {"__main__", "irscope"} == set()


def test_the_blocker_blocks(tmp_path: Path) -> None:
    (tmp_path / "breaks_the_rule.py").write_text("import torch\n")
    with pytest.raises(AssertionError, match="torch is not allowed here"):
        import_all(["breaks_the_rule"], ["torch"], path=[tmp_path])


def test_the_walk_sees_hidden_imports() -> None:
    sly = (
        "def f():\n    import pygls.server\n    from lsprotocol import types\n    __import__('torch')\nfrom . import x\n"
        "import importlib\nimportlib.import_module('numpy.linalg')\n"
    )
    assert {name for _, name in imports_of(Nodes(sly))} == {"pygls", "lsprotocol", "torch", "importlib", "numpy"}
