"""A whole script on tensors that have shapes and no storage: of a run with ``--fake``.

From torch's import on the script runs under a mode of PyTorch's in which every tensor is a fake one.  Where it needs a
value, such as for ``item()``, ``print`` or a condition, there is none: the place is reported, and the script goes on with
zeros.
"""

from __future__ import annotations

import importlib
import sys
import types
from collections.abc import Callable
from typing import Any

from irscope.internals.frames import callers
from irscope.internals.hooks import Hook, Undo, replace_attribute, undo_all
from irscope.usercode.user_files import is_user_file

_MOST_ELEMENTS = 1_000_000
"""The most elements of a tensor whose values are made up."""
_VERSIONS = "2.11 and 2.13"
_modes: list[Any] = []


def hook(needed: Callable[[str], None]) -> Hook:
    """Begin when torch is imported.

    Args:
        needed: Called on the stack on which a value is needed, with what needs it.
    """

    def apply(_: types.ModuleType) -> Undo:
        fakes: Any = importlib.import_module("torch._subclasses.fake_tensor")
        torch: Any = sys.modules["torch"]

        own_rules = importlib.import_module("torch._higher_order_ops.utils").registered_hop_fake_fns

        class Mode(fakes.FakeTensorMode):  # type: ignore[misc]
            """Answers with a made-up value where one is needed."""

            supports_higher_order_operators = True

            def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                # Operators that call graphs, such as FlexAttention, have their rules by the mode's exact type.
                rule = getattr(func, "python_key_table", {}).get(fakes.FakeTensorMode)
                if rule is not None and func not in own_rules:
                    return rule(self, *args, **(kwargs or {}))
                return super().__torch_dispatch__(func, types, args, kwargs)

            def dispatch(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                try:
                    return super().dispatch(func, types, args, kwargs or {})
                except fakes.DataDependentOutputException:
                    if func is not torch.ops.aten._local_scalar_dense.default:
                        needed(str(func))
                        raise
                    needed("a number")
                    return _zero(args[0].dtype)
                except fakes.DynamicOutputShapeException:
                    needed(f"{func.overloadpacket.__name__}, whose result has a shape that depends on values,")
                    raise

        mode = Mode(allow_non_fake_inputs=True)
        undo = [_values_of(fakes.FakeTensor, needed, torch), replace_attribute(torch.nn.Module, "_apply", _converted)]
        mode.__enter__()
        _modes.append(mode)
        return undo_all([*undo, _leave])

    return Hook("a run on fake tensors", "torch", _VERSIONS, apply)


def is_the_scripts(tensor: Any) -> bool:
    """Whether the script has made a tensor, and not PyTorch for a trace: one with values, or a fake one of the run's."""
    mode = getattr(tensor, "fake_mode", None)
    return mode is None or mode in _modes


def leave_in_child() -> None:
    """In a forked child, which compiles: what it makes is real again."""
    c: Any = sys.modules["torch"]._C
    if _modes and c._get_dispatch_mode(c._TorchDispatchModeKey.FAKE) is _modes[-1]:  # Dynamo has put it aside
        _leave()


def _converted(module: Any, change: Callable[[Any], Any], recurse: bool = True) -> Any:
    """In place of ``Module._apply``, which swaps fake tensors and cannot if the mode knows them."""
    torch: Any = sys.modules["torch"]
    for child in module.children() if recurse else ():
        child._apply(change)
    with torch.no_grad():
        for parameter in filter(lambda each: each is not None, module._parameters.values()):
            for tensor in (parameter, parameter.grad):
                if tensor is not None:
                    tensor.data = change(tensor)
        for name, buffer in module._buffers.items():
            module._buffers[name] = None if buffer is None else change(buffer)
    return module


def _leave() -> None:
    if _modes:
        _modes.pop().__exit__(None, None, None)


def _zero(dtype: Any) -> bool | int | float | complex:
    if dtype.is_complex:
        return 0j
    if dtype.is_floating_point:
        return 0.0
    return False if str(dtype) == "torch.bool" else 0


def _values_of(fake: Any, needed: Callable[[str], None], torch: Any) -> Undo:
    """What gives all values of a tensor at once."""
    text, numpy, tolist = fake.__repr__, fake.numpy, fake.tolist

    def made_up(tensor: Any, what: str, read: str, otherwise: Callable[..., Any]) -> Any:
        needed(what)
        if tensor.numel() > _MOST_ELEMENTS:
            return otherwise(tensor)
        with importlib.import_module("torch._subclasses.fake_tensor").unset_fake_temporarily():
            return getattr(torch.zeros(tuple(tensor.shape), dtype=tensor.dtype), read)()

    def printed(tensor: Any, **options: Any) -> str:
        if is_user_file(next(callers()).f_code.co_filename):
            needed("its text")
        return str(text(tensor, **options))

    def as_numpy(tensor: Any, **options: Any) -> Any:
        return made_up(tensor, "numpy", "numpy", numpy)

    def as_list(tensor: Any) -> Any:
        return made_up(tensor, "a list", "tolist", tolist)

    return undo_all([_set(fake, "__repr__", printed), _set(fake, "numpy", as_numpy), _set(fake, "tolist", as_list)])


def _set(holder: Any, name: str, value: object) -> Undo:
    """Sets an attribute of a class, which may be inherited."""
    if name in vars(holder):
        return replace_attribute(holder, name, value)
    setattr(holder, name, value)
    return lambda: delattr(holder, name)
