"""Cases of breaks: calls."""

from __future__ import annotations

from advice_cases.table import case

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
    "disabled_operator",
    "GB0098",
    """
    sin = torch.compiler.disable(torch.ops.aten.sin)


    def f(x):
        return sin(x) * 2
    """,
    proven=0,
)
case(
    "sequences_of_two_types",
    "GB3934",
    """
    DATA = bytearray(b"tail")


    def f(x):
        return x * len(b"head" + DATA)
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
    proven=0,
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
    proven=0,
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
