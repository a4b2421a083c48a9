"""What a pipeline does in the run's process: the base class of all captures, and how the one of a pipeline is made."""

from __future__ import annotations

import importlib
import importlib.util

from irscope.capture.run_book import RunBook
from irscope.events.listening import LogHandler
from irscope.internals.hooks import Hook
from irscope.pipelines.base import Package, Pipeline


class Capture:
    """Sees what a pipeline does with the script's program and writes it into the run's book.

    A pipeline that runs after Dynamo derives from `irscope.capture.dynamo.DynamoCapture`; one that takes the
    script's program and compiles it in its own way derives from `irscope.capture.programs.ProgramCapture`.

    Args:
        book: Where all that is seen goes; it also holds the request.  What is called by PyTorch goes through
            `RunBook.guarded`.
    """

    def __init__(self, book: RunBook) -> None:
        self.book = book

    def hooks(self) -> list[Hook]:
        """What it changes in PyTorch and in other packages, undone at the end of the run."""
        return []

    def why_as_python(self, program: object) -> str:
        """Why a program that the script compiled runs as Python all the same; empty if it does not, or nobody knows."""
        return ""

    def finish(self) -> None:
        """The script has ended: wait for what was started beside it, while the book is open."""

    def handlers(self) -> list[LogHandler]:
        """The log handlers that it listens with."""
        return []


def capture_of(pipeline: Pipeline, book: RunBook) -> Capture:
    """The capture of a pipeline.  Raises ImportError or AttributeError where its code cannot be loaded."""
    module, _, name = pipeline.capture.partition(":")
    # An import of this module's, and not one of importlib's: irscope may be imported by another name here.
    found = getattr(__import__(module, fromlist=[name]), name)(book)
    if not isinstance(found, Capture):
        raise TypeError(f"{pipeline.capture} is not a Capture")
    return found


def missing(pipeline: Pipeline) -> tuple[Package, ...]:
    """The packages that a pipeline needs and that are not installed in this interpreter."""
    return tuple(package for package in pipeline.needs if not _is_installed(package.module))


def _is_installed(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:  # the package around a submodule is missing
        return False
