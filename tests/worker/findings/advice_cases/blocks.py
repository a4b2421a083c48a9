"""Cases of breaks: with blocks."""

from __future__ import annotations

from advice_cases.table import case

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
    proven=0,
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
    proven=0,
)
