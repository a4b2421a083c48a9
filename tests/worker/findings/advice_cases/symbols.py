"""Cases of numbers that the graph computes: guards on them, loops over them, loops until a tensor says so."""

from __future__ import annotations

from advice_cases.table import case

case(
    "branch_on_a_captured_number",
    "data-dependent-guard",
    """
    torch._dynamo.config.capture_scalar_outputs = True


    def f(x):
        n = x.sum().int().item()
        if n * 8 < 24:
            x = x + 1
        return x
    """,
)
case(
    "empty_check_in_a_loop",
    "data-dependent-guard",
    """
    torch._dynamo.config.capture_dynamic_output_shape_ops = True


    def f(x):
        out = x.clone()
        for i in range(3):
            (token,) = torch.where(x == i)
            if token.numel() == 0:
                continue
            out.index_add_(0, token, x[token] * 2)
        return out
    """,
)
case(
    "empty_check_by_not",
    "data-dependent-guard",
    """
    torch._dynamo.config.capture_dynamic_output_shape_ops = True


    def f(x):
        out = x.clone()
        for i in range(3):
            token = (x == i).nonzero().flatten()
            if not len(token):
                continue
            out[token] = x[token] * 2
        return out
    """,
    same=False,  # it was an error
)
case(
    "work_for_elements_only",
    "data-dependent-guard",
    """
    torch._dynamo.config.capture_dynamic_output_shape_ops = True


    def f(x):
        out = x.clone()
        for i in range(3):
            (token,) = torch.where(x == i)
            if token.numel() > 0:
                chosen = x[token]
                out.index_add_(0, token, chosen * 2)
        return out
    """,
)
case(
    "early_return_by_a_size",
    "data-dependent-guard",
    """
    torch._dynamo.config.capture_dynamic_output_shape_ops = True


    def f(x):
        (token,) = torch.where(x > 0)
        if token.numel() == 0:
            return x * 2
        return x.index_add(0, token, x[token] * 2)
    """,
)
case(
    "list_indexed_by_a_captured_number",
    "data-dependent-guard",
    """
    torch._dynamo.config.capture_scalar_outputs = True


    def f(x):
        n = x.sum().int().item()
        return x + [1, 2, 3, 4, 5][n]
    """,
    same=False,  # it was an error
)
case(
    "range_of_an_item",
    "GB0124",
    """
    def f(n):
        y = torch.ones(4)
        for i in range(n.item()):
            y = y + i
        return y
    """,
    args="torch.tensor(3),",
)
case(
    "range_of_a_named_item",
    "GB0124",
    """
    def f(n):
        k = int(n)
        y = torch.ones(4)
        for i in range(1, k):
            y = y * 2 + i
        return y
    """,
    args="torch.tensor(4),",
)
case(
    "while_with_two_tensors",
    "GB0170",
    """
    def f(x):
        y = x * 2
        n = torch.zeros((), dtype=torch.long)
        while y.norm() < 100:
            y = y * 2
            n += 1
        return y, n
    """,
)
case(
    "while_that_counts_in_python",
    "GB0170",
    """
    def f(x):
        steps = 0
        while x.abs().max() > 0.5:
            x = x / 2
            steps += 1
        return x, steps
    """,
)
case(
    "while_that_keeps_the_last_value",
    "GB0170",
    """
    def f(x):
        last = x + 10
        while (x - last).norm() > 0.1:
            last = x
            x = x / 2
        return x
    """,
)
case(
    "while_with_an_effect",
    "GB0170",
    """
    log = []


    def f(x):
        while x.sum() > 1:
            x = x / 2
            log.append(1)
        return x
    """,
    proven=0,
)
