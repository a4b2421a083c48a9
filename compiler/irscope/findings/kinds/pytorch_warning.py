"""PyTorch warning: what PyTorch's compilers themselves warn of, at the line that they were at."""

from __future__ import annotations

import itertools
import logging
import re
from collections.abc import Callable, Iterator

from irscope.events.listening import listen
from irscope.events.printed_frames import FRAME
from irscope.events.stack import places_now
from irscope.findings.detector import Detector
from irscope.findings.moment import Moment
from irscope.findings.places import at_expression, at_function, at_origin
from irscope.internals.compiler_warnings import warnings_hook
from irscope.internals.hooks import Hook, Undo, undo_all
from irscope.internals.tuning_hooks import stack_of_current_node
from irscope.protocol import Finding, Origin, Severity
from irscope.usercode.user_files import is_torch_file, is_user_file
from irscope.vocabulary.findings import FAST_AND_DEEP, FindingKind

KIND = FindingKind(
    id="pytorch-warning",
    label="PyTorch warning",
    short=("warning", "warnings"),
    lanes=FAST_AND_DEEP,
    severity=Severity.INFORMATION,
    order=135,
)
_DYNAMO = "torch._dynamo"
_LOGGERS = (_DYNAMO, "torch._inductor")
_OTHERS = (
    "torch._dynamo.convert_frame",
    "torch._inductor.codecache",
    "torch._dynamo.debug_utils",
    "torch._dynamo.repro",
)
"""Loggers of failures, recompile limits and caches, which are findings of their own, and of PyTorch's minifier."""
_ARTIFACT = ".__"
"""In the name of a logger that ``TORCH_LOGS`` turns on; what it says is in the trace, too."""
_OF_BREAKS = (
    "Graph break",
    "Dynamo does not know how to trace",
    "Dynamo cannot trace",
    "Encountered exception (",
    "Backend compiler exception",
)
"""How warnings begin that come with a graph break, which is the finding."""
_SENTENCE_END = re.compile(r"(?<=[.!])\s|\n\n|:\n")
_WORD = re.compile(r"([A-Za-z]\w*)[.,:;!]?")
_WORDS_OF_CODE = 5


class LogOfCompilers(logging.Handler):
    """Passes on what PyTorch's compilers log as warnings and errors: the text, and whether Dynamo is done."""

    def __init__(self, receive: Callable[[str, bool], None]) -> None:
        super().__init__(logging.WARNING)
        self._receive = receive

    def emit(self, record: logging.LogRecord) -> None:
        """Pass on the text of a record, unless it is about what other findings are about."""
        if _ARTIFACT not in record.name and not record.name.startswith(_OTHERS):
            self._receive(record.getMessage(), not record.name.startswith(_DYNAMO))

    def attach(self) -> Undo:
        """Listens to the compilers' loggers; returns what stops it."""
        return undo_all([listen(self, name) for name in _LOGGERS])


def _hook(receive: Callable[[str, bool], None]) -> Hook:
    return warnings_hook(LogOfCompilers(receive).attach, receive)


def detect(moment: Moment, text: str, after_dynamo: bool) -> Iterator[Finding]:
    """The warning, at the expression that is traced; after Dynamo at that of the node that is being lowered, else at the
    function."""
    if text.startswith(_OF_BREAKS):
        return
    facts: dict[str, object] = {
        "kind": KIND.id,
        "code": code_of(text),
        "severity": KIND.severity,
        "message": f"PyTorch warns: {first_sentence(text)}",
        "explanation": text.strip(),
    }
    if not after_dynamo:
        found = None if _is_about_pytorch(moment) else at_expression(moment, **facts)
    elif (origin := _lowered()) is not None:
        found = at_origin(moment, origin, **facts)  # type: ignore[arg-type]
    else:
        found = at_function(moment, **facts)
    if found is not None:
        yield found


def _is_about_pytorch(moment: Moment) -> bool:
    """Whether Dynamo traces PyTorch's own code, as that of an optimizer: the user can do nothing about it."""
    places = places_now(moment.error)
    return bool(places) and is_torch_file(places[-1].file)


def _lowered() -> Origin | None:
    """The user's line of the node that Inductor is at."""
    frames = [Origin(frame["file"], int(frame["line"])) for frame in FRAME.finditer(stack_of_current_node())]
    return next((frame for frame in reversed(frames) if is_user_file(frame.file)), None)


def first_sentence(text: str) -> str:
    """The first sentence of a warning, in one line."""
    return " ".join(_SENTENCE_END.split(text.strip(), maxsplit=1)[0].split())


def code_of(text: str) -> str:
    """The first words of a warning, without numbers, names and paths: the same for all warnings of one sort."""
    words = (match[1].lower() for word in text.split() if (match := _WORD.fullmatch(word)))
    return "-".join(itertools.islice(words, _WORDS_OF_CODE))


DETECTORS = (Detector("compiler-warned", detect, hook=_hook),)
