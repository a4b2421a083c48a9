"""Makes a TorchScript program of a Python one: by tracing its first call, or by compiling its source (scripting)."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import io
import sys
import types
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from irscope.internals.torchscript import conversions_seen, flatten, has_hooks, unflatten
from irscope.vocabulary.records import dataclass


@dataclass(frozen=True)
class Call:
    """The arguments of a call: its tensors, and the rest.

    Args:
        leaves: What is in the arguments, without containers; a number is in the place of each tensor.
    """

    tensors: tuple[Any, ...]
    leaves: tuple[Any, ...]
    shape: Any

    @staticmethod
    def of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        """Takes the arguments of a call apart."""
        found, shape = flatten((args, kwargs))
        tensor = sys.modules["torch"].Tensor
        tensors = tuple(leaf for leaf in found if isinstance(leaf, tensor))
        numbers = iter(range(len(tensors)))
        return Call(
            tensors, tuple(_Tensor(next(numbers)) if isinstance(leaf, tensor) else leaf for leaf in found), shape
        )

    def arguments(self, tensors: tuple[Any, ...]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments with other tensors."""
        leaves = [tensors[leaf.number] if isinstance(leaf, _Tensor) else leaf for leaf in self.leaves]
        args, kwargs = unflatten(leaves, self.shape)
        return tuple(args), dict(kwargs)

    def signature(self, program: Any) -> tuple[Any, ...]:
        """What must be the same for a traced program to be right: shapes, everything that is not a tensor, modes."""
        torch: Any = sys.modules["torch"]
        of_tensors = tuple(
            (one.dtype, tuple(one.shape), one.device, one.requires_grad, one.layout) for one in self.tensors
        )
        training = tuple(one.training for module in modules_of(program) for one in module.modules())
        values = tuple(leaf if isinstance(leaf, _Tensor) else repr(leaf) for leaf in self.leaves)
        return of_tensors, values, str(self.shape), torch.is_grad_enabled(), training


@dataclass(frozen=True)
class _Tensor:
    number: int


def modules_of(program: Any) -> list[Any]:
    """The modules that a program is or uses: of a function those in its closure, and its globals that it names."""
    module: Any = sys.modules["torch"].nn.Module
    if isinstance(program, module):
        return [program]
    found = [program.__self__] if isinstance(program, types.MethodType) else []
    function = inspect.unwrap(getattr(program, "__func__", program))
    code = getattr(function, "__code__", None)
    if code is not None:
        found += [cell.cell_contents for cell in function.__closure__ or () if _is_filled(cell)]
        found += [function.__globals__[name] for name in code.co_names if name in function.__globals__]
    return list({id(one): one for one in found if isinstance(one, module)}.values())


def _is_filled(cell: types.CellType) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False


@dataclass
class Traced:
    """A traced program.

    Args:
        module: What ``torch.jit.trace`` gave.  It takes and gives tensors alone.
        rebuild: The result of the program from the tensors that the module gives.
    """

    module: Any
    rebuild: Callable[[tuple[Any, ...]], Any]


