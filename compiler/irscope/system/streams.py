"""Standard output and standard error of a command: characters that they lack, and what happens when nothing can be
written."""

from __future__ import annotations

import codecs
import contextlib
import errno
import io
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from typing import TextIO

FAILED = 70
"""The exit code of a fault of irscope's own (EX_SOFTWARE of sysexits.h), which no finding has."""
UNWRITABLE = 74
"""The exit code when standard output could not be written (EX_IOERR of sysexits.h): a full disk, or it is closed."""
BROKEN_PIPE = 141
"""The exit code when the reader of a pipe has ended, as a shell has it of a program that SIGPIPE ended."""
INTERRUPTED = 130

_ERRORS = "irscope-stand-ins"
_STAND_INS = {
    "│": "|", "─": "-", "…": "...", "→": "->", "×": "x", "·": "-", "−": "-", "∞": "inf", "µ": "u", "⁶": "^6", "✗": "x",
    "░": ".", "▒": ":", "▓": "+", "█": "#", "�": "?", "–": "-", "—": "-", "‘": "'", "’": "'", "“": '"', "”": '"',
    "≤": "<=", "≥": ">=", "≠": "!=",
}  # fmt: skip
"""What irscope itself prints, in ASCII.  Everything else is written out (``\\u540d``), so that two names stay two."""


class OutputError(Exception):
    """Standard output could not be written.

    ``next_step`` says what the user can do; a command that has kept its result elsewhere says where.
    """

    def __init__(self, cause: OSError) -> None:
        super().__init__(cause.strerror or str(cause))
        self.is_pipe = cause.errno in (errno.EPIPE, errno.ECONNRESET, errno.ESHUTDOWN)
        self.next_step = "Free some space there, or write to another place."
        if cause.errno == errno.EBADF:
            self.next_step = "It is closed: write to a file, or to /dev/null."


def shown(text: str, stream: TextIO) -> str:
    """The text as the stream shows it, with a stand-in for each character that its encoding lacks."""
    if text.isascii():
        return text
    encoding = stream.encoding or "utf-8"  # a buffer in memory has none
    try:
        return text.encode(encoding, _ERRORS).decode(encoding)
    except (LookupError, ValueError):
        return text


def _stand_in(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(map(_written_out, error.object[error.start : error.end])), error.end


def _written_out(character: str) -> str:
    if "\udc80" <= character <= "\udcff":  # a byte of a file's name that is not in the encoding
        return f"\\x{ord(character) - 0xDC00:02x}"
    return _STAND_INS.get(character) or character.encode("ascii", "backslashreplace").decode()


codecs.register_error(_ERRORS, _stand_in)


def carry_out(program: str, do: Callable[[], int]) -> int:
    """Runs a command and returns its exit code, one of its own for each way in which it can fail.

    While it runs, a character that a stream lacks has a stand-in.  Afterwards nothing is left to be written, so that
    the interpreter's end cannot fail.  SystemExit of argparse (0 and 2) is raised on.
    """
    debug = bool(os.environ.get("IRSCOPE_DEBUG"))
    with _streams():
        try:
            try:
                code = do()
            except SystemExit:  # help, which is printed
                sys.stdout.flush()
                raise
            sys.stdout.flush()
            return code
        except OutputError as error:
            if error.is_pipe:
                return BROKEN_PIPE
            complain(f"{program}: Standard output cannot be written: {error}. {error.next_step}")
            return UNWRITABLE
        except KeyboardInterrupt:
            complain(f"{program}: interrupted")
            return INTERRUPTED
        except SystemExit as stop:
            if stop.code in (0, 2, None):
                raise
            _tell_of_failure(program, stop, debug)
            return FAILED
        except BaseException as error:  # noqa: BLE001 - also one that a library derives from BaseException
            _tell_of_failure(program, error, debug)
            return FAILED


def complain(sentence: str) -> None:
    """Prints a sentence on standard error."""
    print(sentence, file=sys.stderr)


def _tell_of_failure(program: str, error: BaseException, debug: bool) -> None:
    from irscope.vocabulary.visible import printable

    if debug:
        traceback.print_exception(type(error), error, error.__traceback__)
    try:
        said = printable(f"{type(error).__name__}: {error}".rstrip(": "))
    except Exception:  # noqa: BLE001 - its own text fails
        said = type(error).__name__
    hint = "" if debug else " Set IRSCOPE_DEBUG=1 to see the traceback."
    complain(f"{program}: internal error, or a damaged store: {said}.{hint}")


@contextlib.contextmanager
def _streams() -> Iterator[None]:
    """Puts streams that never fail on a character in the place of standard output and standard error."""
    _fill_descriptors()
    out, err = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = _over(out, _Output, os.O_RDONLY), _over(err, _Errors, os.O_WRONLY)
    try:
        yield
    finally:
        for ours, theirs, number in ((sys.stdout, out, 1), (sys.stderr, err, 2)):
            _settle(ours, theirs, number)
        sys.stdout, sys.stderr = out, err


def _fill_descriptors() -> None:
    """Opens the null device where a standard stream is closed: else the next file that is opened, the store or the pipe
    to a script, would get its number and what is printed."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            with contextlib.suppress(OSError):
                os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)


class _Output(io.TextIOWrapper):
    """Standard output: a failure has its own type, since a command has other files that can fail."""

    def write(self, text: str) -> int:
        try:
            return super().write(text)
        except OSError as error:
            raise OutputError(error) from error

    def flush(self) -> None:
        try:
            super().flush()
        except OSError as error:
            raise OutputError(error) from error


class _Errors(io.TextIOWrapper):
    """Standard error.  Its own failures are passed over, since no other stream could report them."""

    def write(self, text: str) -> int:
        with contextlib.suppress(OSError):
            super().write(text)
        return len(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError):
            super().flush()


def _over(stream: TextIO | None, kind: type[io.TextIOWrapper], flags: int) -> TextIO:
    """A stream over the same buffer; of a stream that is closed (None) one to the null device, opened with ``flags``.

    A closed standard output is opened for reading only: so writing fails as it would on the closed one.
    """
    if stream is None:
        raw = io.FileIO(os.open(os.devnull, flags), "w")
        return kind(io.BufferedWriter(raw), "utf-8", _ERRORS)
    buffer = getattr(stream, "buffer", None)
    if not isinstance(stream, io.TextIOWrapper) or buffer is None or isinstance(stream, (_Output, _Errors)):
        return stream  # in memory, or set up already
    stream.flush()
    lenient = stream.errors not in ("strict", "surrogateescape", "backslashreplace")  # PYTHONIOENCODING=ascii:replace
    errors = stream.errors if lenient else _ERRORS
    return kind(
        buffer, stream.encoding, errors, line_buffering=stream.line_buffering, write_through=stream.write_through
    )


def _settle(ours: TextIO, theirs: TextIO | None, number: int) -> None:
    """Writes what is left in the buffer, or drops it, and leaves the buffer to the stream that was there before."""
    if ours is theirs:
        return
    for _ in range(2):
        try:
            ours.flush()
            if theirs is not None:
                theirs.flush()
            break
        except (OSError, ValueError, OutputError):
            # The interpreter flushes at its end, too, and would print a traceback.
            with contextlib.suppress(OSError):
                null = os.open(os.devnull, os.O_WRONLY)
                os.dup2(null, theirs.fileno() if theirs is not None else ours.fileno())
                os.close(null)
    with contextlib.suppress(OSError, ValueError, OutputError):
        assert isinstance(ours, io.TextIOWrapper)
        if theirs is None:
            ours.close()
        else:
            ours.detach()
