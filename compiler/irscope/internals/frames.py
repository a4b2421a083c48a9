"""The one way to look at Python's stack.

PyTorch's trace is handled on the stack of the event itself, so what the trace lacks can be read from the local
variables of PyTorch's own functions.  Their names are private, so each look is declared once as a `FrameLook`, with the
torch versions on which it was checked.  A look that does not fit leaves a *capture gap*.

`callers` walks over the stack where no name of PyTorch's is needed: to find the user's line, or whether a function of
some file is running.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

from irscope.protocol import CaptureGap
from irscope.usercode.user_files import is_user_file
from irscope.vocabulary.records import dataclass

OnGap = Callable[[CaptureGap], None]


class _Reporter:
    """Who gets the gaps of all looks.  There is one capture in a process at a time."""

    on_gap: OnGap | None = None


_MISSING = object()


def report_to(on_gap: OnGap) -> Callable[[], None]:
    """Sends the gaps of all looks to ``on_gap``; returns what undoes this.  Without a receiver gaps are dropped.

    The receiver gets the same gap again at each misfit, and should report it once.
    """
    before, _Reporter.on_gap = _Reporter.on_gap, on_gap

    def undo() -> None:
        _Reporter.on_gap = before

    return undo


def report(gap: CaptureGap) -> None:
    """Hands a gap to the capture; without one it is dropped."""
    if _Reporter.on_gap is not None:
        _Reporter.on_gap(gap)


def callers() -> Iterator[types.FrameType]:
    """The frames below the caller on the stack of this thread, innermost first."""
    return _from(sys._getframe(1).f_back)


def user_locals() -> list[dict[str, Any]]:
    """The local variables of the user's functions on the stack of this thread, innermost first."""
    return [dict(frame.f_locals) for frame in callers() if is_user_file(frame.f_code.co_filename)]


def locals_of(error: BaseException) -> Iterator[tuple[str, dict[str, Any]]]:
    """The file and the local variables of each frame that an error has left, innermost first."""
    found, traceback = [], error.__traceback__
    while traceback is not None:
        found.append(traceback.tb_frame)
        traceback = traceback.tb_next
    return ((frame.f_code.co_filename, dict(frame.f_locals)) for frame in reversed(found))


def locals_of_caller(name: str) -> Any:
    """A local variable of the function that called the caller; None if it has none of that name."""
    return next(iter(_from(sys._getframe(2)))).f_locals.get(name)


def _from(frame: types.FrameType | None) -> Iterator[types.FrameType]:
    # A generator: a list of frames in a local variable would keep them, and all of their variables, alive.
    while frame is not None:
        yield frame
        frame = frame.f_back


def is_in(code: types.CodeType, file: str) -> bool:
    """Whether code is of a file, as `is_file` has it."""
    return is_file(code.co_filename, file)


def is_file(path: str, file: str) -> bool:
    """Whether a path is that of a file, given by its end with slashes (``torch/_dynamo/guards.py``), or below a folder
    (``torch/_functorch/``)."""
    path = path.replace("\\", "/")
    return file in path if file.endswith("/") else path.endswith(file)


@dataclass(frozen=True)
class FrameLook:
    """A look at a local variable of one of PyTorch's functions while it is running.

    Args:
        what: What is not seen where the look does not fit, in the user's words; the text of the capture gap.
        function: The name of the function; empty: the innermost one of the file that has such a variable.
        file: The end of its file's path, or a folder in it, as for `is_in`.
        local: The variable, or the way from it over attributes: ``tx.f_code``; empty: the frame itself.
        fits: Whether a value is what is expected there.
        versions: The torch versions on which this was checked.
        required: Whether the function must be on the stack at each call. If it is not, that is a misfit too.
    """

    what: str
    function: str
    file: str
    local: str
    fits: Callable[[Any], bool]
    versions: str
    required: bool = True

    def find(self) -> Any:
        """The value in the innermost frame of this function; None if it does not fit, which leaves a gap."""
        for frame in callers():
            if self.is_at(frame):
                return self.read(frame)
        if self.required:
            self._misfit(f"{self._name} is not on the stack")
        return None

    def is_at(self, frame: types.FrameType) -> bool:
        """Whether a frame is one of this function."""
        code = frame.f_code
        if self.function:
            return code.co_name == self.function and is_in(code, self.file)
        return is_in(code, self.file) and self._fits(self._value(frame))

    def read(self, frame: types.FrameType) -> Any:
        """The value in a frame of this function; None if it does not fit, which leaves a gap."""
        value = self._value(frame)
        if self._fits(value):
            return value
        self._misfit(f"{self._name} has no {self.local} as expected")
        return None

    def _value(self, frame: types.FrameType) -> Any:
        if not self.local:
            return frame
        first, *path = self.local.split(".")
        value = frame.f_locals.get(first, _MISSING)
        for name in path:
            value = getattr(value, name, _MISSING)
        return value

    def _fits(self, value: Any) -> bool:
        return value is not _MISSING and self.fits(value)

    @property
    def _name(self) -> str:
        unnamed = f"a function with {self.local}" if self.local else "a function"
        return f"{self.function or unnamed} of {self.file}"

    def _misfit(self, why: str) -> None:
        report(CaptureGap(self.what, f"{why}; checked on torch {self.versions}"))
