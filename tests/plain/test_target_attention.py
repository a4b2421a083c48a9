"""Which operator of attention a GPU would choose, and that PyTorch's functions are set back after a compile for one."""

from __future__ import annotations

import sys
import types
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from irscope.internals.frames import report_to
from irscope.internals.hooks import Hooks
from irscope.internals.target_attention import attention, attention_hooks, chosen
from irscope.protocol import CaptureGap


@dataclass(frozen=True)
class Tensor:
    shape: tuple[int, ...]
    dtype: str = "bfloat16"
    last_stride: int = 1
    requires_grad: bool = False

    def dim(self) -> int:
        return len(self.shape)

    def size(self, dimension: int) -> int:
        return self.shape[dimension]

    def stride(self, dimension: int) -> int:
        assert dimension == -1
        return self.last_stride


@dataclass(frozen=True)
class Call:
    query: Tensor = Tensor((2, 8, 32, 64))
    key: Tensor = Tensor((2, 8, 32, 64))
    value: Tensor = Tensor((2, 8, 32, 64))
    mask: Tensor | None = None
    dropout: float = 0.0
    causal: bool = False
    grouped: bool = False
    off: tuple[str, ...] = field(default=())
    """Operators that the user has switched off, and ``deterministic``."""

    def operators(self) -> str:
        """On an H100, a B200, an A100 and an MI300X, by their first letters: Cudnn, Flash, Efficient, Math."""
        devices = ((9, None), (10, None), (8, None), (9, "7.0"))
        return "".join(self._chosen(major, hip)[0].upper() for major, hip in devices)

    def _chosen(self, major: int, hip: str | None) -> str:
        settings = {f"{name}_sdp_enabled": lambda name=name: name not in self.off for name in _SWITCHES}
        torch = types.SimpleNamespace(
            float16="float16",
            bfloat16="bfloat16",
            float32="float32",
            version=types.SimpleNamespace(hip=hip),
            cuda=types.SimpleNamespace(get_device_capability=lambda: (major, 0)),
            backends=types.SimpleNamespace(cuda=types.SimpleNamespace(**settings)),
            are_deterministic_algorithms_enabled=lambda: "deterministic" in self.off,
        )
        tensors = (self.query, self.key, self.value)
        return chosen(torch, *tensors, self.mask, self.dropout, self.causal, self.grouped)


_SWITCHES = ("cudnn", "flash", "mem_efficient")


def sized(*shape: int, dtype: str = "bfloat16", values: int = 0) -> Call:
    """With tensors of this shape, or with other ones in the last dimension of the values."""
    tensor = Tensor(shape, dtype)
    return Call(tensor, tensor, replace(tensor, shape=(*shape[:-1], values or shape[-1])))


def masked(*shape: int, grad: bool = False, last_stride: int = 1) -> Call:
    return Call(mask=Tensor(shape, last_stride=last_stride, requires_grad=grad))


SHORT, GROUPED, OTHER_BATCH = Tensor((2, 8, 16, 64)), Tensor((2, 2, 32, 64)), Tensor((1, 8, 32, 64))
ONE_QUERY, ONE_KEY, NONE = Tensor((2, 8, 1, 64)), Tensor((2, 8, 1, 64)), Tensor((2, 8, 0, 64))
STRIDED = Tensor((2, 8, 32, 64), last_stride=2)


