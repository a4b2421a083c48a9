"""Cases of breaks: branches."""

from __future__ import annotations

from advice_cases.table import case

case(
    "if_assigns",
    "GB0170",
    """
    def f(x):
        if x.sum() > 0:
            x = x + 1
        return x
    """,
    proven=2,
)
case(
    "if_else_assigns_two",
    "GB0170",
    """
    def f(x):
        y = x * 3
        if x.sum() > 100:
            x = x + 1
            y = y - 1
        else:
            y = y * 2
        return x, y
    """,
)
case(
    "if_returns",
    "GB0170",
    """
    def f(x):
        if x.mean() > 0:
            return x + 1
        return x
    """,
    proven=2,
)
case(
    "if_returns_early",
    "GB0170",
    """
    def f(x):
        y = x * 2
        if y.sum() > 0:
            return y
        y = y + 1
        z = y.sin()
        return z
    """,
    proven=2,
)
case(
    "if_returns_before_a_loop",
    "GB0170",
    """
    def f(x):
        y = x * 2
        if y.sum() > 0:
            return y
        for _ in range(2):
            y = y + 1
        return y.sin()
    """,
)
case(
    "conditional_expression",
    "GB0170",
    """
    def f(x):
        y = x.sin()
        return y if y.mean() > 0 else -y
    """,
    proven=2,
)
case(
    "two_conditions",
    "GB0170",
    """
    def f(x):
        if x.sum() > 0 and not x.isnan().any():
            x = x * 2
        return x
    """,
    proven=2,
)
case(
    "and_as_value",
    "GB0170",
    """
    def f(x):
        fine = x.any() and x.all()
        return torch.where(fine, x, x + 1)
    """,
)
case(
    "all_of_generator",
    "GB0170",
    """
    def f(x):
        if all(v > 0 for v in x):
            x = x + 1
        return x
    """,
    proven=2,
)
case(
    "in_list",
    "GB0170",
    """
    def f(x):
        if x.sum() in [4, 5]:
            return x
        return x + 1
    """,
    proven=2,
)
case(
    "elif",
    "GB0170",
    """
    def f(x, flag=False):
        if flag:
            x = x - 1
        elif x.sum() > 3:
            x = x + 1
        return x
    """,
    proven=2,
)
case(
    "flag_and_condition",
    "GB0170",
    """
    def f(x, flag=True):
        if flag and x.isnan().any():
            x = torch.nan_to_num(x)
        return x
    """,
)
case(
    "flag_and_raise",
    "GB0170",
    """
    class M(torch.nn.Module):
        def forward(self, x):
            if self.training and torch.isnan(x).any():
                raise ValueError("not a number")
            return x + 1


    f = M()
    """,
)
case(
    "two_on_one_line",
    "GB0059",
    """
    def f(x):
        y = x + 1; print("here"); return y
    """,
    proven=2,
)
case(
    "while_loop",
    "GB0170",
    """
    def f(x):
        while x.sum() < 10:
            x = x + 1
        return x
    """,
)
case(
    "raise_by_value",
    "GB0170",
    """
    def f(x):
        y = x + 1
        if torch.isnan(y).any():
            raise ValueError(f"{y} is not finite")
        return y * 2
    """,
)
case(
    "assert_with_value_in_text",
    "GB0170",
    """
    def f(x):
        assert x.sum() > 0, f"negative: {x.sum()}"
        return x + 1
    """,
)
case(
    "assert_not",
    "GB0170",
    """
    def f(x):
        assert not torch.isnan(x).any(), "not a number"
        return x + 1
    """,
)
case(
    "branch_in_method_with_unicode",
    "GB0170",
    """
    class Modul(torch.nn.Module):
        def forward(self, größe):
            if größe.sum() > 0: größe = größe + 1  # ä
            return größe


    f = Modul()
    """,
    proven=2,
)