def trace(program: Any, call: Call, on_warning: Callable[[str, bool], None]) -> Traced:
    """Traces a call.  Raises whatever the program or the tracer does.

    Args:
        on_warning: Called on the stack of the line that the tracer warns of, and told whether the value follows from
            the shapes of the inputs alone.
    """
    torch: Any = sys.modules["torch"]
    results: list[Any] = []

    class Holder(torch.nn.Module):  # type: ignore[misc]
        """What is traced: its parameters are found by the tracer only if they are those of a module below it."""

        def __init__(self) -> None:
            super().__init__()
            self.program = program
            for number, module in enumerate(modules_of(program)):
                if module is not program:
                    self.add_module(f"module_{number}", module)

        def forward(self, *tensors: Any) -> Any:
            """Call the program and give the tensors of its result."""
            args, kwargs = call.arguments(tensors)
            leaves, shape = flatten(self.program(*args, **kwargs))
            given = tuple(leaf for leaf in leaves if isinstance(leaf, torch.Tensor))
            numbers = iter(range(len(given)))
            whole = [_Tensor(next(numbers)) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
            results[:] = [whole, shape]
            return given

    holder = Holder()
    holder.training = any(module.training for module in modules_of(program))
    with _warnings_seen(on_warning):
        module = torch.jit.trace(holder, call.tensors, check_trace=False, strict=False)
    whole, shape = results

    def rebuild(tensors: tuple[Any, ...]) -> Any:
        return unflatten([tensors[leaf.number] if isinstance(leaf, _Tensor) else leaf for leaf in whole], shape)

    return Traced(module, rebuild)


@contextlib.contextmanager
def _warnings_seen(on_warning: Callable[[str, bool], None]) -> Iterator[None]:
    """The tracer's warnings go to ``on_warning``, and that it is deprecated is not said; others are shown as they would be."""
    torch: Any = sys.modules["torch"]
    tracer = torch.jit.TracerWarning
    show = warnings.showwarning
    of_shapes = [False]

    def shown(message: Any, category: Any, filename: str, lineno: int, file: Any = None, line: Any = None) -> None:
        if issubclass(category, tracer):
            on_warning(str(message), of_shapes[-1])
        elif "torch.jit" not in str(message):
            show(message, category, filename, lineno, file, line)

    with warnings.catch_warnings(), conversions_seen(of_shapes.append):
        warnings.simplefilter("always", tracer)
        warnings.showwarning = shown
        yield


def script(program: Any) -> Any:
    """Compiles the source of a program.  Raises whatever the compiler of TorchScript does."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return sys.modules["torch"].jit.script(program)


def needs_gradients(result: Any) -> bool:
    """Whether any tensor of a result has a backward."""
    tensor: Any = sys.modules["torch"].Tensor
    return any(isinstance(one, tensor) and one.requires_grad for one in flatten(result)[0])


def differentiate(result: Any, program: Any, call: Call) -> None:
    """Runs the backward of a result on its tensors' behalf, without a change of any gradient.  It does nothing if the
    result needs none, or if a parameter has hooks, which would be called once more.

    Args:
        call: The call that gave the result; its tensors are asked for, too.
    """
    torch: Any = sys.modules["torch"]
    outputs = [one for one in flatten(result)[0] if isinstance(one, torch.Tensor) and one.requires_grad]
    parameters = [one for module in modules_of(program) for one in module.parameters()]
    wanted = [one for one in (*call.tensors, *parameters) if one.requires_grad]
    if outputs and wanted and not any(has_hooks(one) for one in parameters):
        torch.autograd.grad(outputs, wanted, [torch.ones_like(one) for one in outputs], allow_unused=True)


@contextlib.contextmanager
def leaving_no_trace(program: Any, call: Call) -> Iterator[tuple[Call, io.StringIO]]:
    """For calls that the script does not make: a call with copies of the tensors, and what is printed meanwhile, which is
    not shown.  Random generators and the buffers of modules are put back."""
    torch: Any = sys.modules["torch"]
    buffers = [buffer for module in modules_of(program) for buffer in module.buffers()]
    kept = [buffer.detach().clone() for buffer in buffers]
    devices = sorted({one.device.index or 0 for one in call.tensors if one.device.type == "cuda"})
    copies = tuple(one.detach().clone().requires_grad_(one.requires_grad) for one in call.tensors)
    printed = io.StringIO()
    try:
        with torch.random.fork_rng(devices=devices), contextlib.redirect_stdout(printed):
            yield dataclasses.replace(call, tensors=copies), printed
    finally:
        with torch.no_grad():
            for buffer, before in zip(buffers, kept, strict=True):
                if not torch.equal(buffer, before):
                    buffer.copy_(before)
