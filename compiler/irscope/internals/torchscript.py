"""TorchScript's private side: inlining, the log of its executor, and the trees of Python values."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

from irscope.internals.names import PrivateName

_VERSIONS = "2.9 to 2.13"
_INLINE = PrivateName("TorchScript's inlined graph", "torch._C", "_jit_pass_inline", _VERSIONS)
_GET_LOG = PrivateName("the passes of TorchScript's executor", "torch._C", "_jit_get_logging_option", _VERSIONS)
_SET_LOG = PrivateName("the passes of TorchScript's executor", "torch._C", "_jit_set_logging_option", _VERSIONS)
_TREE = PrivateName("the inputs of a traced program", "torch.utils._pytree", "", _VERSIONS)
_VALUE = PrivateName("what a trace depends on", "torch._C", "_get_value_trace", _VERSIONS)
_EXECUTOR = ">>>profiling_graph_executor_impl"
"""Logs every graph of the executor."""


def inline(graph: Any) -> None:
    """Puts what a graph calls in the place of the calls, in the graph itself."""
    _INLINE.get()(graph)


def flatten(value: Any) -> tuple[list[Any], Any]:
    """The leaves of nested Python containers, and what `unflatten` needs beside them."""
    leaves, shape = _TREE.get().tree_flatten(value)
    return list(leaves), shape


def unflatten(leaves: list[Any], shape: Any) -> Any:
    """The inverse of `flatten`."""
    return _TREE.get().tree_unflatten(leaves, shape)


_CONVERSIONS = ("__bool__", "__int__", "__float__", "__index__", "item", "tolist")
_OF_SHAPES = ("aten::size", "aten::dim", "aten::numel", "prim::Constant")
_INPUTS = ("prim::Param", "prim::GetAttr")


@contextlib.contextmanager
def conversions_seen(on_conversion: Callable[[bool], None]) -> Iterator[None]:
    """While a program is traced: tells before each conversion of a tensor to a Python value whether it follows from the
    shapes of the inputs alone."""
    tensor: Any = sys.modules["torch"].Tensor
    before = {name: getattr(tensor, name) for name in _CONVERSIONS}

    def seen(original: Any) -> Any:
        def convert(self: Any, *args: Any) -> Any:
            on_conversion(_is_of_shapes(self))
            return original(self, *args)

        return convert

    own = {name: name in vars(tensor) for name in _CONVERSIONS}
    try:
        for name, original in before.items():
            setattr(tensor, name, seen(original))
        yield
    finally:
        for name, original in before.items():
            setattr(tensor, name, original) if own[name] else delattr(tensor, name)


def _is_of_shapes(tensor: Any) -> bool:
    try:
        todo = [_VALUE.get()(tensor).node()]
    except RuntimeError:  # it is not traced: a constant
        return True
    known: set[str] = set()
    while todo:
        node = todo.pop()
        if node.kind() in _INPUTS:
            return False
        if node.kind() in _OF_SHAPES:
            continue
        for value in node.inputs():
            if value.debugName() not in known:
                known.add(value.debugName())
                todo.append(value.node())
    return True


@contextlib.contextmanager
def executor_log(receive: Callable[[str], None]) -> Iterator[None]:
    """Hands over what the executor logs meanwhile.

    It logs to the process's standard error and nowhere else, so this is a file for that time.  What else is printed there
    is printed at the end.  Raises OSError if the process has no standard error.
    """
    get, set_ = _GET_LOG.get(), _SET_LOG.get()
    if sys.stderr is not None:
        sys.stderr.flush()
    with tempfile.TemporaryFile() as file:
        kept, before = os.dup(2), get()
        try:
            os.dup2(file.fileno(), 2)
            set_(_EXECUTOR)
            yield
        finally:
            set_(before)
            if sys.stderr is not None:
                sys.stderr.flush()
            os.dup2(kept, 2)
            file.seek(0)
            log, other = list[str](), list[str]()
            for line in file.read().decode("utf-8", "replace").splitlines(keepends=True):
                (log if line.startswith(_LOGGED) else other).append(line)
            if other:
                os.write(kept, "".join(other).encode())
            os.close(kept)
            receive("".join(log))


_LOGGED = ("[DUMP profiling_graph_executor_impl", "[DEBUG profiling_graph_executor_impl")
