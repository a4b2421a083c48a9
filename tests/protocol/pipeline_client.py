"""A stored run of any pipeline in a client: what it lists and links, and the debugger's way down from a line."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Iterable
from pathlib import Path
from typing import Any

from dap_client import Client
from lsp_editor import PLAYING_SERVER, Editor
from support import Ran


class Shown:
    """An editor with the script of a run, and what it lists of the run."""

    def __init__(self, editor: Editor, ran: Ran, source: str, tree: Any, strip: Any) -> None:
        self.editor, self.ran, self.source, self.tree = editor, ran, source, tree
        self.stages = {stage.stage: stage for stage in tree.compiles[0].stages}
        self.uris = {
            **{stage: one.uri for stage, one in self.stages.items()},
            **{
                one.uri.partition(f"{ran.report.run}/")[2].rpartition(".")[0]: one.uri
                for one in tree.compiles[0].kernels
            },
        }
        self.strip = [stage.stage for stage in strip.stages]
        self.graphs = [stage.stage for stage in strip.stages if stage.isGraph]

    async def nodes(self, stage: str) -> list[str]:
        graph = await self.editor.request("irscope/graph", run=self.ran.report.run, stage=stage)
        return list(graph.nodes.name)

    async def linked(self, uri: str, line: int, among: Iterable[str]) -> dict[str, list[int]]:
        """Where the lines are that belong to a line (0-based), by document."""
        asked = {"uri": uri, "line": line, "run": self.ran.report.run, "among": list(among)}
        found = await self.editor.request("irscope/counterparts", **asked)
        return {one.uri: list(one.lines) for one in found.places}


@contextlib.asynccontextmanager
async def shown(ran: Ran) -> AsyncIterator[Shown]:
    settings = {"run": {"onSave": "off", "onOpen": "off"}}
    script = Path(ran.report.script)
    editor = await Editor.start(
        PLAYING_SERVER, options={"storePath": ran.store}, settings=settings, folder=script.parent
    )
    try:
        source = editor.open(script)
        tree = await editor.request("irscope/report", run=ran.report.run)
        strip = await editor.request("irscope/pipeline", run=ran.report.run)
        yield Shown(editor, ran, source, tree, strip)
    finally:
        await editor.close()


def row_of(ran: Ran, stage: str, text: str) -> int:
    """The line (0-based) of the only statement with a text."""
    rows = ran.text(stage).split("\n")
    [line] = [at for at, row in enumerate(rows) if text in row and not row.lstrip().startswith("#")]
    return line


def steps_down(ran: Ran, line: int, most: int, there: Callable[[str], bool] = lambda name: False) -> list[str]:
    """The stages that a debugger comes to from a line (1-based) of the script, in so many steps at most."""
    return [stage for stage, _ in rows_down(ran, line, most, there)]


def rows_down(
    ran: Ran, line: int, most: int, there: Callable[[str], bool] = lambda name: False
) -> list[tuple[str, int]]:
    """The same with the lines (1-based) in the stages."""
    script = ran.report.script
    with Client() as client:
        client.initialize()
        client.ask("attach", run=ran.report.run, store=ran.store, stopOn="none")
        client.ask("setBreakpoints", source={"path": script}, breakpoints=[{"line": line}])
        client.ask("setExceptionBreakpoints", filters=[])
        client.ask("configurationDone")
        client.event("stopped")
        assert (client.top()["source"]["path"], client.top()["line"]) == (script, line)
        seen: list[tuple[str, int]] = []
        while len(seen) < most and not (seen and there(seen[-1][0])):
            client.move("stepIn")
            seen.append((client.top()["source"]["name"].removeprefix("0/0 "), client.top()["line"]))
        assert client.stack()[-1]["source"]["path"] == script, "the user's line is at the end of the stack"
    return seen
