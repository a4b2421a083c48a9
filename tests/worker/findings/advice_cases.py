"""Small functions that break the graph, one each, and which of the options for them are proven by applying them."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass


@dataclass(frozen=True)
class BreakCase:
    """A file with a function ``f`` and its arguments.

    Parameters
    ----------
    code
        The id of the break that the case is about.
    source
        The file, without the last line, which makes ``ARGS``.
    proven
        How many options must apply as edits; the test applies each, by itself.
    same
        Whether the result must stay the same.
    left
        Ids of breaks that may be left in the edited file; never ``code`` itself.
    reported
        Id of the finding that takes its place, where this break only repeats another one; empty: ``code``.
    """

    name: str
    code: str
    source: str
    proven: int
    same: bool = True
    left: tuple[str, ...] = ()
    reported: str = ""


CASES: list[BreakCase] = []


def case(name: str, code: str, source: str, args: str = "torch.ones(4),", **more: object) -> None:
    text = textwrap.dedent(source).strip("\n") + f"\n\n\nARGS = ({args})\n"
    if "import torch" not in text:
        text = "import torch\n\n\n" + text
    CASES.append(BreakCase(name, code, text, **{"proven": 1, **more}))  # type: ignore[arg-type]


# --- values -----------------------------------------------------------------------------------------------------------

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

# --- branches ---------------------------------------------------------------------------------------------------------

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

# --- shapes -----------------------------------------------------------------------------------------------------------

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

# --- output -----------------------------------------------------------------------------------------------------------

case(
    "print_tensor",
    "GB0059",
    """
    def f(x):
        y = x + 1
        print("mean", y.mean())
        return y * 2
    """,
    proven=2,
)
case(
    "print_in_loop",
    "GB0059",
    """
    def f(x):
        for i in range(3):
            x = x + i
            print("step", i)
        return x
    """,
    proven=2,
)
case(
    "print_shape",
    "GB0059",
    """
    def f(x):
        print("shape", x.shape,
              flush=True)
        return x * 2
    """,
)
case(
    "logger",
    "GB0291",
    """
    import logging
    import torch

    logger = logging.getLogger("advice")


    def f(x):
        logger.info("shape %s", x.shape)
        return x * 2
    """,
    proven=2,
)
case(
    "logger_of_object",
    "GB0291",
    """
    import logging as log
    import torch


    class M(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.log = log.getLogger("advice")

        def forward(self, x):
            self.log.warning("shape %s", x.shape)
            return x * 2


    f = M()
    """,
    proven=2,
)
case(
    "root_logging",
    "GB4841",
    """
    import logging
    import torch


    def f(x):
        logging.info("here")
        return x * 2
    """,
    proven=2,
)
case(
    "warn",
    "GB0007",
    """
    import warnings
    import torch


    def f(x):
        warnings.warn("odd")
        return x * 2
    """,
    proven=2,
)
case(
    "reordered_with_shape",
    "GB0296",
    """
    import torch

    torch._dynamo.config.reorderable_logging_functions.add(print)


    def f(x):
        print("shape", x.shape)
        return x * 2
    """,
    proven=2,
)
case(
    "text_of_tensor",
    "GB0059",
    """
    def f(x):
        str(x)
        return x * 2
    """,
)

# --- calls ------------------------------------------------------------------------------------------------------------

case(
    "disabled",
    "GB0098",
    """
    @torch.compiler.disable
    def helper(x):
        return x + 1


    def f(x):
        return helper(x) * 2
    """,
)
case(
    "graph_break",
    "GB0025",
    """
    def f(x):
        x = x + 1
        torch._dynamo.graph_break()
        return x * 2
    """,
)
case(
    "skip_frame",
    "GB4297",
    """
    def f(x):
        x = x + 1
        torch._dynamo.skip_frame()
        return x * 2
    """,
)
case(
    "sleep",
    "GB0007",
    """
    import time
    import torch


    def f(x):
        time.sleep(0)
        return x * 2
    """,
)
case(
    "import_module",
    "GB0007",
    """
    import importlib
    import torch


    def f(x):
        m = importlib.import_module("math")
        return x * m.pi
    """,
)
case(
    "pickled",
    "GB0007",
    """
    import pickle
    import torch

    PLAN = [1, 2]


    def f(x):
        data = pickle.dumps(PLAN)
        return x * len(data)
    """,
)
case(
    "json",
    "GB0156",
    """
    import json
    import torch


    def f(x):
        return x * len(json.dumps({"a": 1}))
    """,
)
case(
    "heap",
    "GB0007",
    """
    import heapq
    import torch


    def f(x):
        heap = []
        heapq.heappush(heap, 3)
        return x * heap[0]
    """,
)
case(
    "bisect",
    "GB0007",
    """
    import bisect
    import torch

    EDGES = [1, 2, 3]


    def f(x):
        return x * bisect.bisect(EDGES, x.dim())
    """,
)
case(
    "path_exists",
    "GB0007",
    """
    import os
    import torch


    def f(x):
        found = os.path.exists("/")
        return x * int(found)
    """,
)
case(
    "number_of_threads",
    "GB0007",
    """
    def f(x):
        torch.set_num_threads(1)
        return x * 2
    """,
)
case(
    "collect_garbage",
    "GB0007",
    """
    import gc
    import torch


    def f(x):
        gc.collect()
        return x * 2
    """,
)
case(
    "manual_seed",
    "GB0007",
    """
    def f(x):
        torch.manual_seed(0)
        return x + torch.rand(4)
    """,
    proven=0,
)
case(
    "gauss",
    "GB0007",
    """
    import random
    import torch


    def f(x):
        return x * random.gauss(0, 1)
    """,
    same=False,
)
case(
    "random",
    "GB0007",
    """
    import random
    import torch


    def f(x):
        return x * random.random()
    """,
    proven=2,
    same=False,
)
case(
    "random_branch",
    "GB0007",
    """
    import random
    import torch


    def f(x):
        p = random.random()
        return x * 2 if p > 0.5 else x
    """,
    proven=0,
    same=False,
)
case(
    "lock_acquired",
    "GB0156",
    """
    import threading
    import torch

    lock = threading.Lock()


    def f(x):
        lock.acquire()
        lock.release()
        return x * 2
    """,
    proven=0,
)
case(
    "rotated",
    "GB0156",
    """
    from collections import deque
    import torch


    def f(x):
        ring = deque([1, 2, 3])
        ring.rotate(1)
        return x * ring[0]
    """,
)
case(
    "written_to_stdout",
    "GB0156",
    """
    import sys
    import torch


    def f(x):
        sys.stdout.write("here\\n")
        return x * 2
    """,
)
case(
    "decimal",
    "GB0147",
    """
    import decimal
    import torch


    def f(x):
        step = decimal.Decimal("1.5")
        return x * 2
    """,
)
case(
    "evaluated",
    "GB0059",
    """
    def f(x):
        return eval("x + 1") * 2
    """,
)
case(
    "namespace",
    "GB0059",
    """
    import math
    import torch


    def f(x):
        return x * globals()["math"].pi
    """,
)
case(
    "bytes",
    "GB0059",
    """
    def f(x):
        return x * len(bytes([1, 2]))
    """,
)
case(
    "range_of_tensor",
    "GB0059",
    """
    def f(n):
        y = torch.ones(3)
        for i in range(n):
            y = y + 1
        return y
    """,
    args="torch.tensor(3),",
    proven=0,
)

# --- arrays, storages, sparse tensors ---------------------------------------------------------------------------------

case(
    "numpy_save",
    "GB0294",
    """
    import os

    import numpy as np
    import torch


    def f(x):
        np.save(os.devnull, x.numpy())
        return x * 2
    """,
)
case(
    "array_of_objects",
    "GB0087",
    """
    import numpy as np
    import torch


    def f(x):
        table = np.array([1, None])
        return x * 2
    """,
)
case(
    "array_as_objects",
    "GB0250",
    """
    def f(x):
        table = x.numpy().astype(object)
        return x + 1
    """,
    proven=0,
)
case(
    "shallow_copy",
    "GB0208",
    """
    import copy
    import torch


    def f(x):
        y = copy.copy(x)
        return y + 1
    """,
)
case(
    "storage",
    "GB0208",
    """
    def f(x):
        return x * x.storage()[0]
    """,
)
case(
    "address",
    "GB0156",
    """
    def f(x):
        x.untyped_storage().data_ptr()
        return x * 2
    """,
)
case(
    "sparse",
    "GB0277",
    """
    def f(x):
        y = x.to_sparse()
        return (y * 2).to_dense()
    """,
)
case(
    "resized",
    "GB0148",
    """
    def f(x):
        x.resize_(2)
        return x * 2
    """,
)

# --- randomness -------------------------------------------------------------------------------------------------------

case(
    "random_in_place",
    "GB0107",
    """
    def f(x):
        noise = torch.empty(4)
        noise.random_(0, 3)
        return x + noise * 0
    """,
)
case(
    "generator_made",
    "GB0363",
    """
    def f(x):
        g = torch.Generator()
        return x + 1
    """,
)
case(
    "generator_argument",
    "GB0055",
    """
    g = torch.Generator()


    def f(x):
        return x + torch.rand(4, generator=g)
    """,
    same=False,
)
case(
    "generator_seeded",
    "GB7650",
    """
    g = torch.Generator()


    def f(x):
        g.manual_seed(3)
        return x + 1
    """,
    proven=0,
)

# --- with blocks ------------------------------------------------------------------------------------------------------

case(
    "with_lock",
    "GB0142",
    """
    import threading
    import torch

    lock = threading.Lock()


    def f(x):
        with lock:
            x = x + 1
        return x
    """,
)
case(
    "with_device",
    "GB0142",
    """
    def f(x):
        with torch.device("cpu"):
            y = torch.ones(4)
            z = torch.zeros((4,), dtype=torch.float32)
        return x + y + z
    """,
)
case(
    "with_redirected",
    "GB0262",
    """
    import contextlib
    import io
    import torch

    out = io.StringIO()


    def f(x):
        with contextlib.redirect_stdout(out):
            x = x + 1
        return x
    """,
)

# --- objects ----------------------------------------------------------------------------------------------------------

case(
    "deepcopy_tensor",
    "GB4198",
    """
    import copy
    import torch


    def f(x):
        y = copy.deepcopy(x)
        y += 1
        return x, y
    """,
)
case(
    "deepcopy_list",
    "GB4198",
    """
    from copy import deepcopy
    import torch


    def f(x):
        kept = deepcopy([x, x + 1])
        return kept[1]
    """,
)
case(
    "deepcopy_module",
    "GB4198",
    """
    import copy
    import torch

    layer = torch.nn.Linear(4, 4)


    def f(x):
        twin = copy.deepcopy(layer)
        return twin(x)
    """,
)
case(
    "asdict",
    "GB4198",
    """
    import dataclasses
    import torch


    @dataclasses.dataclass
    class State:
        x: torch.Tensor
        n: int = 2


    def f(x):
        state = State(x)
        fields = dataclasses.asdict(state)
        return fields["x"] * fields["n"]
    """,
)
case(
    "class_made",
    "GB8977",
    """
    def f(x):
        class Options:
            factor = 3

        return x * Options.factor
    """,
)
case(
    "parameter_made",
    "GB0264",
    """
    def f(x):
        p = torch.nn.Parameter(torch.ones(4))
        return x * p
    """,
    proven=2,
)
case(
    "module_made",
    "GB0264",
    """
    class M(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first = torch.nn.ReLU()

        def forward(self, x):
            self.second = torch.nn.Linear(4, 4)
            return self.second(self.first(x))


    f = M()
    """,
    same=False,
)
case(
    "lstm",
    "GB0014",
    """
    layer = torch.nn.LSTM(4, 4)


    def f(x):
        return layer(x)[0]
    """,
    args="torch.ones(2, 4),",
)
case(
    "hook_registered",
    "GB0467",
    """
    layer = torch.nn.Linear(4, 4)


    def f(x):
        handle = layer.register_forward_hook(lambda *a: None)
        return layer(x)
    """,
    proven=0,
)
case(
    "super_slot",
    "GB0006",
    """
    class Counter:
        pass


    counter = Counter()


    def f(x):
        return x * (super(Counter, counter).__hash__() * 0 + 2)
    """,
)

# --- gradients --------------------------------------------------------------------------------------------------------

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

# --- control flow -----------------------------------------------------------------------------------------------------

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

# --- ids that few scripts meet: the words are there, and what can be applied is proven ----------------------------------

case("repr_of_a_tensor", "GB0569", """
    def f(x):
        text = repr(x)
        return x + 1, text
    """, proven=0)  # fmt: skip
case("repr_in_an_f_string", "GB0569", """
    def f(x):
        return x + 1, f"{x!r}"
    """, proven=0)  # fmt: skip
case("assertion_that_fails_and_is_caught", "GB0034", """
    def checked(x):
        assert x.shape[0] == 3
        return x


    def f(x):
        try:
            return checked(x) + 1
        except AssertionError:
            return x
    """, proven=0)  # fmt: skip
case("assertion_error_without_a_text", "GB0171", """
    def f(x):
        try:
            raise AssertionError(x.shape)
        except AssertionError:
            return x + 1
    """)  # fmt: skip
case("disabled_but_not_below", "GB0099", """
    @torch.compiler.disable(recursive=False)
    def helper(x):
        return x + 1


    def f(x):
        return helper(x) * 2
    """)  # fmt: skip
case("array_of_strings", "GB0185", """
    import numpy as np
    import torch

    NAMES = np.array(["a", "b"])


    def f(x):
        return x + NAMES.shape[0]
    """)  # fmt: skip
case("sparse_rows", "GB0374", """
    def f(x):
        rows = torch.sparse_csr_tensor(torch.tensor([0, 1]), torch.tensor([1]), x[:1])
        return rows.to_dense()
    """, proven=0)  # fmt: skip
case("set_to_a_part_of_a_storage", "GB0128", """
    def f(x):
        y = torch.zeros(2)
        y.set_(x, 0, (2,), (1,))
        return y + 1
    """)  # fmt: skip
case("profiler_returned", "GB0212", """
    def f(x):
        profiler = torch.profiler.profile()
        return x + 1, profiler
    """, proven=0)  # fmt: skip
case("requires_grad_of_a_new_tensor", "GB0206", """
    def f(x):
        y = x * 2
        y.requires_grad = True
        return y
    """, proven=0)  # fmt: skip
SCALE = """
    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            x.add_(1)
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2


    def f(x):
        return Scale.apply(x * 1)
    """
case("dirty_and_not_returned", "GB2464", SCALE, args="torch.ones(2, requires_grad=True),", proven=0)
case("dirty_outside_of_apply", "GB2019", SCALE, proven=0)
case("context_that_cannot_be_carried", "GB0092", SCALE, proven=0)
case("gradient_function", "GB0104", """
    def f(x):
        return x + 1 if x.grad_fn is None else x - 1
    """, args="torch.ones(2, requires_grad=True) * 2,", proven=0)  # fmt: skip
case("break_inside_of_a_transform", "GB0149", """
    def f(x):
        return torch.func.grad(lambda a: a.sum().item() * a.sum())(x)
    """, proven=0, reported="GB0124")  # fmt: skip
case("side_effect_below_checkpoint", "GB0067", """
    import torch
    from torch.utils.checkpoint import checkpoint


    def f(x):
        seen = []

        def block(a):
            seen.append(a.sum())
            return a.sin()

        return checkpoint(block, x, use_reentrant=False), seen
    """, args="torch.ones(2, requires_grad=True),", proven=0)  # fmt: skip
case("subclass_that_declines", "GB0000", """
    class Unit(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            if func is torch.add:
                return NotImplemented
            return super().__torch_function__(func, types, args, kwargs or {})


    def f(x):
        try:
            return torch.add(x, 1)
        except TypeError:
            return x
    """, args="torch.ones(2).as_subclass(Unit),", proven=0)  # fmt: skip
case("subclass_with_an_attribute_of_its_own", "GB0164", """
    class Unit(torch.Tensor):
        T = 5


    def f(x):
        return x * x.T
    """, args="torch.ones(2).as_subclass(Unit),", proven=0)  # fmt: skip
case("base_of_a_subclass", "GB0163", """
    class Unit(torch.Tensor):
        pass


    def f(x):
        return x * 2 if x._base is None else x
    """, args="torch.ones(2).as_subclass(Unit),", proven=0)  # fmt: skip
case("list_of_torchscript", "GB0811", """
    import torch

    SIZES = torch.jit.script([1, 2])


    def f(x):
        for size in SIZES:
            x = x + size
        return x
    """, proven=0)  # fmt: skip
