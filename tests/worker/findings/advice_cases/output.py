"""Cases of breaks: output."""

from __future__ import annotations

from advice_cases.table import case

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
    proven=0,
)
