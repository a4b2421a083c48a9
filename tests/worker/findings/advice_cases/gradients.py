"""Cases of breaks: gradients."""

from __future__ import annotations

from advice_cases.table import case

case(
    "backward_inside",
    "GB0123",
    """
    def f(x):
        w = x.detach().clone().requires_grad_()
        loss = (w * 2).sum()
        loss.backward()
        return w.grad
    """,
)
case(
    "backward_after_another_break",
    "GB0123",
    """
    def f(x):
        w = x.detach().clone().requires_grad_()
        y = w * 2
        torch._dynamo.graph_break()
        y.sum().backward()
        return w.grad
    """,
    proven=0,
)
case(
    "grad_inside",
    "GB9186",
    """
    def f(x):
        loss = (x * 2).sum()
        (g,) = torch.autograd.grad(loss, x)
        return g
    """,
    args="torch.ones(4, requires_grad=True),",
)
case(
    "requires_grad_set",
    "GB0125",
    """
    def f(x):
        x.requires_grad_()
        return (x * 2).detach()
    """,
    proven=0,
)
case(
    "made_with_grad",
    "GB0225",
    """
    def f(x):
        w = torch.ones(4, dtype=torch.float32, requires_grad=True)
        return (x * w).sum().detach()
    """,
)
case(
    "data_replaced",
    "GB0056",
    """
    def f(x):
        y = x + 1
        y.data = x * 3
        return y
    """,
)
case(
    "gradient_kept",
    "GB0108",
    """
    def f(x):
        y = x * 2
        y.retain_grad()
        return y
    """,
    args="torch.ones(4, requires_grad=True),",
    proven=0,
)
case(
    "leaf_leaks",
    "GB8985",
    """
    def f(x):
        y = x * 2
        y.requires_grad_()
        return y
    """,
    proven=0,
)