@pytest.mark.parametrize(
    ("call", "operators"),
    [
        (Call(), "CCFF"),
        (Call(causal=True), "CCFF"),
        # The numbers.
        (sized(2, 8, 32, 64, dtype="float16"), "CCFF"),
        (sized(2, 8, 32, 64, dtype="float32"), "EEEE"),
        (sized(2, 8, 32, 64, dtype="float64"), "MMMM"),
        (Call(key=Tensor((2, 8, 32, 64), "float16")), "MMMM"),
        # The dimensions.
        (sized(8, 32, 64), "MMMM"),
        (Call(key=NONE, value=NONE), "MMMM"),
        (Call(query=NONE), "MMMM"),
        (Call(key=OTHER_BATCH, value=OTHER_BATCH), "MMMM"),
        (Call(key=STRIDED), "MMMM"),
        (Call(key=SHORT, value=SHORT), "CCFF"),
        (Call(key=SHORT, value=SHORT, causal=True), "CCEE"),
        (Call(key=ONE_KEY, value=ONE_KEY), "FFFF"),
        # The size of a head.
        (sized(2, 8, 32, 128), "CCFF"),
        (sized(2, 8, 32, 136), "FFFF"),
        (sized(2, 8, 32, 256), "FFFF"),
        (sized(2, 8, 32, 264), "EEEE"),
        (sized(2, 8, 32, 60), "FFFF"),
        (sized(2, 8, 32, 268), "MMMM"),
        (sized(2, 8, 32, 60, dtype="float32"), "EEEE"),
        (sized(2, 8, 32, 62, dtype="float32"), "MMMM"),
        (sized(2, 8, 32, 64, values=32), "CCEE"),
        (sized(2, 8, 32, 64, values=136), "EEEE"),
        (sized(2, 8, 32, 64, values=60), "MMMM"),
        (sized(2, 8, 32, 60, values=64), "MMMM"),
        (sized(2, 8, 32, 136, values=128), "EEEE"),
        (Call(key=Tensor((2, 8, 32, 32))), "CCMM"),
        # Groups of heads.
        (Call(key=GROUPED, value=GROUPED), "MMMM"),
        (Call(key=GROUPED, value=GROUPED, grouped=True), "CCFF"),
        (Call(key=GROUPED, value=GROUPED, grouped=True, off=("cudnn", "flash")), "EEEM"),
        # The mask.
        (masked(32, 32), "CCEE"),
        (masked(2, 8, 32, 32), "CCEE"),
        (masked(2, 1, 1, 32), "CCEE"),
        (masked(8, 32, 32), "EEEE"),
        (masked(16, 32), "EEEE"),
        (masked(32, 32, grad=True), "EEEE"),
        (masked(32, 32, last_stride=2), "MMMM"),
        # Training.
        (Call(dropout=0.25), "CCFF"),
        (Call(dropout=0.1), "FFFF"),
        (Call(query=ONE_QUERY), "CCFF"),
        (Call(query=ONE_QUERY, dropout=0.25), "FFFF"),
        # What the user has switched off.
        (Call(off=("cudnn",)), "FFFF"),
        (Call(off=("flash",)), "CCEE"),
        (Call(off=("mem_efficient",)), "CCFF"),
        (Call(off=("cudnn", "flash")), "EEEE"),
        (Call(off=_SWITCHES), "MMMM"),
        (Call(off=("deterministic",)), "FFFF"),
    ],
)
def test_the_operator_on_four_devices(call: Call, operators: str) -> None:
    assert call.operators() == operators


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any]:
    functional: Any = types.ModuleType("torch.nn.functional")
    passes: Any = types.ModuleType("torch._inductor.fx_passes.fuse_attention")
    functional.scaled_dot_product_attention = passes._scaled_dot_product_attention = "of PyTorch"
    for module in (functional, passes):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    return functional, passes


def test_functions_of_attention_are_set_back_also_after_an_error(modules: tuple[Any, Any]) -> None:
    functional, passes = modules
    with pytest.raises(KeyError), Hooks(attention_hooks()):
        assert functional.scaled_dot_product_attention is passes._scaled_dot_product_attention is attention
        raise KeyError
    assert functional.scaled_dot_product_attention == passes._scaled_dot_product_attention == "of PyTorch"


def test_a_function_that_was_renamed_leaves_a_gap_in_the_capture_around(modules: tuple[Any, Any]) -> None:
    functional, passes = modules
    del passes._scaled_dot_product_attention
    gaps = list[CaptureGap]()
    undo = report_to(gaps.append)
    with Hooks(attention_hooks()):
        assert functional.scaled_dot_product_attention is attention
        assert [gap.what for gap in gaps] == ["attention as on the device, of Inductor's passes"]
    undo()
    assert "fuse_attention is not as expected" in gaps[0].why and "2.11 and 2.13" in gaps[0].why
