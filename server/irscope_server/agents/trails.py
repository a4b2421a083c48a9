"""What a line of the user's source became, in few bytes: kernels first, then its part of each stage."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from irscope.pipelines.registry import role_of
from irscope.vocabulary.records import dataclass
from irscope.vocabulary.stages import Role
from irscope.vocabulary.visible import bounded

from irscope_server.agents.commands import Commands, option, word, words
from irscope_server.agents.reports import short

_MOST_NODES = 12
"""The most nodes of one stage."""
_TEXT = 200
"""Characters of the line, and of a node."""


@dataclass(frozen=True)
class Trail:
    """What a line became in one run."""

    run: str
    place: str
    text: str
    kernels: tuple[str, ...]
    steps: tuple[str, ...]

    @property
    def is_empty(self) -> bool:
        """Nothing in the run came from the line."""
        return not self.kernels and not self.steps


async def trail(commands: Commands, place: str, run: str = "", target: str = "") -> Trail:
    """What came from ``FILE:LINE``.  Raises ToolFailure.

    Args:
        run: An ID or its beginning; empty: the newest run that had to do with the file.
        target: The device whose prediction is asked for; empty: what the script got itself.
    """
    asked = [*words(run, "run"), f"--line={word(place, 'place')}", *option("--target", target)]
    found = await commands.read_json("show", *asked)
    return Trail(
        run=str(found["run"]),
        place=f"{short(found['file'])}:{found['line']}",
        text=bounded(found["text"], _TEXT),
        kernels=tuple(
            dict.fromkeys(f"  kernel {one['name']}  {one['language']}, {one['stage']}" for one in found["kernels"])
        ),
        steps=tuple(line for step in found["steps"] for line in _step(step)),
    )


def _step(step: Mapping[str, Any]) -> list[str]:
    """A stage and what it has of the line.  Output code is left out: its kernels are listed by themselves."""
    if role_of(step["name"]) is Role.CODE:
        return []
    fates = {place["name"]: place["fate"] for place in step["places"] if place["fate"]}
    lines = [f"  {step['stage']}"]
    for node in step["nodes"][:_MOST_NODES]:
        fate = f"  → {fates[node['name']]}" if node["name"] in fates else ""
        lines.append("    " + bounded(f"{node['name']} = {node['target']}  {node['detail']}".rstrip() + fate, _TEXT))
    places = step["places"]
    if not step["nodes"]:
        names = [place["name"] for place in places[:_MOST_NODES]]
        of_text = ("lines " if len(names) > 1 else "line ") if names and names[0].isdigit() else ""
        lines.append("    " + bounded(f"{of_text}{', '.join(names)}", _TEXT))
        lines += [f"    {bounded(f'{name}  → {fates[name]}', _TEXT)}" for name in names if name in fates]
    left = len(places) - _MOST_NODES
    return [*lines, *([f"    … and {left} more"] if left > 0 else [])]
