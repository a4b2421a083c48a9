"""Runs a kept graph node by node: as it is, or in float64.

Random numbers
--------------
Inductor draws random numbers inside its kernels from seeds that are drawn once a call, so the graph run by itself would
draw others.  Values that were seen in the compiled code are taken from there (`given`); a random node that compiled code
fused away is drawn by Inductor's own code for it alone, from the same seed (`draw`).

float64
-------
The same operations with floating-point inputs, constants and dtype arguments below float64 widened to it: casts to a
narrower type inside the graph round nothing.  Fused attention is computed by its formula (`attention`).  Another
operation that has no float64 form (quantized, library kernels of one dtype) runs in its own dtype and its result is
widened; `narrow` names those.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from irscope.internals.operators import is_higher_order as is_higher_order_operator
from irscope.values.run.attention import in_float64, named_arguments

RANDOM = frozenset(f"inductor_{name}" for name in ("seed", "seeds", "random", "randint", "rand_eager", "randn_eager"))
"""Inductor's own random operations, which the graph by itself would draw again."""


class KeptGraph:
    """A graph as it was at one moment of its compilation, which later passes cannot change.

    Args:
        module: The graph module.  Tensors that it holds are shared with it, graph modules below it are copied likewise.
    """

    def __init__(self, module: Any) -> None:
        self.module = copied(module)

    @property
    def graph(self) -> Any:
        """The ``torch.fx.Graph`` of the module."""
        return self.module.graph

    @property
    def is_random(self) -> bool:
        """Whether any node draws random numbers."""
        return any(draws(node) for node in self.graph.nodes)

    @property
    def writes_in_place(self) -> bool:
        """Whether a node changes the value of another."""
        return any(mutates(node) for node in self.graph.nodes)

    @property
    def writes_between(self) -> bool:
        """Whether a node changes another in a way that is not only the copy of a result into an input."""
        return any(mutates(node) and not copies_to_input(node) for node in self.graph.nodes)

    @property
    def placeholders(self) -> list[str]:
        """The names of the inputs, in order."""
        return [node.name for node in self.graph.nodes if node.op == "placeholder"]


def copied(module: Any) -> Any:
    """A graph module with the same nodes (and names and metadata) and the same tensors."""
    fx: Any = sys.modules["torch.fx"]
    graph = fx.Graph()
    mapping: dict[Any, Any] = {}
    for node in module.graph.nodes:
        new = graph.node_copy(node, lambda used: mapping[used])
        if new.name != node.name:
            new._rename(node.name)
        mapping[node] = new
    root = sys.modules["torch"].nn.Module()
    for node in module.graph.nodes:
        if node.op in ("get_attr", "call_module"):
            value = module
            for part in node.target.split("."):
                value = getattr(value, part)
            if isinstance(value, fx.GraphModule):
                value = copied(value)
            _assign(root, node.target, value)
    return fx.GraphModule(root, graph)


def _assign(root: Any, path: str, value: Any) -> None:
    torch: Any = sys.modules["torch"]
    *folders, last = path.split(".")
    for name in folders:
        if not hasattr(root, name):
            setattr(root, name, torch.nn.Module())
        root = getattr(root, name)
    if isinstance(value, torch.Tensor) and not isinstance(value, torch.nn.Parameter):
        root.register_buffer(last, value)
    else:
        setattr(root, last, value)


Draw = Callable[[Any, Sequence[Any], Mapping[str, Any]], Any]


