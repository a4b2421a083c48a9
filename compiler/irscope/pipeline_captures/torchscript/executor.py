"""The graphs in the log of TorchScript's executor: one after each of its passes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from irscope.vocabulary.records import dataclass

_PREFIX = re.compile(r"\[(?P<level>\w+) [\w.]+:\d+\] ?(?P<content>.*)$")
_RUNNING = "Running ProfilingGraphExecutorImpl "
_BEGINS = re.compile(r"(?P<title>.*?)(?P<graph>graph\((?=%|\):).*)$")
_PASS = re.compile(r"After (?P<name>\w+)")
PROFILED, OPTIMIZED = "Profiled Graph", "Optimized Graph"
FORWARD, BACKWARD = "Forward graph", "Backward graph"
"""Both halves of a part of a graph that the executor has differentiated; the passes over the second are logged when it
runs."""
GUARDED = "guardDifferentiableGraph"
"""The last graph before such a part is differentiated."""


@dataclass(frozen=True)
class Logged:
    """A graph of the log.

    Args:
        title: The pass that made it, or one of the constants above.
        inputs: The names of its inputs; the numbers in them are others in each copy of the graph.
        executor: Which executor logged it.  Each has one graph; that of the program has others for parts that it falls
            back to.
    """

    title: str
    text: str
    inputs: tuple[str, ...]
    executor: str

    def takes(self, names: tuple[str, ...]) -> bool:
        """Whether its inputs have these names.

        Graphs that have others run meanwhile: parts of this one, to fold constants.
        """
        return [_stem(one) for one in self.inputs] == [_stem(one) for one in names]


def _stem(name: str) -> str:
    """Without the number that makes it another name than others of its graph: ``mean`` of ``mean.6``."""
    return re.sub(r"\.?\d+$", "", name)


def graphs_in(log: str) -> Iterator[Logged]:
    """The graphs in the order of the log."""
    title, level, rows = "", "", list[str]()
    running: list[str] = []
    for line in log.split("\n"):
        match = _PREFIX.match(line)
        content = match["content"] if match else ""
        if begins := (_BEGINS.match(content) if not content.startswith(("with ", " ")) else None):
            yield from _whole(title, level, rows, running)
            title, rows = begins["title"] or title, [begins["graph"]]
            level = match["level"] if match else ""
        elif rows and content.startswith((" ", "with ")):
            rows.append(content)
        else:
            yield from _whole(title, level, rows, running)
            rows = []
            title = content or title
            if content.startswith(_RUNNING):
                running.append(content.removeprefix(_RUNNING).strip())
    yield from _whole(title, level, rows, running)


def _whole(title: str, level: str, rows: list[str], running: list[str]) -> Iterator[Logged]:
    """The graph that ends, if a graph ends here; ``running`` loses the executor that ends with it."""
    text = "\n".join(rows) + "\n"
    head = text.partition("):\n")[0]
    if rows and (name := _name(title)):
        inputs = tuple(re.findall(r"%([\w.]+) : ", head))
        yield Logged(name, text, inputs, running[-1] if running else "")
    if rows and level == "DUMP" and running:  # the last that an executor logs: it returns to the one that called it
        running.pop()


def _name(title: str) -> str:
    for known in (PROFILED, OPTIMIZED, FORWARD, BACKWARD):
        if title.startswith(known):
            return known
    match = _PASS.match(title)
    return match["name"] if match else ""
