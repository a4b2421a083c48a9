"""Graphs with operators that write: runs the named functions compiled, and what is compiled is right.

`made_inside` is the control of pytorch#198031.
"""

import sys
from collections.abc import Callable
from typing import Any

import torch
from torch._higher_order_ops import while_loop
from torch._higher_order_ops.effects import _EffectType, _register_effectful_op


@torch.library.custom_op("writes::shift_into", mutates_args={"target"})
def shift_into(source: torch.Tensor, target: torch.Tensor) -> None:
    for i in range(1, len(target)):
        target[i] = source[i - 1] * 2


@torch.library.custom_op("writes::add_and_sum", mutates_args={"target"})
def add_and_sum(target: torch.Tensor, value: float) -> torch.Tensor:
    target.add_(value)
    return target.sum()


@add_and_sum.register_fake
def _(target: torch.Tensor, value: float) -> torch.Tensor:
    return target.new_empty(())


@torch.library.custom_op("writes::fill_two", mutates_args={"a", "b"})
def fill_two(a: torch.Tensor, b: torch.Tensor) -> None:
    a.add_(1)
    b.mul_(2)


@torch.library.custom_op("writes::scale_all", mutates_args={"items"})
def scale_all(items: list[torch.Tensor], by: float) -> None:
    for item in items:
        item.mul_(by)


@torch.library.custom_op("writes::maybe", mutates_args={"out"})
def maybe(x: torch.Tensor, out: torch.Tensor | None) -> None:
    if out is not None:
        out.copy_(x.cos())


@torch.library.custom_op("writes::record", mutates_args=())
def record(x: torch.Tensor) -> torch.Tensor:
    return x.clone() * 3


@record.register_fake
def _(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x)


@torch.library.custom_op("writes::only_float32", mutates_args={"x"})
def only_float32(x: torch.Tensor) -> None:
    if x.dtype != torch.float32:
        raise TypeError("float32 only")
    x.div_(x.norm())


_register_effectful_op(torch.ops.writes.record.default, _EffectType.ORDERED)

ROW, MATRIX = torch.linspace(-1, 2, 6), torch.linspace(-2, 2, 24).reshape(4, 6)


def made_inside(x: torch.Tensor) -> Any:
    state = x.sin()
    before = state.clone()
    shift_into(before, state)
    return state + 1


def input_and_other(x: torch.Tensor, y: torch.Tensor) -> Any:
    shift_into(y, x)
    return x * 2


def returns_too(x: torch.Tensor) -> Any:
    y = x.cos()
    total = add_and_sum(y, 0.5)
    return y * total


def two_arguments(x: torch.Tensor) -> Any:
    a, b = x.exp(), x.sin()
    fill_two(a, b)
    return a + b


def two_views_of_one(x: torch.Tensor) -> Any:
    y = x.sin()
    fill_two(y[:3], y[3:])
    return y.cos()


def list_of_tensors(x: torch.Tensor) -> Any:
    a, b = x + 1, x.sin()
    scale_all([a, b], 3.0)
    return a - b


def optional_none(x: torch.Tensor) -> Any:
    maybe(x, None)
    return x + 1


def optional_given(x: torch.Tensor) -> Any:
    out = torch.zeros_like(x)
    maybe(x, out)
    return out * 2


def twice_in_place(x: torch.Tensor) -> Any:
    y = x.clone()
    add_and_sum(y, 1.0)
    add_and_sum(y, 2.0)
    return y * 2


def old_value_is_used(x: torch.Tensor) -> Any:
    y = x.sin()
    old = y * 2
    add_and_sum(y, 1.0)
    return old, y


def view_of_input(x: torch.Tensor) -> Any:
    add_and_sum(x[1], 1.0)
    return x.sum(0)


def transposed(x: torch.Tensor) -> Any:
    y = x.sin().t()
    add_and_sum(y, 1.0)
    return y.contiguous() * 2


def relu_in_place(x: torch.Tensor) -> Any:
    x.add_(1).relu_()
    return x * 2


def slice_write(x: torch.Tensor) -> Any:
    y = x.sin()
    y[:, 1:3] = 7
    return y + 1


def index_put(x: torch.Tensor) -> Any:
    y = torch.zeros(8)
    y[torch.tensor([1, 3, 3])] += x[:3]
    return y * 2


def scatter(x: torch.Tensor) -> Any:
    y = torch.zeros(8)
    y.scatter_add_(0, torch.tensor([0, 1, 1, 2, 2, 7]), x)
    return y.sin()


def out_variant(x: torch.Tensor) -> Any:
    y = torch.empty_like(x)
    torch.sin(x, out=y)
    return y + 1


def cond_after_write(x: torch.Tensor) -> Any:
    y = x.clone()
    y.add_(1)
    return torch.cond(y.sum() > 0, lambda a: a.sin(), lambda a: a.cos(), (y,))


def cond_and_custom(x: torch.Tensor) -> Any:
    y = x.clone()
    add_and_sum(y, 1.0)
    return torch.cond(y.sum() > 0, lambda a: a.sin(), lambda a: a.cos(), (y,)) + y


def loop_and_write(x: torch.Tensor) -> Any:
    y = x.clone()
    y.mul_(0.5)
    _, z = while_loop(lambda n, z: n < 3, lambda n, z: (n + 1, z * 1.5), (torch.tensor(0), y))
    return z + 1


def effect(x: torch.Tensor) -> Any:
    y = x.clone()
    y.add_(1)
    return record(y) + 1


def effect_twice(x: torch.Tensor) -> Any:
    a = record(x)
    add_and_sum(a, 1.0)
    return record(a)


def scaled_to_one(x: torch.Tensor) -> Any:
    y = x.sin()
    only_float32(y)
    return y * 2


def random_then_write(x: torch.Tensor) -> Any:
    y = torch.nn.functional.dropout(x, 0.5)
    add_and_sum(y, 1.0)
    return y.sin()


def dropout_in_branch(x: torch.Tensor) -> Any:
    y = x.clone()
    y.mul_(2)
    return torch.cond(y.sum() > -99, lambda a: torch.nn.functional.dropout(a, 0.5), lambda a: a.sin(), (y,))


def trained(x: torch.Tensor) -> Any:
    y = x.sin()
    y.mul_(2)
    z = y[0]
    z.add_(y[1])
    return y.cos()


CASES: dict[Callable[..., Any], tuple[torch.Tensor, ...]] = {
    made_inside: (ROW,), input_and_other: (ROW, ROW + 1), returns_too: (ROW,), two_arguments: (ROW,),
    two_views_of_one: (ROW,), list_of_tensors: (ROW,), optional_none: (ROW,), optional_given: (ROW,), twice_in_place: (ROW,),
    old_value_is_used: (ROW,), view_of_input: (MATRIX,), transposed: (MATRIX,), relu_in_place: (ROW,), slice_write: (MATRIX,),
    index_put: (ROW,), scatter: (ROW,), out_variant: (ROW,), cond_after_write: (ROW,), cond_and_custom: (ROW,),
    loop_and_write: (ROW,), effect: (ROW,), effect_twice: (ROW,), scaled_to_one: (ROW,), random_then_write: (ROW,),
    dropout_in_branch: (ROW,), trained: (MATRIX,),
}  # fmt: skip

if __name__ == "__main__":
    named = {function.__name__: function for function in CASES}
    for name in sys.argv[1:]:
        function = named[name]
        inputs = [value.clone().requires_grad_(name == "trained") for value in CASES[function]]
        torch.manual_seed(0)
        result = torch.compile(function)(*inputs)
        if name == "trained":
            result.sum().backward()

# mypy: disable-error-code="untyped-decorator"
