"""The graphs in the log of TorchScript's executor: one after each of its passes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from irscope.vocabulary.records import dataclass

_PREFIX = re.compile(r"\[\w+ [\w.]+:\d+\] ?(?P<content>.*)$")
_BEGINS = re.compile(r"(?P<title>.*?)(?P<graph>graph\((?=%|\):).*)$")
_PASS = re.compile(r"After (?P<name>\w+)")
PROFILED, OPTIMIZED = "Profiled Graph", "Optimized Graph"


@dataclass(frozen=True)
class Logged:
    """A graph of the log.

    Parameters
    ----------
    title
        The pass that made it, or `PROFILED` or `OPTIMIZED`.
    """

    title: str
    text: str


def graphs_in(log: str, inputs: tuple[str, ...]) -> Iterator[Logged]:
    """The graphs whose inputs have these names, in the order of the log.

    Others are of graphs that the executor runs meanwhile: parts of this one, to fold constants.
    """
    title, rows = "", list[str]()

    def whole() -> Iterator[Logged]:
        text = "\n".join(rows) + "\n"
        head = text.partition("):\n")[0]
        if rows and tuple(re.findall(r"%([\w.]+) : ", head)) == inputs and (name := _name(title)):
            yield Logged(name, text)

    for line in log.split("\n"):
        match = _PREFIX.match(line)
        content = match["content"] if match else ""
        if begins := (_BEGINS.match(content) if not content.startswith(("with ", " ")) else None):
            yield from whole()
            title, rows = begins["title"] or title, [begins["graph"]]
        elif rows and content.startswith((" ", "with ")):
            rows.append(content)
        else:
            yield from whole()
            rows = []
            title = content or title
    yield from whole()


def _name(title: str) -> str:
    for known in (PROFILED, OPTIMIZED):
        if title.startswith(known):
            return known
    match = _PASS.match(title)
    return match["name"] if match else ""
