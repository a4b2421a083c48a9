"""Ids that few scripts meet: the words are there, and what can be applied is proven."""

from __future__ import annotations

from advice_cases.table import case

case("repr_of_a_tensor", "GB0569", """
    def f(x):
        text = repr(x)
        return x + 1, text
    """, proven=0)  # fmt: skip
case("repr_in_an_f_string", "GB0569", """
    def f(x):
        return x + 1, f"{x!r}"
    """, proven=0)  # fmt: skip
case("assertion_that_fails_and_is_caught", "GB0034", """
    def checked(x):
        assert x.shape[0] == 3
        return x


    def f(x):
        try:
            return checked(x) + 1
        except AssertionError:
            return x
    """, proven=0)  # fmt: skip
case("assertion_error_without_a_text", "GB0171", """
    def f(x):
        try:
            raise AssertionError(x.shape)
        except AssertionError:
            return x + 1
    """)  # fmt: skip
case("disabled_but_not_below", "GB0099", """
    @torch.compiler.disable(recursive=False)
    def helper(x):
        return x + 1


    def f(x):
        return helper(x) * 2
    """)  # fmt: skip
case("array_of_strings", "GB0185", """
    import numpy as np
    import torch

    NAMES = np.array(["a", "b"])


    def f(x):
        return x + NAMES.shape[0]
    """)  # fmt: skip
case("sparse_rows", "GB0374", """
    def f(x):
        rows = torch.sparse_csr_tensor(torch.tensor([0, 1]), torch.tensor([1]), x[:1])
        return rows.to_dense()
    """, proven=0)  # fmt: skip
case("set_to_a_part_of_a_storage", "GB0128", """
    def f(x):
        y = torch.zeros(2)
        y.set_(x, 0, (2,), (1,))
        return y + 1
    """)  # fmt: skip
case("profiler_returned", "GB0212", """
    def f(x):
        profiler = torch.profiler.profile()
        return x + 1, profiler
    """, proven=0)  # fmt: skip
case("requires_grad_of_a_new_tensor", "GB0206", """
    def f(x):
        y = x * 2
        y.requires_grad = True
        return y
    """, proven=0)  # fmt: skip
SCALE = """
    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            x.add_(1)
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2


    def f(x):
        return Scale.apply(x * 1)
    """
case("dirty_and_not_returned", "GB2464", SCALE, args="torch.ones(2, requires_grad=True),", proven=0)
case("dirty_outside_of_apply", "GB2019", SCALE, proven=0)
case("context_that_cannot_be_carried", "GB0092", SCALE, proven=0)
case("gradient_function", "GB0104", """
    def f(x):
        return x + 1 if x.grad_fn is None else x - 1
    """, args="torch.ones(2, requires_grad=True) * 2,", proven=0)  # fmt: skip
case("break_inside_of_a_transform", "GB0149", """
    def f(x):
        return torch.func.grad(lambda a: a.sum().item() * a.sum())(x)
    """, proven=0, reported="GB0124")  # fmt: skip
case("side_effect_below_checkpoint", "GB0067", """
    import torch
    from torch.utils.checkpoint import checkpoint


    def f(x):
        seen = []

        def block(a):
            seen.append(a.sum())
            return a.sin()

        return checkpoint(block, x, use_reentrant=False), seen
    """, args="torch.ones(2, requires_grad=True),", proven=1)  # fmt: skip
case("side_effect_below_another_operator", "GB0067", """
    import torch
    from torch._higher_order_ops.wrap import wrap


    def f(x):
        seen = []

        def block(a):
            seen.append(a.sum())
            return a.sin()

        return wrap(block, x), seen
    """, proven=0)  # fmt: skip
case("subclass_that_declines", "GB0000", """
    class Unit(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            if func is torch.add:
                return NotImplemented
            return super().__torch_function__(func, types, args, kwargs or {})


    def f(x):
        try:
            return torch.add(x, 1)
        except TypeError:
            return x
    """, args="torch.ones(2).as_subclass(Unit),", proven=0)  # fmt: skip
case("subclass_with_an_attribute_of_its_own", "GB0164", """
    class Unit(torch.Tensor):
        T = 5


    def f(x):
        return x * x.T
    """, args="torch.ones(2).as_subclass(Unit),", proven=0)  # fmt: skip
case("base_of_a_subclass", "GB0163", """
    class Unit(torch.Tensor):
        pass


    def f(x):
        return x * 2 if x._base is None else x
    """, args="torch.ones(2).as_subclass(Unit),", proven=0)  # fmt: skip
case("list_of_torchscript", "GB0811", """
    import torch

    SIZES = torch.jit.script([1, 2])


    def f(x):
        for size in SIZES:
            x = x + size
        return x
    """, proven=1)  # fmt: skip
