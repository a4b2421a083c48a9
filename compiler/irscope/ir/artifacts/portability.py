"""What a saved function has made a constant and that is another elsewhere: paths, ranks, device indices, variables, ids."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from irscope.ir.artifacts.contents import Artifact
from irscope.ir.artifacts.functions import function_of
from irscope.usercode.source import parse_text

NOT_PORTABLE = "not-portable"
"""The code of findings of such constants."""
_READS = {
    "os.environ": "an environment variable",
    "os.getenv": "an environment variable",
    "os.getcwd": "the current folder",
    "os.getpid": "the number of this process",
    "os.path.abspath": "a path of this machine",
    "os.path.expanduser": "a path of this machine",
    "__file__": "a path of this machine",
    "id": "an address of this process",
    "socket.gethostname": "the name of this machine",
    "platform.node": "the name of this machine",
    "torch.distributed.get_rank": "the rank of this process",
    "dist.get_rank": "the rank of this process",
    "torch.distributed.get_world_size": "the number of processes",
    "dist.get_world_size": "the number of processes",
    "torch.cuda.current_device": "the index of a device",
    "torch.cuda.device_count": "the number of devices of this machine",
}
_INTO_TENSOR = "Read it into a tensor above the function, load with `f_globals=globals()`; or pass it as an argument."
_BY_IDENTITY = "Compare objects with `is`: an address is another in each process."
_ONE_DEVICE = (
    "Give each process one visible device (`CUDA_VISIBLE_DEVICES`), so that its index is 0 everywhere, or save an artifact "
    "for each device: kernels are bound to an index, so no change of this line makes it portable."
)
_CALLED = {"id"}
"""What counts only where it is called: a variable often has such a name."""


def made_constants(artifact: Artifact) -> list[tuple[str, str, ast.expr, str, str]]:
    """What the saved functions read when they were traced: file, module, the expression, what is said of it, and what to do."""
    found: dict[tuple[str, str, int, int], tuple[str, str, ast.expr, str, str]] = {}
    for source in artifact.sources:
        tree = parse_text(source.text)
        function = function_of(tree, source) if tree is not None else None
        if function is None:
            continue
        for node, name in _reads(function):
            what = f"`{ast.unparse(node)}` reads {_READS[name]}: what it was when it was made is a constant in the artifact."
            place = source.file, source.module, node.lineno, node.col_offset
            found[place] = source.file, source.module, node, what, _BY_IDENTITY if name == "id" else _INTO_TENSOR
        for node, device in _devices(function):
            what = f"`{device}` is a constant in the artifact; a process with another device needs another artifact."
            place = source.file, source.module, node.lineno, node.col_offset
            found[place] = source.file, source.module, node, what, _ONE_DEVICE
    return [found[place] for place in sorted(found)]


def _reads(function: ast.AST) -> Iterator[tuple[ast.expr, str]]:
    inner: set[int] = set()
    for node in ast.walk(function):  # what is around a name comes first
        if not isinstance(node, ast.expr) or id(node) in inner:
            continue
        called = node.func if isinstance(node, ast.Call) else node.value if isinstance(node, ast.Subscript) else node
        name = ast.unparse(called) if isinstance(called, (ast.Name, ast.Attribute)) else ""
        if name == "os.environ.get":
            name = "os.environ"
        if name in _READS and (name not in _CALLED or isinstance(node, ast.Call)):
            inner.update(map(id, ast.walk(node)))
            yield node, name


def _devices(function: ast.AST) -> Iterator[tuple[ast.expr, str]]:
    for node in ast.walk(function):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            kind, colon, index = node.value.partition(":")
            if colon and kind in ("cuda", "xpu", "hip") and index.isdigit():
                yield node, node.value
