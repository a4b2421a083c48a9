"""Triton kernels of the user's in a run whose tensors are on the CPU: for a run with targets.

Triton has no code for the CPU, but an interpreter: it walks through the kernel's Python code and computes with numpy.  So
the script goes on with true values.  Dynamo takes such kernels into its graphs only if there is a GPU; here it does, too,
so that the copy of the program for a target has them.
"""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

from irscope.internals.frames import callers, is_in
from irscope.internals.hooks import Hook, Undo, replace_attribute, undo_all
from irscope.internals.names import PrivateName
from irscope.usercode.user_files import is_user_file
from irscope.vocabulary.records import dataclass

_VERSIONS = "2.11 and 2.13 (triton 3.6 and 3.7)"
_WHAT = "Triton kernels of the script for other devices"
_IN_GRAPHS = ("torch/_dynamo/variables/", "torch/_higher_order_ops/triton_kernel_wrap.py")
"""Where PyTorch asks whether a function may be a kernel of Triton's."""
_LAUNCHES_OF_GRAPHS = "torch/_higher_order_ops/triton_kernel_wrap.py"
_SMALL = 4097
"""Numbers below are often constants of a kernel, such as the size of a block, so each is another kernel."""
_OPERATORS = PrivateName(_WHAT, "torch._library.triton", "triton_ops_to_kernels", _VERSIONS)


@dataclass(frozen=True)
class Launch:
    """A kernel that the script, or a library, launches outside of compiled code.

    Args:
        name: Name of its function.
        file, line: The user's file and line, where it is launched.
        key: The same for launches for which Triton compiles one kernel.
        compile: Compiles it for the device of the process, and launches nothing.
    """

    name: str
    file: str
    line: int
    key: Any
    compile: Callable[[], Any]


def hooks(interpreter: Callable[[Any], Any], launched: Callable[[Launch], None]) -> list[Hook]:
    """Let Dynamo see the kernels, and interpret those that are launched.

    Args:
        interpreter: Makes a Python function one that Triton's interpreter runs.
        launched: Called before a launch outside of compiled code, on its stack.
    """
    interpreted = functools.partial(_interpreted, functools.cache(interpreter), launched)
    return [
        Hook(_WHAT, "torch.utils._triton", _VERSIONS, _seen_by_dynamo),
        Hook("what Triton kernels of the script compute", "triton.runtime.jit", _VERSIONS, interpreted),
        Hook("what Triton kernels of the script compute", "triton.runtime.autotuner", _VERSIONS, _not_timed),
    ]


def launches_kernels(program: Any) -> bool:
    """Whether a graph of Dynamo's launches kernels that the user wrote in Triton, itself or in an operator of the user's."""
    return any(_is_launch(node) for node in _nodes(program))


def _nodes(program: Any) -> Iterator[Any]:
    graph_module: Any = sys.modules["torch"].fx.GraphModule
    for module in program.modules() if hasattr(program, "modules") else ():
        if isinstance(module, graph_module):
            yield from module.graph.nodes


def _is_launch(node: Any) -> bool:
    name = getattr(node.target, "__name__", "")
    if node.op == "call_function" and name.startswith("triton_kernel_wrapper_"):
        return True
    packet = getattr(node.target, "_overloadpacket", node.target)
    operator = str(getattr(packet, "_qualified_op_name", "aten::"))
    return not operator.startswith(("aten::", "prims::")) and operator in _OPERATORS.get()


def _seen_by_dynamo(module: types.ModuleType) -> Undo:
    has_triton: Any = module.has_triton

    def has_triton_for_all(*args: Any, **kwargs: Any) -> bool:
        asking = next(callers()).f_code.co_filename.replace("\\", "/")
        if any(part in asking for part in _IN_GRAPHS):
            return bool(module.has_triton_package())
        return bool(has_triton(*args, **kwargs))

    answer: Any = functools.wraps(has_triton)(has_triton_for_all)
    answer.cache_clear = has_triton.cache_clear  # `device_stand_in` forgets what was answered before
    return replace_attribute(module, "has_triton", answer)


def _interpreted(interpreter: Callable[[Any], Any], launched: Callable[[Launch], None], jit: types.ModuleType) -> Undo:
    function: Any = jit.JITFunction
    compile_or_launch: Callable[..., Any] = function.run

    def run(kernel: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        if warmup:
            return compile_or_launch(kernel, *args, grid=grid, warmup=warmup, **kwargs)
        if (place := _launching_line()) is not None:
            compile = functools.partial(compile_or_launch, kernel, *args, grid=grid, warmup=True, **kwargs)
            launched(Launch(kernel.fn.__name__, *place, _key(kernel, args, kwargs), compile))
        if any(_is_fake(value) for value in (*args, *kwargs.values())):
            return None  # of a run on fake tensors: there is nothing to compute with
        known = {name: value for name, value in kwargs.items() if name in kernel.arg_names}
        return interpreter(kernel.fn).run(*args, grid=grid, warmup=False, **known)

    def called_in_a_kernel(kernel: Any, *args: Any, **kwargs: Any) -> Any:
        return interpreter(kernel.fn)(*args, **kwargs)

    return undo_all(
        [replace_attribute(function, "run", run), replace_attribute(function, "__call__", called_in_a_kernel)]
    )


def _is_fake(value: Any) -> bool:
    """Whether a value is a tensor without storage."""
    fakes = sys.modules.get("torch._subclasses.fake_tensor")
    return fakes is not None and isinstance(value, fakes.FakeTensor)


def _launching_line() -> tuple[str, int] | None:
    """The user's file and line that launch a kernel; None in the graph of compiled code, or if none is the user's."""
    place = None
    for frame in callers():
        if frame.f_code.co_filename.startswith("<eval_with_key>") or is_in(frame.f_code, _LAUNCHES_OF_GRAPHS):
            return None
        if place is None and is_user_file(frame.f_code.co_filename):
            place = frame.f_code.co_filename, frame.f_lineno
    return place


def _key(kernel: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """As Triton tells its kernels apart: by the types of tensors, and whether numbers and addresses are multiples of 16."""
    given = [(str(number), value) for number, value in enumerate(args)] + sorted(kwargs.items())
    return id(kernel), tuple((name, _kind_of(value)) for name, value in given)


def _kind_of(value: Any) -> Any:
    if hasattr(value, "data_ptr"):
        return str(value.dtype)
    if isinstance(value, int) and not isinstance(value, bool):
        return value if value < _SMALL else ("int", value % 16 == 0, value.bit_length() > 31)
    return repr(value)


def _not_timed(autotuner: types.ModuleType) -> Undo:
    """The first configuration is taken: how long an interpreter needs with each says nothing."""
    return replace_attribute(autotuner.Autotuner, "_bench", lambda *_, **__: [0.0, 0.0, 0.0])
