"""Messages for the language server: valid ones by the protocol's types, spoiled ones, and broken frames."""

from __future__ import annotations

import functools
import itertools
import json
import os
import time
import typing
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from dap_runs import traced_run
from garble import Garbler
from irscope_server.app import features
from irscope_server.base.params import PARAMS
from judge import Judge, nothing_left, until
from lsp_editor import PLAYING_SERVER
from lsprotocol import types
from made import SCRIPT, act
from raw import Raw
from support import Instant, late

# They end the server, or begin it.
_NOT_SENT = {"exit", "shutdown", "initialize"}
_BATCH = 8
_LIVES = 3
_LAST_SECONDS = 20.0
_LEARNED = {
    "uri": "uri",
    "run": "run",
    "id": "stage",
    "stage": "stage",
    "resultId": "previousResultId",
    "newUri": "uri",
}


def fuzz(seconds: float, random: Random, folder: Path) -> int:
    """Sends messages for so long, to three servers one after the other; returns how many.  Raises FuzzError."""
    return sum(_life(seconds / _LIVES, random, folder / str(life)) for life in range(_LIVES))


def _life(seconds: float, random: Random, folder: Path) -> int:
    """One server, from its start to its end."""
    temporary, store, script = folder / "temporary", folder / "runs.db", folder / "script.py"
    temporary.mkdir(parents=True)
    script.write_text(SCRIPT)
    model = Path(traced_run(store, folder))
    play = folder / "play.json"
    play.write_text(json.dumps([act(script, prints=[["stdout", "x"]]), act(script, outcome="crashed", seconds=0.3)]))
    garbler = Garbler(random, _known(script, model))
    env = {**os.environ, "IRSCOPE_FUZZ": str(folder), "IRSCOPE_TEST_PLAY": str(play), "TMPDIR": str(temporary)}
    env["TORCHINDUCTOR_CACHE_DIR"] = str(folder / "kernels")  # it is PyTorch's, and stays
    with (folder / "log").open("wb") as log:
        raw = Raw(PLAYING_SERVER, stderr=log, env=env)
        try:
            options = {"storePath": str(store), "trusted": True}
            raw.initialize(initializationOptions=options)
            sent = _speak(raw, garbler, Judge(raw.process.pid, folder), until(seconds))
            raw.ask("last", "shutdown")
            raw.notify("exit")
            raw.wait(10)
        finally:
            raw.close()
    Judge(0, folder).said((folder / "log").read_text(errors="replace"))
    nothing_left(f"IRSCOPE_FUZZ={folder}", temporary)
    return sent


def _known(*files: Path) -> dict[str, list[Any]]:
    others = ["irscope:/", "irscope:///x/0/0/y", "untitled:Untitled-1", "file:///nowhere.py", "notebook.ipynb"]
    return {
        "uri": [*(file.as_uri() for file in files), *others],
        "version": [1, 2, 3],
        "languageId": ["python"],
        "line": [*range(20)],
        "character": [*range(12)],
    }


def _speak(raw: Raw, garbler: Garbler, judge: Judge, ends: Callable[[], bool]) -> int:
    sent = 0
    for probe in itertools.count():
        for _ in range(_BATCH):
            data = _frame(garbler, judge, sent)
            judge.note(data)
            raw.write(data)
            sent += 1
        asked = judge.asks()
        raw.ask(f"probe-{probe}", "irscope/cancel", {"uri": "file:///never.py"})
        judge.answered(asked)
        _look_at(raw, garbler, judge)
        if ends():
            break
    for id in map(json.loads, judge.owed):  # some wait for news, and are answered when they are taken back
        raw.notify("$/cancelRequest", {"id": id})
    begun = Instant()
    while judge.owed and not late(begun, _LAST_SECONDS):
        raw.ask("again", "irscope/cancel", {"uri": "file:///never.py"})
        _look_at(raw, garbler, judge)
        time.sleep(0.05)
    if judge.owed:
        judge.fail(f"no answer to {[*judge.owed.values()][:10]}")
    return sent


def _look_at(raw: Raw, garbler: Garbler, judge: Judge) -> None:
    for message in raw.seen:
        if "method" not in message:
            judge.answers(message.get("id"))
        garbler.learn(message.get("result"), _LEARNED)
        if message.get("method") == "window/logMessage":
            judge.said(str(message["params"]))
    raw.seen.clear()


def _frame(garbler: Garbler, judge: Judge, number: int) -> bytes:
    """A message with its header; after the bytes of a broken one, the next is read from its beginning."""
    body = json.dumps(_message(garbler, number)).encode("utf-8", "surrogatepass")
    choice = garbler.random.randrange(40)
    if choice == 0:
        body = garbler.scratched(body)
    if choice not in (2, 3):
        judge.owes(body)
    if choice == 1:
        return b"X-%d: y\r\nContent-Length: %d\r\ncontent-type: x\r\n\r\n" % (number, len(body)) + body
    if choice == 2:
        return b"Content-Length: %d\r\n\r\n" % max(0, len(body) - 7) + body + b"\r\n"
    if choice == 3:
        return garbler.random.choice(
            (b"\r\n", b"nonsense\r\n\r\n", b"Content-Length: -5\r\n\r\n", b"\0" * 50 + b"\r\n")
        )
    return b"Content-Length: %d\r\n\r\n" % len(body) + body


def _message(garbler: Garbler, number: int) -> Any:
    method = garbler.random.choice(_methods())
    message: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": garbler.of_type(_type_of(method))}
    if not _is_notification(method):
        message["id"] = garbler.random.choice((number, number, number, f"\ud800{number}"))
    share = garbler.random.choice((0.0, 0.0, 0.02, 0.1))
    return garbler.spoiled(message, share) if share else message


@functools.cache
def _methods() -> list[str]:
    """What the server answers, twice for each of the protocol's others."""
    answered = [*features.make_server().protocol.fm.features]
    return sorted({*types.METHOD_TO_TYPES} - _NOT_SENT) + 2 * sorted({*answered} - _NOT_SENT)


def _is_notification(method: str) -> bool:
    known = types.METHOD_TO_TYPES.get(method)
    return method == "irscope/trusted" if known is None else known[1] is None


def _type_of(method: str) -> Any:
    known = types.METHOD_TO_TYPES.get(method)
    if known is None:
        return PARAMS.get(method, dict[str, Any])
    return (
        known[2]
        if len(known) > 2 and known[2] is not None
        else typing.get_type_hints(known[0]).get("params", type(None))
    )
