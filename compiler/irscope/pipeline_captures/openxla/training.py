"""A training step by XLA in place of the user's: the forward and the backward as one operation of autograd."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from irscope.internals.exporting import flatten
from irscope.pipeline_captures.export.in_place import InPlace
from irscope.pipeline_captures.openxla.in_place import Executable
from irscope.pipeline_captures.openxla.lowering import Input, Torchax


def gradients_of(inputs: list[Input]) -> list[bool]:
    """For each tensor among the inputs whether autograd wants its gradient now; what is not used has none, not zeros."""
    torch: Any = sys.modules["torch"]
    is_on = torch.is_grad_enabled()
    tensors = [one for one in inputs if isinstance(one.value, torch.Tensor)]
    return [is_on and one.is_used and one.value.requires_grad for one in tensors]


class TrainingInPlace(InPlace):
    """Like `InPlace`, for calls that want the gradients that the first call wanted; weights may change between them."""

    def may_run(self, leaves: list[Any]) -> bool:
        """Whether the gradients of the same tensors are wanted."""
        step: Any = self._compiled
        return self.needs_gradients(leaves) and bool(step.wants_the_same(leaves))


class TrainingStep:
    """Calls the forward that XLA made; autograd calls the backward.

    Args:
        forward, backward: The executables of `Torchax.training`.
    """

    def __init__(
        self,
        jax: Torchax,
        program: Callable[..., Any],
        forward: Callable[..., Any],
        backward: Callable[..., Any],
        inputs: list[Input],
        exported: Any,
    ) -> None:
        self._torch: Any = sys.modules["torch"]
        self._jax, self._program, self._inputs = jax, program, inputs
        self._forward, self._backward = forward, backward
        self._wanted = gradients_of(inputs)
        self._calls = Executable(jax, forward, inputs, exported)
        self._function = self._made()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the program gives for these arguments, with its gradients."""

        def again() -> list[Any]:
            found = flatten(self._program(*args, **kwargs))[0]
            return [one for one in found if isinstance(one, self._torch.Tensor) and one.dtype.is_floating_point]

        return self._calls.nested(self._function.apply(again, *self._calls.tensors(args, kwargs)))

    def wants_the_same(self, leaves: list[Any]) -> bool:
        """Whether the same tensors want gradients as in the first call."""
        tensors = [one for one in self._inputs if isinstance(one.value, self._torch.Tensor)]
        now = [(one.is_used, one.value if one.number < 0 else leaves[one.number]) for one in tensors]
        return [is_used and bool(one.requires_grad) for is_used, one in now] == self._wanted

    def _made(self) -> Any:
        step, torch = self, self._torch
        base: Any = torch.autograd.Function

        class XlaStep(base):  # type: ignore[misc]
            """The forward and the backward of the program."""

            @staticmethod
            def forward(ctx: Any, again: Callable[[], list[Any]], *tensors: Any) -> tuple[Any, ...]:
                with step._jax.exact():
                    floats, saved, others = step._jax.run(step._forward, *(step._jax.array(one) for one in tensors))
                    ctx.saved, ctx.again, ctx.tensors = saved, again, tensors
                    found = step._separate(floats, others)
                kinds = zip(found, step._calls.are_floats, strict=True)
                ctx.mark_non_differentiable(*(one for one, is_float in kinds if not is_float))
                return tuple(found)

            @staticmethod
            def backward(ctx: Any, *gradients: Any) -> tuple[Any, ...]:
                chosen = [one for one in gradients if one is not None and one.dtype.is_floating_point]
                if torch.is_grad_enabled():  # gradients of gradients are wanted: only the program itself has them
                    return (None, *step._by_program(ctx, chosen))
                with step._jax.exact():
                    found = step._jax.run(step._backward, ctx.saved, [step._jax.array(one) for one in chosen])
                    given = iter([step._jax.tensor(one).clone() for one in found])
                return (None, *(next(given) if want else None for want in step._wanted))

        return XlaStep

    def _separate(self, floats: list[Any], others: list[Any]) -> list[Any]:
        """The results as tensors, in the order in which the program gives them."""
        first, second = iter(floats), iter(others)
        in_order = (next(first if one else second) for one in self._calls.are_floats)
        return self._calls.separate(self._jax.tensor(one) for one in in_order)

    def _by_program(self, ctx: Any, gradients: list[Any]) -> list[Any]:
        chosen = [one for one, want in zip(ctx.tensors, self._wanted, strict=True) if want]
        with self._torch.enable_grad():
            found = iter(
                self._torch.autograd.grad(ctx.again(), chosen, gradients, create_graph=True, allow_unused=True)
            )
        return [next(found) if want else None for want in self._wanted]
