"""What a call of a program may change of its module and around it, so that each call that is measured begins with the same."""

from __future__ import annotations

from typing import Any

from irscope.runner.attributes import attributes_of
from irscope.runner.kept_state import KeptState
from irscope.runner.tensors import Buffers


class CallState:
    """Attributes, buffers, globals and closures of a program, as they are now.  Parameters change in the optimizer only."""

    def __init__(self, program: Any) -> None:
        self._attributes, self._kept, self._buffers = attributes_of(program), KeptState(program), Buffers(program)

    def changed(self) -> list[str]:
        """The places that hold something else than they did: attributes of the module first."""
        attributes = self._attributes.changed() if self._attributes is not None else {}
        return [*(f"self.{place}" for place in attributes), *self._kept.changed(), *self._buffers.changed()]

    def put_back(self) -> None:
        """Gives all of it the values that it had."""
        self._kept.put_back()
        self._buffers.put_back()
        if self._attributes is not None:
            self._attributes.put_back()
