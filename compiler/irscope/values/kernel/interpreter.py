"""Runs programs of one kernel by Triton's interpreter, in this process.

Triton is imported here, with ``TRITON_INTERPRET=1`` in the environment.  The functions of the kernel are compiled from
their checked text with the rewriting that Triton's interpreter does (a value that is assigned becomes a block), keep
their lines, and have the names of Triton's language alone.  Checked on triton 3.7.1.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from irscope.values.kernel.functions import Libdevice, NotSupported, patch_builder, patch_reductions
from irscope.values.kernel.kernel_text import builtin_names, kernel_tree
from irscope.values.kernel.memory import Checks

FILE = "<kernel>"
"""The file name of the kernel's code, by which its lines are told from others."""


_patched: list[bool] = []


class _Helper:
    """A function of the kernel's own text that it calls, or that combines in a reduction."""

    def __init__(self, fn: Callable[..., Any]) -> None:
        self.fn = fn

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self.fn(*arguments, **named)


class Interpreter:
    """One kernel.

    Args:
        text, name: Its text and the function in it.
        constants: Parameters that are compile-time constants, by name.

    Raises NotAKernel, and ImportError without triton.
    """

    def __init__(self, text: str, name: str, constants: Mapping[str, Any]) -> None:
        import numpy
        import triton
        import triton.language as tl
        from triton.runtime import interpreter

        self._np, self._tl, self._machine = numpy, tl, interpreter
        self.tree = kernel_tree(text)
        self._builder = interpreter.interpreter_builder
        self._constants = dict(constants)
        if not _patched:  # for the whole process
            _patched.append(True)
            patch_builder(self._builder, interpreter, tl)
            patch_reductions(interpreter)
            interpreter.InterpretedFunction.__call__ = lambda self, *a, **k: self.rewrite()(*a, **k)
        device = Libdevice(self._block, self._data_of)
        space: dict[str, Any] = {
            "__builtins__": builtin_names(), "tl": tl, "triton": triton, "libdevice": device, "tl_math": tl.math,
            "interpreter_semantic": interpreter.interpreter_semantic, "triton_helpers": self._helpers(device),
            "tl_core": tl.core,  # so that it is patched as well: Triton's own functions use it
        }  # fmt: skip
        tree = ast.fix_missing_locations(interpreter.ASTTransformer().visit(kernel_tree(text)))
        exec(compile(tree, FILE, "exec"), space)  # checked by `kernel_tree`
        functions = {each.name for each in self.tree.body if isinstance(each, ast.FunctionDef)}
        self._function = space[name]
        self.code = self._function.__code__
        for other in functions - {name}:
            space[other] = _Helper(space[other])

    def _helpers(self, device: Libdevice) -> Any:
        """Inductor's own helpers; None if its package has none."""
        try:
            from torch._inductor.runtime import triton_helpers
        except ImportError:
            return None
        setattr(triton_helpers, "libdevice", device)  # noqa: B010
        setattr(triton_helpers, "math", self._tl.math)  # noqa: B010
        return triton_helpers

    def _block(self, data: Any) -> Any:
        dtype = getattr(self._tl, {"bool": "int1"}.get(str(data.dtype), str(data.dtype)))
        handle = self._machine.TensorHandle(data, dtype)
        return self._tl.tensor(handle, self._tl.block_type(dtype, list(data.shape)) if data.shape else dtype)

    def _data_of(self, value: Any) -> Any:
        if isinstance(value, self._tl.tensor):
            return value.handle.data
        return getattr(value, "value", value)

    def run(self, arguments: Mapping[str, Any], grid: tuple[int, int, int], programs: Sequence[tuple[int, int, int]], checks: Checks,
            before: Callable[[int], bool], around: Callable[[Callable[[], None]], None] | None = None) -> None:  # fmt: skip
        """Runs programs in order.

        Args:
            arguments: Tensors and numbers by parameter.
            before: Gets the number of programs that were run; False ends it.
            around: Runs each program, if a recorder looks on.

        Raises whatever a statement raises; NotSupported for what cannot be interpreted.
        """
        machine = self._machine
        scope = machine._patch_lang(self._function)
        self._watch(checks, scope)
        try:
            given = {
                name: machine._implicit_cvt(each) for name, each in arguments.items() if name not in self._constants
            }
            given |= self._constants
            self._builder.set_grid_dim(*grid)
            for number, program in enumerate(programs):
                if not before(number):
                    break
                self._builder.set_grid_idx(*program)
                checks.program, checks.number = program, number
                checks.names[number] = program
                (around or _plainly)(lambda: self._function(**given))
        finally:
            scope.restore()

    def _watch(self, checks: Checks, scope: Any) -> None:
        """Lets the checks see each access of memory."""
        np, machine, builder = self._np, self._machine, type(self._builder)

        def masked_load(_: Any, pointers: Any, mask: Any, other: Any, *__: Any) -> Any:
            dtype = pointers.get_element_ty()
            plain = machine._get_np_dtype(dtype)
            # A lane that is masked out is undefined without `other`: NaN shows where it is used after all.
            undefined = np.nan if plain.kind == "f" else 0
            instead = np.broadcast_to(undefined if other is None else other.data, pointers.data.shape).astype(plain)
            allowed = checks.allowed(pointers.data, mask.data, plain.itemsize, "read")
            data = machine._interpreter.load(
                pointers.data, np.ascontiguousarray(allowed), np.ascontiguousarray(instead), plain
            )
            return machine.TensorHandle(data, dtype)

        def masked_store(_: Any, pointers: Any, value: Any, mask: Any, *__: Any) -> Any:
            allowed = checks.allowed(pointers.data, mask.data, value.data.dtype.itemsize, "write")
            values = np.ascontiguousarray(np.broadcast_to(value.data, pointers.data.shape))
            checks.stored_values(values, allowed)
            checks.lanes(pointers.data, values, allowed)
            return machine._interpreter.store(pointers.data, values, np.ascontiguousarray(allowed))

        read_modify_write = builder.create_atomic_rmw

        def atomic(self: Any, operation: Any, pointers: Any, value: Any, mask: Any, *rest: Any) -> Any:
            allowed = checks.allowed(pointers.data, mask.data, value.data.dtype.itemsize, "atomic")
            kept = machine.TensorHandle(np.ascontiguousarray(allowed), mask.dtype)
            return read_modify_write(self, operation, pointers, value, kept, *rest)

        scope.set_attr(builder, "create_masked_load", masked_load)
        scope.set_attr(builder, "create_masked_store", masked_store)
        scope.set_attr(builder, "create_atomic_rmw", atomic)


def _plainly(run: Callable[[], None]) -> None:
    run()


def current_line() -> int:
    """The line of the kernel that is being executed; 0 outside of it."""
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename == FILE:
            return frame.f_lineno
        frame = frame.f_back  # type: ignore[assignment]
    return 0


def reason_of(error: BaseException) -> str:
    """Why a program could not be run, in words; what the interpreter lacks is named exactly."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, NotSupported):
            return str(cause)
        cause = cause.__cause__ or cause.__context__
    return f"{type(error).__name__}: {(str(error).splitlines() or [''])[0][:300]}"
