"""An exported program as a function of JAX: each of its operators by torchax, in a scope that names its node."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from irscope.internals.exporting import flatten
from irscope.internals.operators import operator_class
from irscope.internals.torchax import import_torchax
from irscope.protocol import Origin
from irscope.vocabulary.records import dataclass

_SCOPE = re.compile(r"(?:^|[/(])(?P<node>\w+)~")
_CHECKS = (
    "_assert_async",
    "_assert_scalar",
    "_assert_tensor_metadata",
    "sym_constrain_range",
    "sym_constrain_range_for_size",
)
"""Operators that only check something, which holds for the first call."""


class UnsupportedOperatorError(Exception):
    """torchax cannot compute a node."""

    def __init__(self, node: Any, why: str) -> None:
        super().__init__(why)
        self.node = node


@dataclass(frozen=True)
class Input:
    """An input of an exported program with its value: of a parameter, a buffer, a constant or an argument.

    Args:
        number: Among the leaves of the arguments; -1 if it is none of them.
        is_used: Whether the program computes anything from it.  A weight that is tied to another one has only one of
            the names.
    """

    name: str
    value: Any
    number: int = -1
    is_used: bool = True


def scope_of(node: str, place: Origin | None) -> str:
    """The scope that names a node and the user's line; XLA drops what follows an ``@``."""
    if place is None:
        return f"{node}~"
    file = re.sub(r"[^\w.-]", "_", os.path.basename(place.file))
    return f"{node}~{file}:{place.line}"


def node_of(op_name: str) -> str:
    """The node that a scope names: ``jit(forward)/relu~model.py:7/max``, in a backward
    ``transpose(jvp(relu~model.py:7))/mul``; empty if there is none."""
    match = _SCOPE.search(op_name)
    return match["node"] if match else ""


def inputs_of(exported: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Input]:
    """The inputs of a program, in their order.  Raises ValueError if it does not take the arguments of the call."""
    leaves = flatten((args, kwargs))[0]
    used = {node.name for node in exported.graph.nodes if node.op == "placeholder" and node.users}
    found, number = [], 0
    for spec in exported.graph_signature.input_specs:
        if spec.kind.name == "USER_INPUT":
            if number >= len(leaves):
                raise ValueError("the exported program takes more arguments than the call has")
            found.append(Input(spec.arg.name, leaves[number], number, spec.arg.name in used))
            number += 1
        else:
            kept = exported.state_dict if spec.target in exported.state_dict else exported.constants
            found.append(Input(spec.arg.name, kept[spec.target], is_used=spec.arg.name in used))
    if number != len(leaves):
        raise ValueError("the call has arguments that the exported program does not take")
    return found


