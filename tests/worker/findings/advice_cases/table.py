"""The table of small functions that break the graph, and how an entry is made."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass


@dataclass(frozen=True)
class BreakCase:
    """A file with a function ``f`` and its arguments.

    Args:
        code: The id of the break that the case is about.
        source: The file, without the last line, which makes ``ARGS``.
        proven: How many options must apply as edits; the test applies each, by itself.
        same: Whether the result must stay the same.
        left: Ids of breaks that may be left in the edited file; never ``code`` itself.
        reported: Id of the finding that takes its place, where this break only repeats another one; empty: ``code``.
    """

    name: str
    code: str
    source: str
    proven: int
    same: bool = True
    left: tuple[str, ...] = ()
    reported: str = ""


CASES: list[BreakCase] = []


def case(name: str, code: str, source: str, args: str = "torch.ones(4),", **more: object) -> None:
    text = textwrap.dedent(source).strip("\n") + f"\n\n\nARGS = ({args})\n"
    if "import torch" not in text:
        text = "import torch\n\n\n" + text
    CASES.append(BreakCase(name, code, text, **{"proven": 1, **more}))  # type: ignore[arg-type]
