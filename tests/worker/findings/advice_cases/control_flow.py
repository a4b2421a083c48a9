"""Cases of breaks: control flow."""

from __future__ import annotations

from advice_cases.table import case

case(
    "next_of_iterator",
    "GB4347",
    """
    numbers = iter([1, 2, 3, 4, 5])


    def f(x):
        return x + next(numbers)
    """,
    proven=0,
)
case(
    "raised",
    "GB0088",
    """
    def f(x):
        if x.shape[0] > 2:
            raise ValueError("too long")
        return x + 1
    """,
    proven=0,
)
case(
    "length_of_text",
    "GB0088",
    """
    def f(x):
        return x + len(f"{x}")
    """,
    proven=0,
)
case(
    "handle_of_a_tensor_hook",
    "GB0013",
    """
    def f(x):
        handle = x.register_hook(lambda grad: grad * 2)
        torch._dynamo.graph_break()
        handle.remove()
        return x * 2
    """,
    args="torch.ones(2, requires_grad=True),",
    proven=0,
)
case(
    "import_failed",
    "GB0069",
    """
    def f(x):
        from nowhere_to_be_found import thing

        return x * 2
    """,
    same=False,
)
