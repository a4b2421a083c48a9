"""Cases of what is outside of the graph: the environment, files, iterators, generators, marks, hooks."""

from __future__ import annotations

from advice_cases.table import case

# --- the environment --------------------------------------------------------------------------------------------------

case(
    "environment_set",
    "GB0007",
    """
    import os


    def f(x):
        os.environ["IRSCOPE_CASE"] = "1"
        return x + 1
    """,
    proven=0,
)
case(
    "environment_entry_deleted",
    "GB0007",
    """
    import os

    os.environ["IRSCOPE_CASE"] = "1"


    def f(x):
        del os.environ["IRSCOPE_CASE"]
        return x + 1
    """,
    proven=0,
)
case(
    "environment_updated",
    "GB0007",
    """
    import os


    def f(x):
        os.environ.update(IRSCOPE_CASE="1")
        return x + 1
    """,
    proven=0,
)
case(
    "environment_popped",
    "GB0007",
    """
    import os

    os.environ["IRSCOPE_CASE"] = "1"


    def f(x):
        os.environ.pop("IRSCOPE_CASE", None)
        return x + 1
    """,
    proven=0,
)

# --- files and iterators ----------------------------------------------------------------------------------------------

case(
    "file_read_in_a_block",
    "GB0059",
    """
    def f(x):
        with open(__file__) as file:
            text = file.read()
        return x + len(text[:3])
    """,
)
case(
    "file_read_at_once",
    "GB0059",
    """
    def f(x):
        text = open(__file__).read()
        return x + len(text[:3])
    """,
)
case(
    "file_written",
    "GB0059",
    """
    import os


    def f(x):
        with open(os.devnull, "w") as file:
            file.write("text")
        return x + 1
    """,
    proven=0,
)
case(
    "iterator_of_a_module",
    "GB0007",
    """
    import re


    def f(x):
        count = 0
        for match in re.finditer("a", "banana"):
            count += 1
        return x + count
    """,
)
case(
    "loop_over_a_loader",
    "GB0008",
    """
    loader = torch.utils.data.DataLoader(torch.arange(8.0).view(2, 4))


    def f(x):
        for batch in loader:
            x = x + batch
        return x
    """,
)
case(
    "next_of_a_loader",
    "GB0008",
    """
    batches = iter(torch.utils.data.DataLoader(torch.arange(8.0).view(2, 4)))


    def f(x):
        return x + next(batches)
    """,
    proven=0,
)

# --- random numbers that are not torch's ------------------------------------------------------------------------------

case(
    "numpy_normal_number",
    "GB0033",
    """
    import numpy as np


    def f(x):
        noise = np.random.randn()
        return x + noise
    """,
    same=False,
)
case(
    "numpy_uniform_number",
    "GB0033",
    """
    import numpy as np


    def f(x):
        return x * np.random.uniform(0.5, 1.5)
    """,
    same=False,
)
case(
    "numpy_scaled_normal_number",
    "GB0033",
    """
    import numpy as np


    def f(x):
        return x * np.random.normal(1.0, 0.1)
    """,
    same=False,
)
case(
    "numpy_generator",
    "GB0156",
    """
    import numpy as np

    rng = np.random.default_rng(0)


    def f(x):
        return x + rng.normal()
    """,
    proven=0,
)

# --- marks and hooks --------------------------------------------------------------------------------------------------

case(
    "disabled_module",
    "GB0148",
    """
    layer = torch.compiler.disable(torch.nn.Linear(4, 4))


    def f(x):
        return layer(x) + 1
    """,
)
case(
    "disabled_submodule",
    "GB0148",
    """
    class M(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.compiler.disable(torch.nn.Linear(4, 4), reason="slow to trace")

        def forward(self, x):
            return self.layer(x) + 1


    f = M()
    """,
)
case(
    "function_wrapped_by_disable",
    "GB0098",
    """
    def helper(x):
        return x + 1


    slow = torch.compiler.disable(helper)


    def f(x):
        return slow(x) * 2
    """,
)
case(
    "print_in_a_hook",
    "GB0059",
    """
    layer = torch.nn.Linear(4, 4)
    layer.register_forward_hook(lambda module, args, out: print("hook", out.shape))


    def f(x):
        return layer(x) + 1
    """,
)
case(
    "print_in_a_called_function",
    "GB0059",
    """
    def show(x):
        print("sum", x.sum())
        return x * 2


    def f(x):
        return show(x) + 1
    """,
)
case(
    "bound_method_returned",
    "GB0092",
    """
    class Scale:
        def by(self, x):
            return x


    def f(x):
        return x + 1, Scale().by
    """,
    proven=0,
)
case(
    "attribute_of_a_function",
    "GB0467",
    """
    def helper(x):
        return x


    def f(x):
        helper.calls = 1
        return x + 1
    """,
    proven=0,
)
case(
    "checkpoint_with_a_global",
    "GB0067",
    """
    from torch.utils.checkpoint import checkpoint

    log = []


    def body(x):
        log.append(1)
        return x.sin() * 2


    def f(x):
        return checkpoint(body, x, use_reentrant=False), len(log)
    """,
    args="torch.ones(4, requires_grad=True),",
)
case(
    "checkpoint_that_counts_in_the_module",
    "GB4413",
    """
    from torch.utils.checkpoint import checkpoint


    class M(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.calls = 0

        def body(self, x):
            self.calls = self.calls + 1
            return x.sin() * 2

        def forward(self, x):
            return checkpoint(self.body, x, use_reentrant=False), self.calls


    f = M()
    """,
    args="torch.ones(4, requires_grad=True),",
)
case(
    "values_of_a_sparse_tensor",
    "GB0277",
    """
    def f(x):
        return x.to_sparse().coalesce().values() + 1
    """,
    proven=0,
)
case(
    "sparse_tensor_taken_apart_later",
    "GB0277",
    """
    def f(x):
        s = x.to_sparse()
        return s.values() + 1
    """,
    proven=0,
)
case(
    "address_in_a_decision",
    "GB0088",
    """
    def f(x):
        if x.data_ptr() % 2 == 0:
            x = x + 1
        return x
    """,
    proven=0,
)
case(
    "argument_requires_grad",
    "GB0206",
    """
    def f(x):
        y = x + 1
        x.requires_grad = True
        return (x * y).detach()
    """,
    proven=0,
)
case(
    "argument_frozen",
    "GB0206",
    """
    def f(x):
        y = x + 1
        x.requires_grad = False
        return (x * y).detach()
    """,
    proven=0,
)
case(
    "parameter_frozen",
    "GB0206",
    """
    layer = torch.nn.Linear(4, 4)


    def f(x):
        layer.weight.requires_grad = False
        return layer(x).detach()
    """,
    proven=0,
)
