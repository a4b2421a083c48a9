"""One call of a compiled graph: its inputs as they were before it, and what its graph makes of them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from irscope.internals.frames import callers
from irscope.usercode.user_files import is_user_file
from irscope.values.run.compiled import CompiledGraph
from irscope.values.run.copies import clones


class CallMoment:
    """The inputs of a call, copied before the compiled code can change or free them, and the state of the generators."""

    def __init__(
        self, compiled: CompiledGraph, inputs: Sequence[Any], given: Callable[[Sequence[Any]], list[Any]] | None = None
    ) -> None:
        torch: Any = sys.modules["torch"]
        self.compiled = compiled
        self.called_from = _user_line()
        self._inputs = clones(inputs)
        self.given = given is not None
        """Whether others took the place of the inputs (`ValuesRequest.inputs`): ``given`` puts them in."""
        if given is not None:
            self._inputs = given(self._inputs)
        self._cpu = torch.get_rng_state()
        cuda = torch.cuda
        self._cuda = cuda.get_rng_state_all() if cuda.is_available() and cuda.is_initialized() else []

    def inputs(self) -> list[Any]:
        """Fresh copies, with the generators as they were: what runs on them may change them."""
        self.rewind()
        return clones(self._inputs)

    def rewind(self) -> None:
        """Sets the random generators to what they were at the call."""
        torch: Any = sys.modules["torch"]
        torch.set_rng_state(self._cpu)
        if self._cuda:
            torch.cuda.set_rng_state_all(self._cuda)

    def forget(self) -> None:
        """Lets the copies go."""
        self._inputs = []


def _user_line() -> tuple[str, int]:
    """The innermost line of the user's that the call of the compiled code came from; an empty file if there is none."""
    for frame in callers():
        if is_user_file(frame.f_code.co_filename):
            return frame.f_code.co_filename, frame.f_lineno
    return "", 0
