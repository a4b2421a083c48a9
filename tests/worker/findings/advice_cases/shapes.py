"""Cases of breaks: shapes."""

from __future__ import annotations

from advice_cases.table import case

case(
    "nonzero",
    "GB0036",
    """
    def f(x):
        return x.nonzero()
    """,
)
case(
    "where_one_argument",
    "GB0036",
    """
    def f(x):
        (i,) = torch.where(x > 0)
        return i
    """,
)
case(
    "masked_sum",
    "GB0036",
    """
    def f(x):
        return x[x > 0].sum() + 1
    """,
    proven=2,
)
case(
    "masked_mean",
    "GB0036",
    """
    def f(x):
        return x[x > 0].mean() * 2
    """,
    proven=2,
)
case(
    "mask",
    "GB0036",
    """
    def f(x):
        kept = x[x > 0]
        return kept * 2
    """,
)
case(
    "unique",
    "GB0036",
    """
    def f(x):
        return torch.unique(x)
    """,
)
case(
    "repeat_interleave",
    "GB0036",
    """
    def f(x):
        return torch.repeat_interleave(x, x)
    """,
    args="torch.tensor([1, 2]),",
)
case(
    "one_hot",
    "GB0246",
    """
    def f(x):
        return torch.nn.functional.one_hot(x)
    """,
    args="torch.tensor([1, 2]),",
    proven=0,
)
