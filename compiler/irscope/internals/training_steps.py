"""The steps of a training: each backward with what it starts from, and each step of an optimizer."""

from __future__ import annotations

import functools
import math
import sys
import types
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from irscope.internals.hooks import Hook, Undo, replace_attribute, undo_all


class StepEvents(Protocol):
    """Gets the events of a training."""

    def backward(self, roots: tuple[Any, ...]) -> None:
        """A backward begins at these tensors."""

    def scaled(self) -> None:
        """A loss is scaled: the gradients that follow may overflow, and the scaler leaves such a step out."""

    def before_step(self, optimizer: Any, closure: Any) -> None:
        """An optimizer is going to change the parameters."""

    def after_step(self, optimizer: Any) -> None:
        """It has changed them."""


def largest_of_each(tensors: Sequence[Any]) -> list[Any]:
    """The infinity norm of each tensor of a GPU, by one kernel for all (torch 2.13)."""
    return list(sys.modules["torch"]._foreach_norm(list(tensors), math.inf))


def versions_kept(tensors: Sequence[Any]) -> AbstractContextManager[None]:
    """Autograd does not see what is written into these tensors inside (torch 2.13)."""
    kept: AbstractContextManager[None] = sys.modules["torch"].autograd._unsafe_preserve_version_counter(tuple(tensors))
    return kept


def _is_traced() -> bool:
    """Whether Dynamo compiles the step of the optimizer: then nothing of ours may be in it."""
    torch: Any = sys.modules["torch"]
    return bool(torch.compiler.is_compiling())


def step_hooks(events: StepEvents) -> list[Hook]:
    """Reports the events through autograd's engine, ``GradScaler`` and PyTorch's own hooks of optimizers."""

    def on_backward(autograd: types.ModuleType) -> Undo:
        run: Any = vars(autograd)["_engine_run_backward"]

        @functools.wraps(run)
        def _engine_run_backward(roots: Any, *args: Any, **kwargs: Any) -> Any:
            events.backward(tuple(roots))
            return run(roots, *args, **kwargs)

        return replace_attribute(autograd, "_engine_run_backward", _engine_run_backward)

    def on_scale(grad_scaler: types.ModuleType) -> Undo:
        cls: Any = vars(grad_scaler)["GradScaler"]
        scale = cls.scale

        @functools.wraps(scale)
        def _scale(scaler: Any, outputs: Any) -> Any:
            if scaler.is_enabled():
                events.scaled()
            return scale(scaler, outputs)

        return replace_attribute(cls, "scale", _scale)

    def on_steps(module: types.ModuleType) -> Undo:
        def before(optimizer: Any, args: Any, kwargs: Any) -> None:
            if not _is_traced():
                closure = args[1] if len(args) > 1 else None  # the optimizer itself comes first
                events.before_step(optimizer, kwargs.get("closure", closure))

        def after(optimizer: Any, _args: Any, _kwargs: Any) -> None:
            if not _is_traced():
                events.after_step(optimizer)

        handles = [
            vars(module)["register_optimizer_step_pre_hook"](before),
            vars(module)["register_optimizer_step_post_hook"](after),
        ]
        return undo_all([handle.remove for handle in handles])

    versions = "2.13"
    return [
        Hook("the loss of each step", "torch.autograd", versions, on_backward),
        Hook("whether a loss is scaled", "torch.amp.grad_scaler", versions, on_scale),
        Hook("the steps of optimizers", "torch.optim.optimizer", versions, on_steps),
    ]
