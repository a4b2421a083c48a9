"""Graph breaks that PyTorch asks for: of its optimizers, schedulers, gradient scalers and profilers, and of functions
that it marks with ``torch.compiler.disable``.

The user can do nothing about them, and need not.
"""

from __future__ import annotations

import re
import types
from collections.abc import Sequence

from irscope.events.break_message import BreakMessage
from irscope.events.stack import FramePlace
from irscope.fixing.advice.model import Option, Words
from irscope.usercode.source import text_of_range
from irscope.usercode.user_files import is_package_file, is_torch_file

_REQUESTS = ("GB0025", "GB4297")
_MARKED = ("GB0098", "GB0099")
_SKIPPED = ("GB0007", "GB0008", "GB0009")
_FOLDERS = ("/torch/optim/", "/torch/amp/", "/torch/cuda/amp/", "/torch/profiler/", "/torch/autograd/profiler")
"""Where PyTorch keeps functions out of graphs by rule, and not by a mark on each."""
_ADVISED = ("/torch/distributed/", "/torch/utils/checkpoint")
"""Marked functions around which the user can do something (`irscope.fixing.advice`)."""
_FILE = re.compile(r"filename: `(?P<file>[^`]+)`")
_LONGEST = 70


def is_deliberate(message: BreakMessage | None, beneath: Sequence[FramePlace], refused: types.CodeType | None) -> bool:
    """Whether PyTorch breaks the graph here on purpose.

    Args:
        beneath: The frames below the user's place, outermost first.
        refused: The function that Dynamo did not go into, if that is the break.
    """
    if message is None or any(is_package_file(place.file) for place in beneath):
        return False
    if message.code in _REQUESTS:
        return bool(beneath) and is_torch_file(beneath[-1].file)
    named = _FILE.search(message.context)
    file = refused.co_filename if refused is not None else named["file"] if named is not None else ""
    if message.code not in (*_MARKED, *_SKIPPED) or not is_torch_file(file):
        return False
    file = file.replace("\\", "/")
    if any(folder in file for folder in _FOLDERS):
        return True
    return message.code in _MARKED and not any(folder in file for folder in _ADVISED)


def words_of(place: FramePlace, whole: str) -> Words:
    """One line, and no hint.

    Args:
        whole: What runs as plain Python; empty if the graph is cut.
    """
    return words(f"PyTorch runs {shown(place)} outside of graphs on purpose, so there is nothing to fix", whole)


def words(what: str, whole: str, why: str = "", options: tuple[Option, ...] = ()) -> Words:
    """The words of a graph break, as `irscope.fixing.advice` has them."""
    effect = f"{whole} runs as plain Python" if whole else "the graph is cut here"
    return Words(f"Graph break: {what}; {effect}.", why, tuple(option.hint for option in options), options)


def shown(place: FramePlace) -> str:
    """The text of a place for a sentence, in backticks."""
    text = " ".join(text_of_range(place.file, place.range).split())
    return f"`{text if len(text) <= _LONGEST else text[: _LONGEST - 3].rstrip() + '…'}`"
