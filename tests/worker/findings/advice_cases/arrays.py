"""Cases of breaks: arrays, storages, sparse tensors."""

from __future__ import annotations

from advice_cases.table import case

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
    proven=0,
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
    proven=0,
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
