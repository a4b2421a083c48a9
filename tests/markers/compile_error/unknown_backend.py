"""Backends that nobody has registered: by ``torch.compile`` and by the older way."""
import torch

try:

    @torch.compile(backend="inductr")
     #^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ compile-error InvalidBackend
    def f(x):
        return x + 1

except Exception as error:
    print(type(error).__name__)

try:
    torch._dynamo.optimize("nonsense")
    #^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ compile-error InvalidBackend
except Exception as error:
    print(type(error).__name__)
