"""What a fix does, of those fixes that more than one part of irscope makes or asks for."""

from __future__ import annotations

import enum


class FixMethod(enum.Enum):
    """What a fix does.  Fixes of one finding with the same method are forms of one fix."""

    CHOOSE_BY_VALUE = "choose-by-value"
    CLONE_TENSORS = "clone-tensors"
    COMPUTE_ONCE = "compute-once"
    DRAW_FROM_TORCH = "draw-from-torch"
    DYNAMIC_SIZES = "dynamic-sizes"
    LEAVE_OUT = "leave-out"
    FUNCTION_TO_PYTHON = "function-to-python"
    HELPER_TO_PYTHON = "helper-to-python"
    LIBRARY_TO_PYTHON = "library-to-python"

    @property
    def title(self) -> str:
        """What the fix is called."""
        return _TITLES[self]

    @property
    def repairs(self) -> bool:
        """Whether it repairs what broke; else what broke is left out of compiled code: the finding is gone, and no graph
        grows."""
        return self not in _TO_PYTHON


_TITLES = {
    FixMethod.CHOOSE_BY_VALUE: "Compute both sides and choose by value",
    FixMethod.CLONE_TENSORS: "Clone its tensors",
    FixMethod.COMPUTE_ONCE: "Compute it once, outside of the compiled code",
    FixMethod.DRAW_FROM_TORCH: "Draw it in the graph, from torch's generator",
    FixMethod.DYNAMIC_SIZES: "Compile with `dynamic=True`",
    FixMethod.LEAVE_OUT: "Leave it out while compiling",
    FixMethod.FUNCTION_TO_PYTHON: "Leave the function to Python, and compile what it calls",
    FixMethod.HELPER_TO_PYTHON: "Leave the helper out of compiled code",
    FixMethod.LIBRARY_TO_PYTHON: "Leave functions of the library to Python, and compile what they call",
}
_TO_PYTHON = (FixMethod.FUNCTION_TO_PYTHON, FixMethod.HELPER_TO_PYTHON, FixMethod.LIBRARY_TO_PYTHON)
