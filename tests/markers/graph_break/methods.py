"""Breaks in class methods, static methods, properties, operators and other methods that Python calls by itself."""
import dataclasses

import torch


@dataclasses.dataclass
class Scale:
    factor: float
    shift: torch.Tensor

    def apply(self, x):
        print("applied", self.factor)
        #^^^^^^^^^^^^^^^^^^^^^^^^^^^^ graph-break GB0059 ×2
        return x * self.factor + self.shift

    @property
    def size(self):
        return self.shift.abs().max().item()
        #      ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ graph-break GB0124

    @classmethod
    def of(cls, x):
        return cls(float(x.std()), x)
        #          ^^^^^^^^^^^^^^ graph-break GB0124 ×2

    @staticmethod
    def norm(x):
        return x / x.norm().item()
        #          ^^^^^^^^^^^^^^^ graph-break GB0124 ×2

    def __add__(self, other):
        torch._dynamo.graph_break()
        #^^^^^^^^^^^^^^^^^^^^^^^^^^ graph-break GB0025
        return other + self.shift

    def __call__(self, x):
        if x.any():
        #  ^^^^^^^ graph-break GB0170 ×2
            return x + 1
        return x

    def __getitem__(self, index):
        return self.shift[index].item()
        #      ^^^^^^^^^^^^^^^^^^^^^^^^ graph-break GB0124

    def __len__(self):
        print("len")
        #^^^^^^^^^^^ graph-break GB0059
        return 3


SCALE = Scale(2.0, torch.arange(4.0))


@torch.compile
def method(x):
    return SCALE.apply(x)


@torch.compile
def from_property(x):
#   ^^^^^^^^^^^^^ skipped-frame skipped-by-break
    return x * SCALE.size


@torch.compile
def from_class_method(x):
    return x * Scale.of(x).factor


@torch.compile
def from_static_method(x):
    return Scale.norm(x) + 1


@torch.compile
def from_operator(x):
#   ^^^^^^^^^^^^^ skipped-frame skipped-by-break
    return SCALE + x
    #      ^^^^^^^^^ graph-break GB0055


@torch.compile
def from_call(x):
    return SCALE(x)


@torch.compile
def from_subscript(x):
    return x + SCALE[2]


@torch.compile
def from_len(x):
    return x * len(SCALE)


for f in (method, from_property, from_class_method, from_static_method, from_operator, from_call, from_subscript, from_len):
    f(torch.arange(4.0))
