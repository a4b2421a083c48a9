"""What torchax needs of PyTorch in order to be imported, and what its import changes."""

from __future__ import annotations

import contextlib
import importlib
import sys
from typing import Any

from irscope.internals.hooks import replace_attribute
from irscope.internals.names import PrivateName

_PACKET = PrivateName("operators that torchax names", "torch._ops", "OpOverloadPacket", "2.9 to 2.15")
_MODULES = ("torchax", "torchax.decompositions", "torchax.ops.jaten", "torchax.ops.jtorch")


def import_torchax() -> Any:
    """The package torchax with its operators; raises ImportError if it is not installed.

    torchax 0.0.13 names 22 overloads with named dimensions, such as ``aten.prod.dim_Dimname``, which PyTorch 2.13 does
    not have any more; without this an import fails.  PyTorch's fast path of attention, which torchax turns off for the
    whole process, is put back.
    """
    packet = _PACKET.get()
    original = packet.__getattr__
    mha: Any = sys.modules["torch"].backends.mha
    is_fast = mha.get_fastpath_enabled()

    def found(self: Any, name: str) -> Any:
        try:
            return original(self, name)
        except AttributeError:
            if name.startswith("__"):
                raise
            return object()  # a key of torchax's tables that nothing is looked up by

    undo = replace_attribute(packet, "__getattr__", found)
    try:
        for name in _MODULES:
            importlib.import_module(name)
    finally:
        undo()
        with contextlib.suppress(AttributeError, RuntimeError):
            mha.set_fastpath_enabled(is_fast)
    return sys.modules["torchax"]
