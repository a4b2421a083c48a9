"""A compiled program in place of the user's: only for calls for which it computes the same."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from irscope.internals.exporting import flatten

Program = Callable[..., Any]
_MUTATIONS = ("BUFFER_MUTATION", "PARAMETER_MUTATION", "USER_INPUT_MUTATION")


def unfit(core: Any, printed: bool) -> str:
    """Why an exported program can never take the place of the user's; empty if it can.

    Args:
        core: The program after decompositions: only these make outputs of what the program changes.  None if there is
            none.
        printed: Whether the user's program prints.
    """
    if core is None:
        return "PyTorch cannot decompose it, so it is not known whether it changes buffers or inputs"
    if printed:
        return "it prints while it runs, and an exported program does not"
    if any(spec.kind.name in _MUTATIONS for spec in core.graph_signature.output_specs):
        return "it changes buffers or inputs"
    return ""


def returned_view(graph: Any) -> bool:
    """Whether a graph gives an input back, or a view of one: what another compiler gives has memory of its own."""
    aliases = set()
    for node in graph.nodes:
        is_view = getattr(node.target, "is_view", False) and node.args and node.args[0] in aliases
        if node.op in ("placeholder", "get_attr") or is_view:
            aliases.add(node)
        elif node.op == "output":
            return any(one in aliases for one in node.all_input_nodes)
    return False


def draws_random_numbers(graph: Any) -> bool:
    """Whether a graph of core ATen draws random numbers."""
    return any(_draws(node) for node in graph.nodes)


class InPlace:
    """Calls ``compiled`` where the call is like the first one, and else the user's program.

    Args:
        args, kwargs: The arguments of the first call, with which the program was exported.
    """

    def __init__(
        self, program: Program, compiled: Program, exported: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        torch: Any = sys.modules["torch"]
        self._torch = torch
        self._program, self._compiled = program, compiled
        leaves, self._spec = flatten((args, kwargs))
        signature = exported.graph_signature
        kept = (*exported.state_dict.values(), *exported.constants.values())
        self._kept = [(one, one._version) for one in kept if isinstance(one, torch.Tensor)]
        self._modes = [(module, module.training) for module in _modules(program)]
        values = {node.name: node.meta.get("val") for node in exported.graph.nodes if node.op == "placeholder"}
        names = [getattr(s.arg, "name", "") for s in signature.input_specs if s.kind.name == "USER_INPUT"]
        self._ranges = {str(symbol): limits for symbol, limits in exported.range_constraints.items()}
        if len(names) != len(leaves):  # an argument that the program does not take: compare with the first call's
            names = [""] * len(leaves)
        self._expected = [self._key(leaf, values.get(name)) for name, leaf in zip(names, leaves, strict=True)]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the one or the other."""
        run = self._compiled if self.fits(args, kwargs) else self._program
        return run(*args, **kwargs)

    def fits(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether the compiled program computes what the user's does, for these arguments, now."""
        leaves, spec = flatten((args, kwargs))
        if spec != self._spec or not self.may_run(leaves):
            return False
        if any(module.training != training for module, training in self._modes):
            return False
        sizes: dict[str, int] = {}
        return all(self._is_like(leaf, key, sizes) for leaf, key in zip(leaves, self._expected, strict=True))

    def may_run(self, leaves: list[Any]) -> bool:
        """Whether no gradients are needed and the weights are as they were."""
        unchanged = all(tensor._version == version for tensor, version in self._kept)
        return unchanged and not self.needs_gradients(leaves)

    def needs_gradients(self, leaves: list[Any]) -> bool:
        """Whether autograd records a call with these leaves."""
        tensors = [*leaves, *(tensor for tensor, _ in self._kept)]
        needed = any(isinstance(one, self._torch.Tensor) and one.requires_grad for one in tensors)
        return needed and self._torch.is_grad_enabled()

    def _key(self, leaf: Any, value: Any) -> tuple[Any, ...]:
        if not isinstance(leaf, self._torch.Tensor):
            return (type(leaf), leaf)
        shape = getattr(value, "shape", leaf.shape)
        sizes = tuple(size if type(size) is int else str(size) for size in shape)
        return (type(leaf), leaf.dtype, leaf.device, sizes)

    def _is_like(self, leaf: Any, key: tuple[Any, ...], sizes: dict[str, int]) -> bool:
        if not isinstance(leaf, self._torch.Tensor):
            return bool((type(leaf), leaf) == key)
        if len(key) != 4 or (type(leaf), leaf.dtype, leaf.device) != key[:3] or len(leaf.shape) != len(key[3]):
            return False
        return all(self._has_size(size, wanted, sizes) for size, wanted in zip(leaf.shape, key[3], strict=True))

    def _has_size(self, size: int, wanted: int | str, sizes: dict[str, int]) -> bool:
        if isinstance(wanted, int):
            return size == wanted
        limits = self._ranges.get(wanted)  # an expression of several symbols has none: the user's program runs
        return limits is not None and sizes.setdefault(wanted, size) == size and limits.lower <= size <= limits.upper


def _modules(program: Program) -> list[Any]:
    torch: Any = sys.modules["torch"]
    home = program if isinstance(program, torch.nn.Module) else getattr(program, "__self__", None)
    return list(home.modules()) if isinstance(home, torch.nn.Module) else []


def _draws(node: Any) -> bool:
    """Whether a node of core ATen draws random numbers.  Attention does so for its dropout only."""
    seeded = sys.modules["torch"].Tag.nondeterministic_seeded
    if seeded not in getattr(node.target, "tags", ()):
        return False
    dropout = next((one for one in node.args if isinstance(one, float)), node.kwargs.get("dropout_p", 0.0))
    return "scaled_dot_product" not in str(node.target) or dropout != 0.0
