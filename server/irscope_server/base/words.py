"""Words for people: titles of stages, numbers with their nouns, escaping for Markdown."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from typing import TypeGuard

from irscope.pipelines.registry import stage_kind
from irscope.protocol import StageRef
from irscope.vocabulary.stages import KERNELS
from irscope.vocabulary.units import duration
from irscope.vocabulary.visible import visible

_MARKUP = re.compile(r"[\\`*\[\]<>&|~$]|(?<![^\W_])_|_(?![^\W_])|:(?=//)|(?<=\bwww)\.|^[#+\-=]")
_CODE = re.compile(r"(?<!`)`([^`]+)`(?!`)")
_BELOW_KERNEL = re.compile(rf"^.+?/{KERNELS}[^/]*/(?P<kernel>[^/]+)/[^/]+(?:/(?P<rest>.+))?$")
_LENS_LETTERS = 60
_ORDINALS = ("first", "second", "third")
_NUMBERED = re.compile(r"^(\d+)([.)])")


def stage_title_of_name(name: str) -> str:
    """The title of a stage for people, from the name of its kind."""
    return stage_kind(name).title


def short_stage_title(name: str) -> str:
    """A shorter `stage_title_of_name`, for places with little room."""
    return stage_kind(name).short_title


def stage_title(stage: StageRef) -> str:
    """``Post-grad graph (backward)``: the stage's title, and what tells it from others of its name in one compile."""
    title = stage_title_of_name(stage.name)
    if below := _BELOW_KERNEL.match(stage.id):
        return f"{title} of {below['kernel']}" + (f" after {below['rest']}" if below["rest"] else "")
    last = stage.id.rpartition("/")[2]
    if last == stage.name:
        return title
    if attempt := re.fullmatch(r"attempt-(\d+)", last):
        number = int(attempt[1])
        return f"{title}, " + (f"{_ORDINALS[number]} attempt" if number < len(_ORDINALS) else f"attempt {number + 1}")
    more = last.removeprefix(stage.name).strip("-").replace("-", " ") if last.startswith(stage.name) else last
    return f"{title} ({more})" if last.startswith(stage.name) else f"{title} {more}"


def made_title(stage: str) -> str:
    """The title of a stage below a kernel by its id alone."""
    name = stage.split("/")[4]
    return stage_title(StageRef(stage, name, "", 0))


def known_duration(seconds: float) -> str:
    """A time span; empty for less than half a millisecond, which is what runs without times have."""
    return duration(seconds) if seconds >= 0.0005 else ""


def markdown(text: str) -> str:
    """Text of unknown origin as Markdown: what is between backticks as code, and no other markup.

    No line of it ends the paragraph.
    """
    parts = _CODE.split(one_line(text))
    return "".join(code_span(part) if number % 2 else _escaped(part) for number, part in enumerate(parts))


def markdown_blocks(text: str) -> str:
    """Like `markdown`, but with its paragraphs kept, one in each line; lines that are indented by four are a block of
    Python.

    Blank lines inside a block belong to it.
    """
    blocks: list[str] = []
    code: list[str] = []
    for line in [*text.split("\n"), "."]:
        if line.startswith("    ") or (code and not line.strip()):
            code.append(line.rstrip())
            continue
        if code:
            blocks.append(_fenced(textwrap.dedent("\n".join(code)).strip("\n")))
            code = []
        if line.strip():
            blocks.append(markdown(line))
    return "\n\n".join(blocks[:-1])


def _fenced(code: str) -> str:
    code = visible(code)
    longest = max((len(run) for run in re.findall("`+", code)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}python\n{code}\n{fence}"


def one_line(text: str) -> str:
    """Text of unknown origin in one line, as it can be seen."""
    return visible(" ".join(text.split()))


def is_web_link(link: str | None) -> TypeGuard[str]:
    """Whether a link may be offered for a click: a store may hold one that is a command or a script."""
    return link is not None and link.startswith(("https://", "http://"))


def list_item(text: str) -> str:
    """Markdown of several blocks as one item of a list."""
    first, *rest = text.split("\n")
    return "\n".join([f"- {first}", *(f"  {line}" if line else "" for line in rest)])


def _escaped(text: str) -> str:
    return _NUMBERED.sub(r"\1\\\2", _MARKUP.sub(lambda match: "\\" + match[0], text))


def code_span(text: str) -> str:
    """Text of unknown origin as inline code, whatever backticks it holds."""
    text = one_line(text)
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if text[:1] == "`" or text[-1:] == "`" else ""
    return f"{fence}{pad}{text}{pad}{fence}" if text else ""


def of_lens(parts: Sequence[str], *last: str, separator: str = " · ") -> str:
    """The parts of a lens in one line of at most 60 letters, the last ones left out where they do not fit.

    Args:
        last: What always comes after them.
    """
    shown = list(parts)
    tail = "".join(f" · {part}" for part in last)
    while len(shown) > 1 and len(separator.join(shown)) + len(tail) > _LENS_LETTERS:
        shown.pop()
    line = one_line(separator.join(shown))
    room = _LENS_LETTERS - len(tail)
    return (line if len(line) <= room else line[: room - 1].rstrip() + "…") + tail
