"""Hints for numbers that the graph computes, and for loops, followed by hand."""

from __future__ import annotations

from advice_followed.table import Followed

ENTRIES = (
    Followed(
        "size_stated",
        "data-dependent-guard",
        "`torch._check(token.numel() != 0)`",
        """
        torch._dynamo.config.capture_dynamic_output_shape_ops = True

        def f(x):
            (token,) = torch.where(x > 0)
            for _ in range(2):
                if token.numel() == 0:
                    continue
                x = x + token.sum()
            return x
        """,
        """
        torch._dynamo.config.capture_dynamic_output_shape_ops = True

        def f(x):
            (token,) = torch.where(x > 0)
            for _ in range(2):
                torch._check(token.numel() != 0)
                if token.numel() == 0:
                    continue
                x = x + token.sum()
            return x
        """,
    ),
    Followed(
        "truth_of_a_size_stated",
        "data-dependent-guard",
        "`torch._check(token.numel() > 0)`",
        """
        torch._dynamo.config.capture_dynamic_output_shape_ops = True

        def f(x):
            (token,) = torch.where(x > 0)
            y = [token.sum() if token.numel() else x]
            return x + y[0]
        """,
        """
        torch._dynamo.config.capture_dynamic_output_shape_ops = True

        def f(x):
            (token,) = torch.where(x > 0)
            torch._check(token.numel() > 0)
            y = [token.sum() if token.numel() else x]
            return x + y[0]
        """,
    ),
    Followed(
        "number_stated",
        "data-dependent-guard",
        "`torch._check(n * 8 >= 24)`",
        """
        torch._dynamo.config.capture_scalar_outputs = True

        def f(x):
            n = x.sum().int().item()
            return x * 2 if not n * 8 < 24 else x + 1
        """,
        """
        torch._dynamo.config.capture_scalar_outputs = True

        def f(x):
            n = x.sum().int().item()
            torch._check(n * 8 >= 24)
            return x * 2 if not n * 8 < 24 else x + 1
        """,
    ),
    Followed(
        "without_item",
        "data-dependent-guard",
        "Remove the `.item()` in line 8",
        """
        torch._dynamo.config.capture_scalar_outputs = True


        def f(x):
            n = x.sum().item()
            return x * 2 if not n * 8 < 24 else x + 1
        """,
        """
        torch._dynamo.config.capture_scalar_outputs = True


        def f(x):
            n = x.sum()
            return torch.where(n * 8 < 24, x + 1, x * 2)
        """,
    ),
    Followed(
        "size_known_in_a_second_function",
        "data-dependent-guard",
        "Make two functions of it",
        """
        torch._dynamo.config.capture_dynamic_output_shape_ops = True

        def f(x):
            y = x[x > 0]
            return torch.nn.functional.max_pool1d(y[None], 2)
        """,
        """
        def f(y):
            return torch.nn.functional.max_pool1d(y[None], 2)
        """,
        args="torch.tensor([1.0, 0.0, 1.0, 2.0]),",
        followed_args="torch.tensor([1.0, 1.0, 2.0]),",
    ),
    Followed(
        "number_known_in_a_second_function",
        "data-dependent-guard",
        "Make two functions of it",
        """
        torch._dynamo.config.capture_scalar_outputs = True

        def f(x):
            n = x.sum().int().item()
            return x * {3: 1, 4: 5}[n]
        """,
        """
        def f(x, n):
            return x * {3: 1, 4: 5}[n]
        """,
        followed_args="torch.ones(4), torch.ones(4).sum().int().item(),",
    ),
    Followed(
        "loop_over_a_number",
        "data-dependent-guard",
        "while_loop(lambda x: condition(x), lambda x: (step(x),), (x,))",
        """
        torch._dynamo.config.capture_scalar_outputs = True

        def f(x):
            n = x.sum().item()
            while n > 1:
                n = n / 2
            return x + n
        """,
        """
        from torch._higher_order_ops import while_loop

        def f(x):
            n = x.sum()
            (n,) = while_loop(lambda n: n > 1, lambda n: (n / 2,), (n,))
            return x + n
        """,
    ),
    Followed(
        "loop_with_an_effect",
        "GB0170",
        "while_loop(lambda x: condition(x), lambda x: (step(x),), (x,))",
        """
        log = []

        def f(x):
            while x.sum() > 1:
                x = x / 2
                log.append(1)
            return x
        """,
        """
        from torch._higher_order_ops import while_loop

        def f(x):
            (x,) = while_loop(lambda x: x.sum() > 1, lambda x: (x / 2,), (x,))
            return x
        """,
    ),
    Followed(
        "range_passed_in",
        "GB0124",
        "k = int(n)\n    result = f(n, k)",
        """
        def f(n):
            k = int(n)
            y = torch.ones(4)
            for i in range(k):
                y = y + i
            return y
        """,
        """
        def f(n, k):
            y = torch.ones(4)
            for i in range(k):
                y = y + i
            return y
        """,
        args="torch.tensor(3),",
        followed_args="torch.tensor(3), int(torch.tensor(3)),",
    ),
)