class Values:
    """Runs one graph.

    Args:
        given: Values by node name that are taken as they are, in place of running the node.
        draw: Draws the value of a random node (node, arguments, keywords).
        wide: Run in float64.
        noise: By how much of itself each value is disturbed there, at random: tells what roundings can come to.
    """

    def __init__(
        self, kept: KeptGraph, given: Mapping[str, Any] | None = None, draw: Draw | None = None, wide: bool = False,
        noise: float = 0.0,
    ) -> None:  # fmt: skip
        self._torch: Any = sys.modules["torch"]
        self.kept, self._given, self._draw, self._wide = kept, dict(given or {}), draw, wide
        self._noise, self._generator = noise, self._torch.Generator().manual_seed(0) if noise else None
        self.narrow: dict[str, str] = {}
        self._last_uses = last_uses(kept.graph)

    @property
    def is_disturbed(self) -> bool:
        """Whether the results are disturbed by noise."""
        return self._noise > 0

    def run(self, inputs: Sequence[Any], seen: Callable[[Any, Any], None]) -> Any:
        """Runs all nodes in order; ``seen`` gets each node with its value, whose memory is let go after its last use.

        Returns the graph's outputs.  What a node raises is raised, with the node's name in a `NodeFailed`.
        """
        env: dict[Any, Any] = {}
        feed = iter(inputs)
        outputs = None
        for node in self.kept.graph.nodes:
            if node.op == "placeholder":
                value = next(feed)
                value = self.widened(value) if self._wide else value
            elif node.op == "output":
                outputs = self.arguments(node.args[0], env)
                break
            else:
                value = self.node(node, env)
            env[node] = value
            seen(node, value)
            for used in self._last_uses.get(node, ()):
                env.pop(used, None)
        return outputs

    def node(self, node: Any, env: Mapping[Any, Any]) -> Any:
        """The value of one node from those before it.  Raises NodeFailed."""
        if node.name in self._given:
            given = self._given[node.name]
            return self.widened(given) if self._wide else given
        args, kwargs = self.arguments(node.args, env), self.arguments(node.kwargs, env)
        try:
            if self._draw is not None and is_random(node):
                value = self._draw(node, args, kwargs)
                return self.widened(value) if self._wide else value
            if not self._wide:
                return self._call(node, args, kwargs)
            value = self._call_wide(node, args, kwargs)
            return self._disturbed(value) if self._noise else value
        except Exception as error:
            raise NodeFailed(node.name, error) from error

    def _call(self, node: Any, args: Any, kwargs: Any) -> Any:
        if node.op == "get_attr":
            value: Any = self.kept.module
            for part in node.target.split("."):
                value = getattr(value, part)
            return value
        if node.op == "call_method":
            return getattr(args[0], node.target)(*args[1:], **kwargs)
        if node.op == "call_module":
            return self.kept.module.get_submodule(node.target)(*args, **kwargs)
        return node.target(*args, **kwargs)

    def _call_wide(self, node: Any, args: Any, kwargs: Any) -> Any:
        if node.op == "get_attr":
            return self.widened(self._call(node, args, kwargs))
        if _looks_at_bits(node):
            return self._narrow_call(node, args, kwargs, "it looks at the bits of its input")
        if node.op == "call_method" and node.target in _CASTS:
            return args[0].to(self._torch.complex128 if node.target == "cfloat" else self._torch.float64)
        if getattr(node.target, "__name__", "") in _MODES:
            return None
        if below(node):
            return self._call_body(args[0], args[below(node) :])
        if is_higher_order(node) and node.target.name() == "cond":  # a branch by itself, so that autograd sees it
            return self._call_body(args[1] if args[0] else args[2], args[3])
        if (named := named_arguments(node.target, args, kwargs)) is not None:
            return in_float64(node.target, named, self._in_own_dtype(node, args, kwargs))
        try:
            return self.widened(self._call(node, self._wide_dtypes(args), self._wide_dtypes(kwargs)))
        except Exception as error:  # noqa: BLE001  no such form; in its own dtype it may run
            return self._narrow_call(node, args, kwargs, f"{type(error).__name__}: {str(error)[:120]}")

    def _call_body(self, body: Any, args: Any) -> Any:
        """A graph below this one, run in float64 as well."""
        outputs = Values(KeptGraph(body), wide=True).run(args, lambda *_: None)
        return tuple(outputs) if isinstance(outputs, list) else outputs

    def _narrow_call(self, node: Any, args: Any, kwargs: Any, why: str) -> Any:
        """Runs a node in the dtypes that its inputs have in the graph."""
        self.narrow[node.name] = why
        return self.widened(self._in_own_dtype(node, args, kwargs))

    def _in_own_dtype(self, node: Any, args: Any, kwargs: Any) -> Any:
        wide = [*args, *kwargs.values()]
        own = [self._as_graph(a, v) for a, v in zip((*node.args, *node.kwargs.values()), wide, strict=True)]
        value = self._call(node, own[: len(args)], dict(zip(node.kwargs, own[len(args) :], strict=True)))
        if mutates(node):  # it has written into copies
            self._write_back(wide, own)
        return value

    def _write_back(self, wide: Any, own: Any) -> None:
        for left, right in zip(wide, own, strict=True):
            if isinstance(left, list | tuple):
                self._write_back(left, right)
            elif isinstance(left, self._torch.Tensor) and left is not right:
                left.copy_(right)

    def _as_graph(self, argument: Any, value: Any) -> Any:
        """A value in the dtype that the node behind the argument has in the graph."""
        torch = self._torch
        if isinstance(argument, list | tuple):
            return [self._as_graph(a, v) for a, v in zip(argument, value, strict=True)]
        meta = getattr(argument, "meta", {})
        wanted = meta.get("val", meta.get("example_value"))
        if isinstance(value, torch.Tensor) and isinstance(wanted, torch.Tensor) and value.is_floating_point():
            return value.to(wanted.dtype)
        return value

    def arguments(self, argument: Any, env: Mapping[Any, Any]) -> Any:
        """An argument of a node with the nodes in it replaced by their values from `env`."""
        return sys.modules["torch.fx"].node.map_arg(argument, lambda node: env[node])

    def widened(self, value: Any) -> Any:
        """Floating-point tensors below float64 as float64, complex ones as complex128."""
        torch = self._torch
        if isinstance(value, torch.Tensor):
            if value.is_floating_point() and value.dtype is not torch.float64:
                return value.to(torch.float64)
            return value.to(torch.complex128) if value.is_complex() else value
        if isinstance(value, list | tuple):
            return type(value)([self.widened(item) for item in value]) if type(value) in (list, tuple) else value
        return value

    def _disturbed(self, value: Any) -> Any:
        torch = self._torch
        if isinstance(value, list | tuple) and type(value) in (list, tuple):
            return type(value)(self._disturbed(item) for item in value)
        if not isinstance(value, torch.Tensor) or value.dtype is not torch.float64:
            return value
        signs = torch.rand(value.shape, dtype=torch.float64, generator=self._generator, device="cpu").to(value.device)
        signs = signs * 2 - 1
        return value * (1 + self._noise * signs)

    def _wide_dtypes(self, argument: Any) -> Any:
        """An argument with float64 where it names a narrower type, also in the graphs of an operation that takes some."""
        torch = self._torch
        if isinstance(argument, sys.modules["torch.fx"].GraphModule):
            return lambda *args: self._call_body(argument, args)
        if isinstance(argument, torch.dtype):
            if argument.is_floating_point:
                return torch.float64
            return torch.complex128 if argument.is_complex else argument
        if isinstance(argument, dict):
            return {key: self._wide_dtypes(item) for key, item in argument.items()}
        if isinstance(argument, list | tuple):
            return (
                type(argument)(self._wide_dtypes(item) for item in argument)
                if type(argument) in (list, tuple)
                else argument
            )
        return argument


