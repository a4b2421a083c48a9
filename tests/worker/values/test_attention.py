"""Attention in float64 in place of the kernels of GPUs, against PyTorch's kernel for CPUs, which has that form."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from irscope.values.run.attention import in_float64, named_arguments

aten: Any = torch.ops.aten
Q, K, V, ABOVE = (
    torch.randn(2, 4, 6, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(n)) for n in range(4)
)


def close(one: Any, other: Any) -> None:
    torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("scale", [None, 0.3])
def test_forward_and_backward(causal: bool, scale: float | None) -> None:
    out, sums = aten._scaled_dot_product_flash_attention_for_cpu(Q, K, V, 0.0, causal, scale=scale)
    forward = aten._scaled_dot_product_efficient_attention.default
    args = (Q, K, V, None, True, 0.0, causal)
    named = named_arguments(forward, args, {"scale": scale})
    assert named is not None
    padded = torch.full((2, 4, 32), 7.0)  # as the kernel pads its sums
    narrow = (torch.empty(2, 6, 4, 8).transpose(1, 2), padded, torch.tensor(1), torch.tensor(2))
    found = in_float64(forward, named, narrow)
    close(found[0], out)
    assert found[0].transpose(1, 2).is_contiguous(), "the graph views it so"
    close(found[1][:, :, :6], sums)
    assert found[1].dtype is torch.float64 and bool((found[1][:, :, 6:] == 7).all())
    assert found[2:] == list(narrow[2:])

    wanted = aten._scaled_dot_product_flash_attention_for_cpu_backward(
        ABOVE, Q, K, V, out, sums, 0.0, causal, scale=scale
    )
    backward = aten._scaled_dot_product_efficient_attention_backward.default
    given = (
        ABOVE,
        Q,
        K,
        V,
        None,
        out,
        found[1],
        torch.tensor(1),
        torch.tensor(2),
        0.0,
        [True, True, True, False],
        causal,
    )
    named = named_arguments(backward, given, {"scale": scale})
    assert named is not None
    made = in_float64(backward, named, (*(torch.empty(2, 4, 6, 8) for _ in range(3)), None))
    for one, other in zip(made[:3], wanted, strict=True):
        close(one, other)
    assert made[3] is None


def test_a_bias_and_its_gradient() -> None:
    bias = torch.randn(2, 4, 6, 6, dtype=torch.float64)
    leaf = bias.clone().requires_grad_()
    result = torch.nn.functional.scaled_dot_product_attention(Q, K, V, leaf)
    backward = aten._scaled_dot_product_efficient_attention_backward.default
    none = torch.tensor(0)
    given = (ABOVE, Q, K, V, bias, result.detach(), none, none, none, 0.0, [True, True, True, True])
    named = named_arguments(backward, given, {})
    assert named is not None
    made = in_float64(backward, named, [torch.empty(2, 4, 6, 8) for _ in range(3)] + [torch.empty(2, 4, 6, 6)])
    close(made[3], torch.autograd.grad(result, leaf, ABOVE)[0])


def test_fewer_heads_of_keys() -> None:
    forward = aten._scaled_dot_product_flash_attention.default
    key, value = K[:, :2], V[:, :2]
    named = named_arguments(forward, (Q, key, value), {})
    assert named is not None
    found = in_float64(forward, named, (torch.empty(2, 4, 6, 8), torch.empty(2, 4, 6)))
    out, sums = aten._scaled_dot_product_flash_attention_for_cpu(
        Q, key.repeat_interleave(2, 1), value.repeat_interleave(2, 1)
    )
    close(found[0], out)
    close(found[1], sums)


def test_what_drops_out_or_is_something_else_is_left_alone() -> None:
    assert named_arguments(aten._scaled_dot_product_flash_attention.default, (Q, K, V, 0.1), {}) is None
    assert named_arguments(aten.mm.default, (Q, K), {}) is None
    assert named_arguments(torch.relu, (Q,), {}) is None