class Torchax:
    """torchax and JAX in this process."""

    def __init__(self) -> None:
        self.torchax = import_torchax()
        self.jax: Any = importlib.import_module("jax")
        self._torch: Any = sys.modules["torch"]
        registry: Any = importlib.import_module("torchax.ops.ops_registry")
        self._registry: dict[Any, Any] = {**registry.all_torch_functions, **registry.all_aten_ops}
        self._mappings: Any = importlib.import_module("torchax.ops.mappings")
        self._operator = operator_class()
        with self.exact():
            self._key = self.torchax.default_env().prng_key  # made now, it is not a part of a program

    @property
    def decompositions(self) -> dict[Any, Any]:
        """PyTorch's decompositions into core ATen and, of what torchax cannot compute then, torchax's."""
        return dict(importlib.import_module("torchax.decompositions").DECOMPOSITIONS)

    @contextlib.contextmanager
    def exact(self) -> Iterator[None]:
        """JAX computes with 64 bits only where it is asked to."""
        with self.jax.enable_x64(True):
            yield

    def shapes(self, inputs: list[Input]) -> list[Any]:
        """The shapes and types of the tensors among the inputs."""
        tensors = [one.value for one in inputs if isinstance(one.value, self._torch.Tensor)]
        return [self.jax.ShapeDtypeStruct(tuple(one.shape), self._mappings.t2j_dtype(one.dtype)) for one in tensors]

    def array(self, tensor: Any) -> Any:
        """A tensor as an array of JAX, of the same memory where that is possible."""
        tensor = tensor.detach().resolve_conj().resolve_neg().contiguous()
        if tensor.dtype is self._torch.bool or tensor.numel() == 0:
            return self.jax.numpy.asarray(tensor.numpy())
        return self.jax.dlpack.from_dlpack(tensor)

    def tensor(self, array: Any) -> Any:
        """An array of JAX as a tensor that shares its memory; it must not be changed."""
        if array.dtype == bool or array.size == 0:
            return self._torch.from_numpy(importlib.import_module("numpy").array(array))
        return self._torch.utils.dlpack.from_dlpack(array)

    def run(self, compiled: Callable[..., Any], *given: Any) -> Any:
        """What an executable gives, computed: JAX returns before that, and the memory of the inputs is the script's."""
        return self.jax.block_until_ready(compiled(*given))

    # --- operators ----------------------------------------------------------------------------------------------------

    def implementation(self, target: Any) -> Any:
        """torchax's entry for an operator; None if it has none."""
        return self._registry.get(target) or self._registry.get(getattr(target, "overloadpacket", None))

    def unsupported(self, graph: Any) -> list[Any]:
        """The nodes whose operators torchax cannot compute."""
        calls = [node for node in graph.nodes if node.op == "call_function" and not _is_check(node)]
        return [node for node in calls if not self._is_supported(node.target)]

    def _is_supported(self, target: Any) -> bool:
        if isinstance(target, self._operator):
            return self.implementation(target) is not None
        return getattr(target, "__module__", "") in ("_operator", "operator", "math", "builtins")

    def draws_random_numbers(self, graph: Any) -> bool:
        """Whether a graph calls an operator that JAX computes with other random numbers than PyTorch."""
        return any(self._draws(node) for node in graph.nodes if node.op == "call_function")

    def _draws(self, node: Any) -> bool:
        found = self.implementation(node.target)
        if found is None or not found.needs_env:
            return False
        if "scaled_dot_product" in str(node.target):
            return bool(node.kwargs.get("dropout_p", node.args[4] if len(node.args) > 4 else 0.0))
        return "copy" not in str(node.target)

    def _call(self, node: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        if not isinstance(node.target, self._operator):
            return node.target(*args, **kwargs)
        found = self.implementation(node.target)
        if found is None:
            raise UnsupportedOperatorError(node, "torchax does not have it")
        env = self.torchax.default_env()
        options = {**kwargs, **({"env": env} if found.needs_env else {})}
        try:
            if found.is_jax_function:
                return found.func(*args, **options)
            with env:  # it is written with operators of PyTorch, which torchax computes
                return env.t2j_iso(found.func(*env.j2t_iso(args), **env.j2t_iso(options)))
        except Exception as error:
            reason = str(error).strip().partition("\n")[0]
            raise UnsupportedOperatorError(node, f"{type(error).__name__}: {reason}") from error

    def _as_told(self, result: Any, value: Any) -> Any:
        """With the types that PyTorch gives; JAX's rules for the types of mixed operands differ."""
        if isinstance(value, (list, tuple)):
            return type(value)(self._as_told(r, v) for r, v in zip(result, value, strict=False))
        if not isinstance(value, self._torch.Tensor) or not hasattr(result, "astype"):
            return result
        dtype = self._mappings.t2j_dtype(value.dtype)
        return result if result.dtype == dtype else result.astype(dtype)

    # --- the function -------------------------------------------------------------------------------------------------

    def function(
        self, module: Any, inputs: list[Input], place_of: Callable[[Any], Origin | None], name: str
    ) -> Callable[..., Any]:
        """A function of the tensors among the inputs, for `jax.jit`; it gives all outputs of the graph.

        Args:
            place_of: The user's file and line of a node.
            name: What it is called in the texts of JAX.
        """
        tensors = [one.name for one in inputs if isinstance(one.value, self._torch.Tensor)]
        constants = {one.name: one.value for one in inputs if one.name not in set(tensors)}

        def program(*arrays: Any) -> Any:
            given = {**constants, **dict(zip(tensors, arrays, strict=True))}
            with self.torchax.default_env().override_property(prng=self._key):
                return self._run(module, given, place_of)

        program.__name__ = program.__qualname__ = re.sub(r"\W", "_", name) or "program"
        kind = inspect.Parameter.POSITIONAL_ONLY
        program.__signature__ = inspect.Signature([inspect.Parameter(one, kind) for one in tensors])  # type: ignore[attr-defined]
        return program

    def training(
        self, function: Callable[..., Any], wanted: list[bool]
    ) -> tuple[Callable[..., Any], Callable[..., Any]]:
        """The forward and the backward of a function.

        The forward gives the results of floating point, what it keeps for the backward, and the other results.  The
        backward takes what is kept and the gradients of the first, and gives those of the wanted inputs.
        """

        def forward(*arrays: Any) -> Any:
            def of_wanted(*chosen: Any) -> Any:
                given = iter(chosen)
                found = function(*(next(given) if want else one for want, one in zip(wanted, arrays, strict=True)))
                return [one for one in found if _is_float(one)], [one for one in found if not _is_float(one)]

            chosen = [one for want, one in zip(wanted, arrays, strict=True) if want]
            return self.jax.vjp(of_wanted, *chosen, has_aux=True)

        def backward(saved: Any, gradients: Any) -> Any:
            return saved(gradients)

        forward.__name__ = forward.__qualname__ = function.__name__
        forward.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
        backward.__name__ = backward.__qualname__ = f"{function.__name__}_backward"
        return forward, backward

    def _run(self, module: Any, given: Mapping[str, Any], place_of: Callable[[Any], Origin | None]) -> Any:
        known: dict[Any, Any] = {}
        for node in module.graph.nodes:
            if node.op == "placeholder":
                known[node] = given[node.name]
            elif node.op == "get_attr":
                known[node] = self.array(
                    module.get_parameter(node.target) if _is_parameter(module, node) else module.get_buffer(node.target)
                )
            elif node.op == "output":
                return [one for one in self._arguments(node.args[0], known) if hasattr(one, "dtype")]
            elif not _is_check(node):
                with self.jax.named_scope(scope_of(node.name, place_of(node))):
                    result = self._call(node, self._arguments(node.args, known), self._arguments(node.kwargs, known))
                    known[node] = self._as_told(result, node.meta.get("val"))
        return []

    def _arguments(self, value: Any, known: Mapping[Any, Any]) -> Any:
        return self._torch.fx.node.map_arg(value, lambda node: known[node])


def _is_parameter(module: Any, node: Any) -> bool:
    return node.target in dict(module.named_parameters())


def _is_float(array: Any) -> bool:
    return str(array.dtype).startswith(("float", "bfloat", "complex"))


def _is_check(node: Any) -> bool:
    name = str(node.target).removeprefix("aten.").partition(".")[0]
    return name in _CHECKS and not node.users
