"""Python values as arguments: each value is a constant of the compiled code."""
import enum

import torch


class Mode(enum.Enum):
    FAST = 1
    SLOW = 2


@torch.compile
def integer(x, n):
#              ^ recompilation recompile-value
    return x.repeat(n)


@torch.compile
def real(x, scale):
#           ^^^^^ recompilation recompile-value
    return x * scale


@torch.compile
def text(x, name):
#           ^^^^ recompilation recompile-value
    return x + len(name)


@torch.compile
def flag(x, negate):
#           ^^^^^^ recompilation recompile-value
    return -x if negate else x


@torch.compile
def optional(x, bias=None):
#               ^^^^ recompilation recompile-value
    if bias is not None:
        x = x + bias
    return x * 2


@torch.compile
def choice(x, mode):
#             ^^^^ recompilation recompile-object
    return x + 1 if mode is Mode.FAST else x - 1


@torch.compile
def pair(x, sizes):
#           ^^^^^ recompilation recompile-value
    return x.reshape(sizes)


@torch.compile
def keyword_only(x, *, times=1):
#                      ^^^^^ recompilation recompile-value
    return x * times


x = torch.ones(4)
for n in (2, 3):
    integer(x, n)
for scale in (0.5, 0.25):
    real(x, scale)
for name in ("a", "bc"):
    text(x, name)
for negate in (True, False):
    flag(x, negate)
optional(x)
optional(x, x)
for mode in Mode:
    choice(x, mode)
for sizes in ((2, 2), (4, 1)):
    pair(x, sizes)
keyword_only(x)
keyword_only(x, times=5)
