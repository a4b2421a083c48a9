"""Breaks whose options no edit can apply, each with the file of somebody who did what a hint says."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Followed:
    """A break, a piece of its hints, and the file of somebody who did what they say.

    Parameters
    ----------
    hint
        What the hints of the finding must hold.
    source, args
        The file that breaks, with a function ``f``; what it is called with.
    followed, followed_args
        The file afterwards; what the caller now passes.
    """

    name: str
    code: str
    hint: str
    source: str
    followed: str
    args: str = "torch.ones(4),"
    followed_args: str = ""


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
    Followed(
        "number_drawn_in_the_caller",
        "GB0033",
        "noise = np.random.randn()\n    result = f(x, noise)\nWrap it in `torch.tensor(...)`",
        """
        import numpy as np

        np.random.seed(0)

        def f(x):
            noise = np.random.randn()
            return x + noise
        """,
        """
        import numpy as np

        def f(x, noise):
            return x + noise

        np.random.seed(0)
        """,
        followed_args="torch.ones(4), torch.tensor(np.random.randn()),",
    ),
    Followed(
        "decided_in_the_caller",
        "GB0033",
        "value = np.random.rand() < 2\n    result = f(x, value)",
        """
        import numpy as np

        def f(x):
            if np.random.rand() < 2:
                x = x + 1
            return x
        """,
        """
        import numpy as np

        def f(x, value):
            if value:
                x = x + 1
            return x
        """,
        followed_args="torch.ones(4), bool(np.random.rand() < 2),",
    ),
    Followed(
        "file_read_in_the_caller",
        "GB0059",
        "result = f(x, text)",
        """
        def f(x):
            with open(__file__) as file:
                text = file.read(3)
            return x + len(text)
        """,
        """
        def f(x, text):
            return x + len(text)

        with open(__file__) as file:
            text = file.read(3)
        """,
        followed_args="torch.ones(4), text,",
    ),
    Followed(
        "file_written_in_the_caller",
        "GB0059",
        "Do what the block does in the caller",
        """
        import os

        def f(x):
            with open(os.devnull, "w") as file:
                file.write("text")
            return x + 1
        """,
        """
        def f(x):
            return x + 1
        """,
    ),
    Followed(
        "environment_popped_in_the_caller",
        "GB0007",
        'value = os.environ.pop("IRSCOPE_CASE", "3")\n    result = f(x, value)',
        """
        import os

        os.environ["IRSCOPE_CASE"] = "3"

        def f(x):
            return x + int(os.environ.pop("IRSCOPE_CASE", "3"))
        """,
        """
        import os

        os.environ["IRSCOPE_CASE"] = "3"

        def f(x, value):
            return x + int(value)
        """,
        followed_args='torch.ones(4), os.environ.pop("IRSCOPE_CASE", "3"),',
    ),
    Followed(
        "values_of_a_sparse_tensor",
        "GB0277",
        "value = x.to_sparse().coalesce().values().clone()\n    result = f(x, value)",
        """
        def f(x):
            return x.to_sparse().coalesce().values() + 1
        """,
        """
        def f(x, value):
            return value + 1
        """,
        followed_args="torch.ones(4), torch.ones(4).to_sparse().coalesce().values().clone(),",
    ),
    Followed(
        "next_in_the_caller",
        "GB0008",
        "value = next(batches)\n    result = f(x, value)",
        """
        batches = iter(torch.utils.data.DataLoader(torch.arange(8.0).view(2, 4)))

        def f(x):
            return x + next(batches)
        """,
        """
        batches = iter(torch.utils.data.DataLoader(torch.arange(8.0).view(2, 4)))

        def f(x, value):
            return x + value
        """,
        followed_args="torch.ones(4), next(batches),",
    ),
    Followed(
        "address_asked_in_the_caller",
        "GB0088",
        "value = x.data_ptr() % 2\n    result = f(x, value)",
        """
        def f(x):
            return x + x.data_ptr() % 2
        """,
        """
        def f(x, value):
            return x + value
        """,
        followed_args="torch.ones(4), 0,",
    ),
    Followed(
        "parameter_frozen_before",
        "GB0206",
        "layer.weight.requires_grad = False\n    result = f(x)",
        """
        torch.manual_seed(0)
        layer = torch.nn.Linear(4, 4)

        def f(x):
            layer.weight.requires_grad = False
            return layer(x).detach()
        """,
        """
        torch.manual_seed(0)
        layer = torch.nn.Linear(4, 4)
        layer.weight.requires_grad = False

        def f(x):
            return layer(x).detach()
        """,
    ),
    Followed(
        "only_tensors_returned",
        "GB0092",
        "Return the tensors only, and make that object in the caller",
        """
        class Scale:
            def __repr__(self):
                return "Scale"

            def by(self, x):
                return x

        def f(x):
            return x + 1, Scale().by
        """,
        """
        class Scale:
            def __repr__(self):
                return "Scale"

            def by(self, x):
                return x

        def f(x):
            return x + 1, SCALE

        SCALE = Scale().by
        """,
    ),
    Followed(
        "stored_after_checkpoint",
        "GB0067",
        "Return the value from the function and store it after the call",
        """
        from torch.utils.checkpoint import checkpoint

        state = {}

        def body(x):
            y = x.sin()
            state["last"] = y.detach()
            return y * 2

        def f(x):
            return checkpoint(body, x, use_reentrant=False).detach()
        """,
        """
        from torch.utils.checkpoint import checkpoint

        state = {}

        def body(x):
            y = x.sin()
            return y * 2, y.detach()

        def f(x):
            y, state["last"] = checkpoint(body, x, use_reentrant=False)
            return y.detach()
        """,
    ),
)
