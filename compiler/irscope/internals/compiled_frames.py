"""Which frames of a stack, given as plain data, are of compiled code.  Needs no torch."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from irscope.protocol import StackFrame

# Checked on torch 2.9 to 2.13.
_WRAPPER = "torch/_dynamo/eval_frame.py"
_COMPILES = "torch/_dynamo/convert_frame.py"
_COMPILES_BACKWARD = "torch/_inductor/compile_fx.py"
_RUNS = ("torch/_inductor/output_code.py", "torch/_functorch/_aot_autograd/runtime_wrappers.py")
_GRAPH = "<eval_with_key>"
_BACKWARD = "torch/autograd/graph.py"
_TORCH = "/torch/"
_PRIVATE = "/torch/_"


def compiled_frame(
    stack: Sequence[StackFrame], generated: Collection[str], functions: Collection[tuple[str, str]]
) -> int | None:
    """The index of the innermost frame of compiled code; None if the stack is not inside compiled code.

    Args:
        stack: The outermost frame first.
        generated: The files of the output code of the run.
        functions: Files and names of the functions that were compiled.
    """
    if any(_is_of(frame, _COMPILES) for frame in stack):
        return None  # it is being compiled
    numbers = range(len(stack) - 1, -1, -1)
    code = next((i for i in numbers if stack[i].file in generated), None)
    if code is not None or any(_is_of(frame, _COMPILES_BACKWARD) for frame in stack):
        return code
    for i in numbers:
        if any(_is_of(stack[i], file) for file in _RUNS):
            return i
        if stack[i].file.startswith(_GRAPH):
            function = function_around(stack, i)
            if function is not None and (stack[function].file, stack[function].function) in functions:
                return i
    return None


def outermost_call(stack: Sequence[StackFrame]) -> int | None:
    """The index of what ``torch.compile`` has put around a function, outermost on a stack; None if it is not there."""
    return next((i for i, frame in enumerate(stack) if _is_of(frame, _WRAPPER)), None)


def function_around(stack: Sequence[StackFrame], at: int) -> int | None:
    """The index of the compiled function that calls the compiled code at an index; None if another one calls it, as
    ``backward()`` does."""
    for i in range(at - 1, 0, -1):
        if _is_of(stack[i], _BACKWARD):
            return None
        if _is_of(stack[i], _WRAPPER) and _PRIVATE not in _path(stack[i - 1]):  # the same wrapper is inside AOTAutograd
            return i - 1
        if _TORCH not in _path(stack[i]) and not stack[i].file.startswith("<"):
            return None
    return None


def call_around(stack: Sequence[StackFrame], at: int) -> int:
    """The index below which the frames are those that called compiled code, outermost first."""
    function = function_around(stack, at)
    if function is None:
        return at
    return next((i for i in range(function - 1, -1, -1) if _is_of(stack[i], _WRAPPER)), function)


def _is_of(frame: StackFrame, file: str) -> bool:
    return _path(frame).endswith(file)


def _path(frame: StackFrame) -> str:
    return frame.file.replace("\\", "/")
