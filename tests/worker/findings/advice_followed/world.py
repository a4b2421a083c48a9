"""Hints for what is outside of the graph, followed by hand."""

from __future__ import annotations

from advice_followed.table import Followed

ENTRIES = (
    Followed(
        "module_made_in_compiled_code",
        "GB0264",
        "Make the `M` outside of the compiled code, and pass it in",
        """
        class M(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.scale = torch.nn.Parameter(torch.ones([]))

            def forward(self, x):
                return self.scale * x

        def f(x):
            return M()(x)
        """,
        """
        class M(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.scale = torch.nn.Parameter(torch.ones([]))

            def forward(self, x):
                return self.scale * x

        def f(x, m):
            return m(x)
        """,
        followed_args="torch.ones(4), M(),",
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
        "address_compared_in_the_caller",
        "GB5976",
        "value = x.data_ptr() == 3\n    result = f(x, value)",
        """
        def f(x):
            if x.data_ptr() == 3:
                return x + 1
            return x - 1
        """,
        """
        def f(x, value):
            if value:
                return x + 1
            return x - 1
        """,
        followed_args="torch.ones(4), False,",
    ),
    Followed(
        "bytes_of_an_array_passed_in",
        "GB0158",
        "value = array.tobytes()\n    result = f(array, value)",
        """
        def f(array):
            return torch.ones(2) * len(array.tobytes())
        """,
        """
        def f(array, value):
            return torch.ones(2) * len(value)
        """,
        args="torch.ones(4).numpy(),",
        followed_args="torch.ones(4).numpy(), torch.ones(4).numpy().tobytes(),",
    ),
    Followed(
        "sequences_of_two_types_joined_by_the_caller",
        "GB3934",
        'value = b"head" + data\n    result = f(x, data, value)',
        """
        def f(x, data):
            return x * len(b"head" + data)
        """,
        """
        def f(x, data, value):
            return x * len(value)
        """,
        args='torch.ones(4), bytearray(b"tail"),',
        followed_args='torch.ones(4), bytearray(b"tail"), b"head" + bytearray(b"tail"),',
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