class NodeFailed(Exception):
    """A node could not be run by itself."""

    def __init__(self, node: str, error: BaseException) -> None:
        super().__init__(f"{node}: {type(error).__name__}: {(str(error).splitlines() or [''])[0][:300]}")
        self.node = node


def last_uses(graph: Any) -> dict[Any, list[Any]]:
    """Which values are needed no more after each node."""
    order = {node: number for number, node in enumerate(graph.nodes)}
    found: dict[Any, list[Any]] = {}
    for node in graph.nodes:
        found.setdefault(max(node.users, key=order.__getitem__, default=node), []).append(node)
    return found


def is_random(node: Any) -> bool:
    """Whether a node draws random numbers in Inductor's own way."""
    return node.op == "call_function" and getattr(node.target, "_opname", "") in RANDOM


def draws(node: Any) -> bool:
    """Whether a node draws random numbers in any way."""
    torch: Any = sys.modules["torch"]
    tags = getattr(node.target, "tags", ()) if node.op == "call_function" else ()
    return is_random(node) or torch.Tag.nondeterministic_seeded in tags


def mutates(node: Any) -> bool:
    """Whether a node changes one of its inputs."""
    schema = getattr(node.target, "_schema", None) if node.op == "call_function" else None
    return bool(schema is not None and schema.is_mutable)


def copies_to_input(node: Any) -> bool:
    """Whether a node writes a result into an input of the graph, as AOTAutograd has it at the end of one."""
    is_copy = node.op == "call_function" and str(node.target) == "aten.copy_.default"
    return bool(is_copy and node.args[0].op == "placeholder")


# What a dynamo graph has and AOTAutograd's have not.
_CASTS = ("float", "half", "bfloat16", "double", "cfloat")
_MODES = (
    "_enter_autocast", "_exit_autocast", "_enter_inference_mode", "_exit_inference_mode",
)  # fmt: skip
"""In float64 nothing is cast by them."""
_BODIES = {"tag_activation_checkpoint": 1, "wrap": 1, "wrap_activation_checkpoint": 1, "invoke_subgraph": 2}
"""Operations that run a graph below theirs and do nothing else to its numbers → where its inputs begin."""


def is_higher_order(node: Any) -> bool:
    """Whether a node runs graphs below its own."""
    return is_higher_order_operator(node.target)


def below(node: Any) -> int:
    """For a node that runs a graph below its own and does nothing else: where that graph's inputs begin; else 0."""
    return _BODIES.get(node.target.name(), 0) if is_higher_order(node) else 0


def _looks_at_bits(node: Any) -> bool:
    torch: Any = sys.modules["torch"]
    if node.op == "call_method" and node.target == "view" and any(isinstance(each, torch.dtype) for each in node.args):
        return True
    name = str(node.target)
    return "view.dtype" in name or "bitcast" in name or "quant" in name
