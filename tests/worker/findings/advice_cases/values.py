"""Cases of breaks: values."""

from __future__ import annotations

from advice_cases.table import case

case(
    "item_in_arithmetic",
    "GB0124",
    """
    def f(x):
        y = x.sin()
        scale = y.sum().item()
        return x * scale
    """,
    proven=2,
)
case(
    "item_returned",
    "GB0124",
    """
    def f(x):
        return x * 2, x.sum().item()
    """,
    proven=2,
    same=False,
)
case(
    "item_in_condition",
    "GB0124",
    """
    def f(x):
        if x.sum().item() > 0:
            x = x + 1
        return x
    """,
    proven=2,
)
case(
    "int_of_tensor",
    "GB0124",
    """
    def f(x):
        n = int(x.sum())
        return x * n
    """,
    proven=2,
)
case(
    "float_of_tensor_in_text",
    "GB0124",
    """
    def f(x):
        note = f"{float(x.sum()):.2f}"
        return x + 1
    """,
)
case(
    "slice_by_tensor",
    "GB0124",
    """
    def f(n):
        return torch.arange(8)[: n.item()]
    """,
    args="torch.tensor(3),",
)
case(
    "slice_bound_is_tensor",
    "GB0124",
    """
    def f(n):
        y = torch.arange(8)
        return y[:n]
    """,
    args="torch.tensor(3),",
)
case(
    "list_index_is_tensor",
    "GB0124",
    """
    def f(n):
        sizes = [1, 2, 3]
        return torch.ones(3) * sizes[n]
    """,
    args="torch.tensor(2),",
)
case(
    "map_float",
    "GB0124",
    """
    def f(x):
        values = list(map(float, x))
        return x + values[0]
    """,
    proven=2,
)
case(
    "tolist_of_floats",
    "GB0109",
    """
    def f(x):
        values = x.tolist()
        return x * values[0]
    """,
)
case(
    "tolist_of_a_scalar",
    "GB0109",
    """
    def f(x):
        x.sum().tolist()
        return x * 2
    """,
)
case(
    "tolist_of_integers",
    "GB0033",
    """
    def f(x):
        return torch.split(torch.ones(3), x.tolist())
    """,
    args="torch.tensor([1, 2]),",
)
case(
    "math_of_tensor",
    "GB0033",
    """
    import math
    import torch


    def f(x):
        return x * math.sqrt(x.sum())
    """,
)
case(
    "torch_equal",
    "GB0033",
    """
    def f(x):
        if torch.equal(x, x + 1):
            x = x * 2
        else:
            x = x * 3
        return x
    """,
    proven=2,
)
case(
    "allclose_as_value",
    "GB0033",
    """
    def f(x):
        same = torch.allclose(x, x.sin().asin(), atol=1e-3)
        return x + 1
    """,
)
case(
    "numpy_item",
    "GB0033",
    """
    def f(x):
        return x * x.numpy().max().item()
    """,
)
case(
    "percent_format",
    "GB0033",
    """
    def f(x):
        text = "sum %.2f" % x.sum()
        return x + 1, text
    """,
)
case(
    "sorted_tensors",
    "GB0207",
    """
    def f(x):
        low, high = sorted([x.sum(), x.mean()])
        return x * low + high
    """,
)
case(
    "list_sort_of_tensors",
    "GB0207",
    """
    def f(x):
        values = [x.sum(), x.mean()]
        values.sort(reverse=True)
        return x * values[0]
    """,
)
case(
    "max_with_key",
    "GB0193",
    """
    def f(x):
        return x * max(x.sum(), x.mean(), key=lambda v: v)
    """,
)
case(
    "round_of_tensor",
    "GB6270",
    """
    import torch


    def f(x):
        try:
            y = round(x.sum())
        except TypeError:
            y = torch.round(x.sum())
        return x * y
    """,
    proven=1,
)
