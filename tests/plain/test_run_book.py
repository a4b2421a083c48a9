"""The book of a run, which several threads write into."""

from __future__ import annotations

import sys
import threading
from types import SimpleNamespace
from typing import Any

import pytest
from irscope.capture.programs import Program, ProgramCapture
from irscope.capture.run_book import RunBook
from irscope.protocol import CaptureGap, Compile, GapSeen, Lane, Message, RunRequest


@pytest.fixture
def told() -> list[Message]:
    return []


@pytest.fixture
def book(told: list[Message]) -> RunBook:
    return RunBook(RunRequest("r", "script.py", (), Lane.DEEP, "store.db"), told.append)


class WaitsForAThread(ProgramCapture):
    """A fake compiler: another thread does part of its work, and reports it while the compiler waits."""

    def lower(self, program: Program, args: tuple[Any, ...], kwargs: dict[str, Any], compile: Compile) -> Program:
        report = self.book.guarded(self.book.gap)
        thread = threading.Thread(target=report, args=(CaptureGap("a part", "of a thread"),), daemon=True)
        thread.start()
        thread.join(10)
        assert not thread.is_alive(), "the thread waits for the book, and the compile for the thread"
        return lambda value: value + 1


def test_threads_of_a_compiler_write_while_it_compiles(
    book: RunBook, told: list[Message], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(nn=SimpleNamespace(Module=type)))
    program = WaitsForAThread(book)._take(lambda value: value)
    assert program(1) == 2
    assert [message for message in told if isinstance(message, GapSeen)] == [
        GapSeen(CaptureGap("a part", "of a thread"))
    ]


def test_a_forked_child_does_not_wait_for_a_lock_that_nobody_releases(book: RunBook, told: list[Message]) -> None:
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with book.lock:
            held.set()
            done.wait(10)

    def as_a_child() -> None:
        book.close()
        book.gap(CaptureGap("something", "late"))
        book.guarded(book.gap)(CaptureGap("something", "late"))

    holder, child = threading.Thread(target=hold), threading.Thread(target=as_a_child, daemon=True)
    holder.start()
    held.wait(10)
    child.start()
    child.join(5)
    stuck = child.is_alive()
    done.set()
    holder.join()
    assert not stuck and told == []
