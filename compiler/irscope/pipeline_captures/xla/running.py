"""A program of the script on the device of PyTorch/XLA: it gets the script's tensors, and gives back such tensors."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

from irscope.internals.exporting import flatten, unflatten
from irscope.pipeline_captures.xla.device import TorchXla
from irscope.pipeline_captures.xla.modules import Modules
from irscope.pipeline_captures.xla.tracing import Tracer

Program = Callable[..., Any]


class UnfitError(Exception):
    """What lazy tensors computed cannot take the place of what the program computes; the message says why."""


class LazyBackwardError(Exception):
    """PyTorch/XLA cannot compute a backward."""


class Upload:
    """The script's tensors on the device.

    Args:
        tracer: Is told each tensor that is moved, and each function that gets one; None if nothing is captured.
    """

    def __init__(self, xla: TorchXla, tracer: Tracer | None = None) -> None:
        self._xla, self._tracer = xla, tracer
        self._torch: Any = sys.modules["torch"]
        self._moved: Any = sys.modules["torch.utils.weak"].WeakIdKeyDictionary()
        self.pairs: list[tuple[Any, Any, int]] = []
        """Each tensor, what it is on the device, and the version that this had at first."""
        self.names: dict[int, str] = {}
        """Names of tensors by their ``id()``."""

    def __call__(self, value: Any) -> Any:
        """A value with its tensors on the device; those that want gradients do so there, too."""
        leaves, nesting = flatten(value)
        return unflatten([self._leaf(one) for one in leaves], nesting)

    def _leaf(self, value: Any) -> Any:
        if not isinstance(value, self._torch.Tensor) or is_lazy(value):
            return value
        found = self._moved.get(value)
        if found is None:
            if self._tracer:
                self._tracer.uploaded = self.names.get(id(value), "input")
            found = value.detach().to(self._xla.device)
            if value.requires_grad and self._torch.is_grad_enabled():
                found.requires_grad_()
            self._moved[value] = found
            self.pairs.append((value, found, found._version))
        return found

    def mode(self) -> Any:
        """A mode in which functions of PyTorch get the tensors of the device."""
        upload = self
        base: Any = self._torch.overrides.TorchFunctionMode

        class Mode(base):  # type: ignore[misc]
            def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                given = args if func in upload._to_host else upload(tuple(args))
                named = upload(kwargs or {})
                if upload._tracer is None:
                    return func(*given, **named)
                name = getattr(func, "__name__", "")
                return upload._tracer.called(name, (given, named), lambda: func(*given, **named))

        return Mode()

    @property
    def _to_host(self) -> tuple[Any, ...]:
        """What reads a tensor's place in memory, or writes an attribute of the script's own tensor."""
        kind = self._torch.Tensor
        return (kind.requires_grad_, kind.grad.__set__, kind.requires_grad.__set__, kind.data_ptr)

    def give_back(self) -> None:
        """What the program changed on the device is changed in the script's tensors."""
        with self._torch.no_grad():
            for at, (tensor, moved, version) in enumerate(self.pairs):
                if moved._version != version:
                    tensor.copy_(moved)
                    self.pairs[at] = tensor, moved, moved._version

    def keep_parameters(self) -> None:
        """Forgets all tensors but parameters."""
        kind = self._torch.nn.Parameter
        self.pairs = [one for one in self.pairs if isinstance(one[0], kind)]
        for value in [one for one in self._moved if not isinstance(one, kind)]:
            del self._moved[value]


