# lane: deep
"""Failures behind Dynamo: while AOTAutograd and Inductor lower the graph."""
import torch


@torch.compile
def unlowered(x):
    y = x.sin()
    return broken_lowering(y) + 1


def broken_lowering(x):
    return torch.ops.markers.nothing(x)
    #      ^^^^^^^^^^^^^^^^^^^^^^^^^^^^ compile-error InductorError


torch.library.define("markers::nothing", "(Tensor x) -> Tensor")


@torch.library.impl("markers::nothing", "cpu")
def nothing(x):
    return x.clone()


@torch.library.register_fake("markers::nothing")
def nothing_fake(x):
    return torch.empty_like(x)


from torch._inductor.lowering import register_lowering  # noqa: E402


@register_lowering(torch.ops.markers.nothing.default, type_promotion_kind=None)
def lower(x):
    raise AssertionError("no such tile")


try:
    unlowered(torch.ones(8))
except Exception as error:
    print(type(error).__name__)
