"""Words for people: titles of stages, numbers with their nouns, escaping for Markdown."""

from __future__ import annotations

import re
import textwrap
from typing import TypeGuard

from irscope.protocol import StageRef
from irscope.visible import visible

_TITLES = {
    "bytecode": "Bytecode",
    "modified-bytecode": "Bytecode as Dynamo rewrote it",
    "symbolic-trace": "Symbolic trace",
    "dynamo-graph": "Dynamo graph",
    "pre-grad-graph": "Pre-grad graph",
    "joint-graph": "Joint graph (forward and backward)",
    "forward-graph": "Forward graph",
    "backward-graph": "Backward graph",
    "inference-graph": "Inference graph",
    "post-grad-graph": "Post-grad graph",
    "compiled-autograd-graph": "Graph of compiled autograd",
    "partition": "Partition into forward and backward",
    "ir-pre-fusion": "Inductor IR before fusion",
    "fusion": "Fusion decisions",
    "ir-post-fusion": "Inductor IR after fusion",
    "memory-plan": "Memory plan",
    "output-code": "Output code",
    "kernel": "Kernel",
    "ttir-unoptimized": "Triton IR before its passes",
    "ttir": "Triton IR",
    "ttgir": "Triton GPU IR",
    "llir": "LLVM IR",
    "ptx": "PTX",
    "amdgcn": "AMDGCN assembly",
    "sass": "SASS",
    "binary": "Binary",
    "assembly": "Assembly",
    "passes": "Passes of the Triton compiler",
    "guards": "Guards",
    "symbols": "Symbols",
    "phases": "Compile time by phase",
    "cache-key": "Key in the FX graph cache",
    "values": "Values",
    "divergence": "Divergence",
}

_MARKUP = re.compile(r"[\\`*\[\]<>&|~$]|(?<![^\W_])_|_(?![^\W_])|:(?=//)|(?<=\bwww)\.|^[#+\-=]")
_CODE = re.compile(r"(?<!`)`([^`]+)`(?!`)")
_RESUMED = re.compile(r"^torch_dynamo_resume_in_(.+)_at_(\d+)$")
_BELOW_KERNEL = re.compile(r"^.+?/kernel[^/]*/(?P<kernel>[^/]+)/[^/]+(?:/(?P<rest>.+))?$")
_NUMBERED = re.compile(r"^(\d+)([.)])")


_SHORT = {
    "joint-graph": "Joint graph",
    "compiled-autograd-graph": "Compiled autograd",
    "ir-pre-fusion": "IR before fusion",
    "ir-post-fusion": "IR after fusion",
    "ttir-unoptimized": "Triton IR, unoptimized",
}


def stage_title_of_name(name: str) -> str:
    return _TITLES.get(name, name.replace("-", " ").capitalize())


def short_stage_title(name: str) -> str:
    """As `stage_title_of_name`, for where there is little room."""
    return _SHORT.get(name, stage_title_of_name(name))


def stage_title(stage: StageRef) -> str:
    """``Post-grad graph (backward)``: the stage's title, and what tells it from others of its name in one compile."""
    title = stage_title_of_name(stage.name)
    if below := _BELOW_KERNEL.match(stage.id):
        return f"{title} of {below['kernel']}" + (f" after {below['rest']}" if below["rest"] else "")
    last = stage.id.rpartition("/")[2]
    if last == stage.name:
        return title
    if attempt := re.fullmatch(r"attempt-(\d+)", last):
        return f"{title}, attempt {attempt[1]}"
    more = last.removeprefix(stage.name).strip("-").replace("-", " ") if last.startswith(stage.name) else last
    return f"{title} ({more})" if last.startswith(stage.name) else f"{title} {more}"


def made_title(stage: str) -> str:
    """The title of a stage below a kernel by its id alone."""
    name = stage.split("/")[4]
    return stage_title(StageRef(stage, name, "", 0))


def kind_title(kind: str) -> str:
    """``Graph break`` for the kind ``graph-break``."""
    return kind.replace("-", " ").capitalize()


def function_title(name: str) -> str:
    """A code object's name; of a resume function the function and the line that it goes on from."""
    match = _RESUMED.match(name)
    return f"{match[1]}, after line {match[2]}" if match else name


def count(number: int, one: str, many: str | None = None) -> str:
    """``1 break``, ``2 graphs``."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def seconds(value: float) -> str:
    """``1.8 s``, ``60 ms``, ``2 min 5 s``; empty for less than half a millisecond."""
    if value >= 99.95:
        return f"{int(value // 60)} min {int(value % 60)} s"
    if value >= 0.095:
        return f"{value:.1f} s"
    return f"{value * 1000:.0f} ms" if value >= 0.0005 else ""


def flops(number: float) -> str:
    """``131 kFLOP``, ``2.1 GFLOP``."""
    for unit in ("", "k", "M", "G", "T"):
        if number < 999.5:
            return f"{number:.3g} {unit}FLOP"
        number /= 1000
    return f"{number:.3g} PFLOP"


def markdown(text: str) -> str:
    """Text of unknown origin as Markdown: what stands between backticks as code, and nothing else in it as markup.

    No line of it ends the paragraph.
    """
    parts = _CODE.split(one_line(text))
    return "".join(code_span(part) if number % 2 else _escaped(part) for number, part in enumerate(parts))


def markdown_blocks(text: str) -> str:
    """As `markdown`, but with its paragraphs kept, one a line; lines that are indented by four are a block of Python.

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
