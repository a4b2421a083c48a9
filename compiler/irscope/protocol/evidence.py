"""What a run says of the numbers of a changed script, compared with those of the original (`irscope.runner.evidence`)."""

from __future__ import annotations

import enum

from irscope.vocabulary.records import dataclass


@dataclass
class OneSided:
    """A line that asked tensors whether they are true, and got the same answer each time."""

    file: str
    line: int
    answer: bool


class NotHeldBack(str, enum.Enum):
    """What the system lets code other than Python do to the outside in a trial."""

    FILES = "writing-files"
    TRUNCATION = "truncating-files"
    CONNECTIONS = "connecting"
    """Over TCP."""
    SOCKETS = "connecting-to-local-sockets"
    """Those in the file system."""
    DATAGRAMS = "sending-datagrams"
    """Over UDP."""


@dataclass
class FoundEvidence:
    """The comparison of two runs, as the second of them makes it.

    Args:
        programs, tensors, gradients: How many were compared.
        opaque: Results that are neither tensors nor plain values: only their types were compared.
        failed: Calls on other inputs that raise an error, in the original as well.
        differences: Results that differ, in words; five at most.
        file, line: Where the program of the first difference is written; an empty file if that is not known.
        types: Results that are a tensor where the original has a Python number of the same value, or the other way
            round.
        unstable: Programs that give other numbers from call to call although random numbers are the same.
        clocks: Numbers that a module keeps and that differ between two calls of the original which are otherwise the
            same, as the seconds of a clock do: they were not compared.
        zeroed: Inputs and parameters that have no gradient in the original, and one now, if only of zeros; five at
            most.
        copied: Results that are inputs or views of them in the original, and tensors of their own now; five at most.
        one_sided: Lines that decide by a tensor, and always did the same; found without compile only.
        files: The user's files that the script imported, and the first file of each package; found without compile
            only.
        not_held_back: What the run could do to the outside, if it is a trial.
        problem: Why nothing was compared.
    """

    programs: int = 0
    tensors: int = 0
    gradients: int = 0
    opaque: int = 0
    failed: int = 0
    differences: tuple[str, ...] = ()
    file: str = ""
    line: int = 0
    types: tuple[str, ...] = ()
    unstable: tuple[str, ...] = ()
    clocks: int = 0
    zeroed: tuple[str, ...] = ()
    copied: tuple[str, ...] = ()
    one_sided: tuple[OneSided, ...] = ()
    files: tuple[str, ...] = ()
    not_held_back: tuple[NotHeldBack, ...] = ()
    problem: str = ""