class PlainCall:
    """Calls of a program as a script for PyTorch/XLA makes them: nothing is captured, and parameters stay on the device.

    Gradients do not go through these calls.
    """

    def __init__(self, xla: TorchXla, program: Program) -> None:
        self._xla, self._program = xla, program
        self._torch: Any = sys.modules["torch"]
        self._upload = Upload(xla)

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What the program gives for these arguments, on the host."""
        with _ready(self._xla):
            given, named = self._upload((args, kwargs))
            with self._upload.mode():
                leaves, nesting = flatten(self._program(*given, **named))
        self._xla.sync()
        self._upload.give_back()
        self._upload.keep_parameters()
        return unflatten([one.detach().cpu() if is_lazy(one) else one for one in leaves], nesting)


@contextlib.contextmanager
def _ready(xla: TorchXla) -> Iterator[None]:
    """New tensors are on the device, and there is no inference mode, whose tensors PyTorch/XLA cannot make views of."""
    torch: Any = sys.modules["torch"]
    grad = torch.is_grad_enabled() and not torch.is_inference_mode_enabled()
    with torch.inference_mode(mode=False), torch.set_grad_enabled(grad), torch.device(xla.device):
        yield


def is_lazy(value: Any) -> bool:
    """Whether a value is a tensor on the device."""
    return isinstance(value, sys.modules["torch"].Tensor) and value.device.type == "xla"


class LazyCall:
    """One call of a program with lazy tensors.

    Args:
        finished: Computes the lazy tensors that are in use; whether they are of a backward.
        failed: Called with the error of a backward, which the program then computes as plain Python.
    """

    def __init__(
        self, xla: TorchXla, tracer: Tracer, program: Program, modules: Modules,
        finished: Callable[[bool], None], failed: Callable[[Exception], None],
    ) -> None:  # fmt: skip
        self._xla, self._tracer, self._program, self._modules = xla, tracer, program, modules
        self._finished, self._failed = finished, failed
        self._torch: Any = sys.modules["torch"]
        self._upload = Upload(xla, tracer)

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What the program gives for these arguments.  Raises UnfitError."""
        self._given = args, kwargs
        self._name(args, kwargs)
        random = self._torch.get_rng_state()
        with _ready(self._xla), _calls_of(self._modules):
            with self._tracer.mode():
                given, named = self._upload((args, kwargs))
                with self._upload.mode():
                    result = self._program(*given, **named)
                leaves, nesting = flatten(result)
        reason = self._why_unfit(leaves)
        self._finished(False)
        if reason:
            self._torch.set_rng_state(random)  # XLA takes its seeds from there
            raise UnfitError(reason)
        self._upload.give_back()
        return unflatten(self._on_host(leaves), nesting)

    def _name(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Names the inputs after parameters and arguments."""
        if isinstance(self._program, self._torch.nn.Module):
            for name, tensor in (*self._program.named_parameters(), *self._program.named_buffers()):
                self._upload.names[id(tensor)] = f"p_{name}"
        for number, one in enumerate(flatten((args, {}))[0]):
            self._upload.names[id(one)] = f"arg{number}"
        for name, one in kwargs.items():
            self._upload.names[id(one)] = name

    def _why_unfit(self, leaves: list[Any]) -> str:
        """Why the results cannot take the place of the program's; empty if they can."""
        if self._tracer.draws_random_numbers:
            return "it draws random numbers, and XLA draws other ones"
        moved = {id(found) for _, found, _ in self._upload.pairs}
        tensors = [one for one in leaves if isinstance(one, self._torch.Tensor)]
        if any(id(one) in moved or id(one._base) in moved for one in tensors):
            return "it returns an input or a view of one"
        return ""

    # --- results ------------------------------------------------------------------------------------------------------

    def _on_host(self, leaves: list[Any]) -> list[Any]:
        tensors = [one for one in leaves if is_lazy(one)]
        wanted = [(tensor, found) for tensor, found, _ in self._upload.pairs if found.requires_grad]
        if wanted and any(one.requires_grad for one in tensors):
            given = iter(self._with_gradients(tensors, wanted))
        else:
            given = iter([one.detach().cpu() for one in tensors])
        return [next(given) if is_lazy(one) else one for one in leaves]

    def _with_gradients(self, tensors: list[Any], wanted: list[tuple[Any, Any]]) -> tuple[Any, ...]:
        """The results as one operation of autograd, whose backward runs with lazy tensors."""
        call = self
        base: Any = self._torch.autograd.Function

        class LazyStep(base):  # type: ignore[misc]
            """The program."""

            @staticmethod
            def forward(ctx: Any, *inputs: Any) -> tuple[Any, ...]:
                found = tuple(one.detach().cpu() for one in tensors)
                ctx.mark_non_differentiable(
                    *(host for host, one in zip(found, tensors, strict=True) if not one.requires_grad)
                )
                return found

            @staticmethod
            def backward(ctx: Any, *gradients: Any) -> tuple[Any, ...]:
                if not call._torch.is_grad_enabled():
                    with contextlib.suppress(LazyBackwardError):
                        return call._backward(tensors, [found for _, found in wanted], gradients)
                return call._by_program([tensor for tensor, _ in wanted], gradients)

        return tuple(LazyStep.apply(*(tensor for tensor, _ in wanted)))

    def _backward(self, tensors: list[Any], wanted: list[Any], gradients: tuple[Any, ...]) -> tuple[Any, ...]:
        chosen = [
            (one, gradient)
            for one, gradient in zip(tensors, gradients, strict=True)
            if one.requires_grad and gradient is not None
        ]
        self._tracer.uploaded = "tangent"
        try:
            with self._tracer.mode():
                given = [gradient.to(self._xla.device) for _, gradient in chosen]
                self._tracer.uploaded = "saved"
                found = self._torch.autograd.grad(
                    [one for one, _ in chosen], wanted, given, retain_graph=True, allow_unused=True
                )
            self._finished(True)
            return tuple(None if one is None else one.cpu() for one in found)
        except Exception as error:
            self._failed(error)
            raise LazyBackwardError from error

    def _by_program(self, wanted: list[Any], gradients: tuple[Any, ...]) -> tuple[Any, ...]:
        """The gradients by the program itself, as plain Python."""
        args, kwargs = self._given
        with self._torch.enable_grad():
            results = [one for one in flatten(self._program(*args, **kwargs))[0] if isinstance(one, self._torch.Tensor)]
        pairs = [
            (one, gradient)
            for one, gradient in zip(results, gradients, strict=True)
            if one.requires_grad and gradient is not None
        ]
        return tuple(
            self._torch.autograd.grad(
                [one for one, _ in pairs],
                wanted,
                [gradient for _, gradient in pairs],
                create_graph=self._torch.is_grad_enabled(),
                allow_unused=True,
            )
        )


@contextlib.contextmanager
def _calls_of(modules: Modules) -> Iterator[None]:
    """Keeps the modules of a program that are being called."""
    modules.begin()
    try:
        yield
    finally:
        modules.end()
