"""A program of the script as ``torch.export`` takes it, and the program that came of it."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import sys
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from irscope.internals.exporting import dynamic_dimensions, flatten, silence
from irscope.vocabulary.records import dataclass

Program = Callable[..., Any]


@dataclass(frozen=True)
class Exported:
    """An exported program.

    Args:
        program: PyTorch's ``ExportedProgram``.
        printed: Whether the user's program printed something while it was traced, which the exported one does not.
    """

    program: Any
    printed: bool


def export(program: Program, args: tuple[Any, ...], kwargs: dict[str, Any], draft: bool = False) -> Exported:
    """Exports a program with the arguments of a call; raises what ``torch.export`` raises.

    Args:
        draft: By draft export, which computes with the real tensors and goes on after what export refuses.
    """
    torch: Any = sys.modules["torch"]
    module = _as_module(program)
    export: Any = importlib.import_module("torch.export")
    make = export.draft_export if draft else export.export
    devices = range(torch.cuda.device_count()) if draft and torch.cuda.is_initialized() else ()
    with silence() as printed, warnings.catch_warnings(), torch.random.fork_rng(devices=devices):
        warnings.simplefilter("ignore")
        exported = make(module, args, kwargs or None, dynamic_shapes=_dynamic_shapes(args, kwargs))
    return Exported(exported, bool(printed.getvalue()))


def decomposed(exported: Any, own: Mapping[Any, Callable[..., Any]] | None = None) -> Any:
    """The program after its operations were decomposed into the core of ATen.

    Args:
        own: Operators → decompositions in place of PyTorch's.

    Attention may be left whole: torch 2.13 decomposes it into a result of other strides, which the program's next
    ``view`` refuses (GPT-2).
    """
    torch: Any = sys.modules["torch"]
    with silence(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = torch.export.default_decompositions()
        table.update(own or {})
        try:
            return exported.run_decompositions(table)
        except ValueError:
            for operator in [one for one in table if "scaled_dot_product" in str(one) and one not in (own or {})]:
                table.pop(operator)
            return exported.run_decompositions(table)


def drop_guards(module: Any) -> None:
    """Removes the call that checks the inputs from the module of an exported program: it computes nothing, and the checks
    are a stage."""
    for node in [one for one in module.graph.nodes if one.op == "call_module" and not one.users]:
        module.graph.erase_node(node)


def _as_module(program: Program) -> Any:
    """``torch.export`` takes modules only."""
    torch: Any = sys.modules["torch"]
    if isinstance(program, torch.nn.Module):
        return program

    class Function(torch.nn.Module):  # type: ignore[misc]
        def forward(self, *args: Any, **kwargs: Any) -> Any:
            return program(*args, **kwargs)

    with contextlib.suppress(TypeError, ValueError):  # its inputs then have the user's names
        mine = inspect.signature(program)
        first = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        Function.forward.__signature__ = mine.replace(parameters=[first, *mine.parameters.values()])  # type: ignore[attr-defined]
    wrapper = Function()
    home = getattr(program, "__self__", None)
    if isinstance(home, torch.nn.Module):  # its parameters are inputs of the exported program, not constants
        wrapper.module = home
    return wrapper.train(bool(getattr(home, "training", True)))


def _dynamic_shapes(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The dimensions that the script marked as dynamic; None if it marked none."""
    torch: Any = sys.modules["torch"]
    shapes = torch.export.ShapesCollection()
    marked = False
    for tensor in flatten((args, kwargs))[0]:
        dimensions = dynamic_dimensions(tensor) if isinstance(tensor, torch.Tensor) else ()
        if dimensions:
            shapes[tensor] = dict.fromkeys(dimensions, torch.export.Dim.AUTO)
            marked = True
    return shapes if marked else None
