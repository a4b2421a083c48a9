"""Damaged run stores: bytes that are others, rows with other values; read by the command line, the server and the debugger."""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import sqlite3
import subprocess
import sys
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

from dap_client import ADAPTER
from dap_runs import traced_run
from fuzz_dap import _frame, _request
from garble import Garbler
from judge import HANG_SECONDS, Judge, nothing_left, until
from lsp_editor import SERVER
from made import SCRIPT
from raw import Raw
from support import Instant, late

HERE = Path(__file__).parent
_SERVER_EVERY = 20
_ASKED = (
    ["list"], ["show"], ["show", "--json"], ["show", "--compile", "0/0"], ["show", "--costs", "--target", "h100"], ["show", "--guards"],
    ["show", "--time"], ["show", "--compile", "0/0", "--stage", "dynamo-graph"], ["show", "--stage", "0/0/symbolic-trace"],
    ["show", "--kernel", "k0"], ["diff"], ["diff", "--stage", "0/0/dynamo-graph", "0/0/post-grad-graph"],
)  # fmt: skip
_OPEN_SECONDS = 4 * HANG_SECONDS
"""A log may have hundreds of megabytes."""
_LOADED = 6
"""How much longer a command may seem to take, by an estimate of the load, before it counts as one that never ends."""


def fuzz(seconds: float, random: Random, folder: Path) -> int:
    """Damages stores for so long; returns how many.  Raises FuzzError."""
    temporary, whole, store = folder / "temporary", folder / "whole.db", folder / "runs.db"
    temporary.mkdir(parents=True)
    for _ in range(2):
        model = traced_run(whole, folder)
    garbler = Garbler(random, {})
    env = {**os.environ, "IRSCOPE_FUZZ": str(folder), "TMPDIR": str(temporary), "IRSCOPE_STORE": str(store)}
    reader = Reader(folder, env)
    codes: Counter[int] = Counter()
    over, count = until(seconds), 0
    try:
        while not over():
            for left in folder.glob("runs.db*"):
                left.unlink()
            shutil.copy(whole, store)
            (_scratch if random.random() < 0.4 else _rewrite)(store, garbler)
            shutil.copy(store, folder / "last.db")
            for asked in random.sample(_ASKED, 4):
                codes[reader.ask([*asked, "--store", str(store)])] += 1
            asked = ["show", "--line", f"{model}:{random.randrange(20)}", "--store", str(store)]
            codes[reader.ask(asked)] += 1
            if count % _SERVER_EVERY == 0:
                _ask_server(store, folder, env, garbler)
                _ask_debugger(store, folder, env)
            count += 1
    finally:
        reader.close()
    print("exit codes of commands:", dict(sorted(codes.items())))
    nothing_left(f"IRSCOPE_FUZZ={folder}", temporary)
    return count


class Reader:
    """A process that runs commands.  It is the same one for all, so that what it keeps is seen to grow."""

    def __init__(self, folder: Path, env: dict[str, str]) -> None:
        answers, theirs = os.pipe()
        self._process = subprocess.Popen(
            [sys.executable, str(HERE / "reader.py"), str(theirs)], stdin=subprocess.PIPE, pass_fds=[theirs], env=env
        )
        os.close(theirs)
        self._answers = os.fdopen(answers)
        self._judge: Judge | None = None
        self._folder = folder

    def ask(self, arguments: list[str]) -> int:
        """The exit code of a command."""
        if self._judge is None:
            self._answer(["list"], Judge(self._process.pid, self._folder))
            self._judge = Judge(self._process.pid, self._folder)
        return self._answer(arguments, self._judge)

    def _answer(self, arguments: list[str], judge: Judge) -> int:
        assert self._process.stdin
        judge.note(json.dumps(arguments).encode())
        begun, asked_at = Instant(), judge.asks()
        self._process.stdin.write(json.dumps(arguments).encode() + b"\n")
        self._process.stdin.flush()
        while not select.select([self._answers], [], [], 1.0)[0]:
            if asked_at.over(10 * HANG_SECONDS) or late(begun, _LOADED * 10 * HANG_SECONDS):
                judge.fail(f"{arguments} does not end")
        answer: dict[str, Any] = json.loads(self._answers.readline() or '{"code": -1, "said": "it has died"}')
        judge.answered(asked_at, _OPEN_SECONDS if arguments[0] == "open" else HANG_SECONDS)
        if arguments[0] == "open" and "run store" in answer["said"]:
            judge.fail(f"{arguments} blames the store: {answer['said']}")
        if answer["code"] not in (0, 2, 3):
            judge.fail(f"{arguments}: exit code {answer['code']}: {answer['said']}")
        return int(answer["code"])

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        assert self._process.stdin
        self._process.stdin.close()
        self._answers.close()


def _scratch(store: Path, garbler: Garbler) -> None:
    store.write_bytes(garbler.scratched(store.read_bytes()))


def _rewrite(store: Path, garbler: Garbler) -> None:
    """Other values in some cells, of any type; JSON mostly stays JSON."""
    random = garbler.random
    db = sqlite3.connect(store)
    tables = [row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    for _ in range(random.choice((1, 1, 3, 10))):
        table = random.choice(tables)
        columns = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
        row = db.execute(f"SELECT rowid, * FROM {table} ORDER BY random() LIMIT 1").fetchone()
        if row is None or not columns:
            continue
        at = random.randrange(len(columns))
        with contextlib.suppress(sqlite3.Error):
            db.execute(f"UPDATE {table} SET {columns[at]} = ? WHERE rowid = ?", (_other(row[at + 1], garbler), row[0]))
    db.commit()
    db.close()


def _other(value: Any, garbler: Garbler) -> Any:
    if isinstance(value, bytes) and garbler.random.random() < 0.5:
        return garbler.scratched(value)
    if isinstance(value, str) and garbler.random.random() < 0.7:
        with contextlib.suppress(ValueError, RecursionError):  # an earlier one left no JSON
            return json.dumps(garbler.spoiled(json.loads(value))).encode("utf-8", "replace").decode()
    made = garbler.anything()
    made = made if isinstance(made, (str, int, float, type(None))) else json.dumps(made)
    if isinstance(made, int) and abs(made) >= 2**63:
        made = float(made)
    return (
        made.encode("utf-8", "replace")
        if isinstance(made, str) and garbler.random.random() < 0.5
        else (made.encode("utf-8", "replace").decode() if isinstance(made, str) else made)
    )


def _ask_server(store: Path, folder: Path, env: dict[str, str], garbler: Garbler) -> None:
    """What an editor asks when it opens the tree, a stage, and the panels."""
    with (folder / "log").open("wb") as log:
        raw = Raw(SERVER, env=env, stderr=log)
        try:
            raw.initialize(initializationOptions={"storePath": str(store), "trusted": False})
            judge = Judge(raw.process.pid, folder)
            raw.open((folder / "model.py").as_uri(), SCRIPT)
            listed = raw.ask(1, "irscope/runs", {}).get("result") or {}
            names = [run["run"] for run in listed.get("runs", []) if isinstance(run.get("run"), str)]
            from fuzz_lsp import _methods, _type_of

            garbler = Garbler(garbler.random, {"run": names or ["x"], "stage": ["0/0/dynamo-graph", "0/0/post-grad-graph", "0/0/symbolic-trace"], "uri": [(folder / "model.py").as_uri()]})  # fmt: skip
            for number, method in enumerate(sorted({name for name in _methods() if name.startswith("irscope/")}), 2):
                asked_at = judge.asks()
                if method not in ("irscope/trusted", "irscope/run"):
                    raw.ask(number, method, garbler.of_type(_type_of(method)))
                judge.answered(asked_at)
            for message in raw.seen:
                if message.get("method") == "window/logMessage":
                    judge.said(str(message["params"]))
            raw.ask("last", "shutdown")
            raw.notify("exit")
            raw.wait(10)
        finally:
            raw.close()
    judge.said((folder / "log").read_text(errors="replace"))


def _ask_debugger(store: Path, folder: Path, env: dict[str, str]) -> None:
    """The beginning of a session."""
    with (folder / "log").open("wb") as log:
        raw = Raw(ADAPTER, env=env, stderr=log)
        try:
            asked = [
                ("initialize", {"adapterID": "irscope"}), ("attach", {"store": str(store), "stopOn": "entry"}),
                ("configurationDone", {}), ("stackTrace", {"threadId": 1}), ("scopes", {"frameId": 1}),
                ("variables", {"variablesReference": 1}), ("loadedSources", {}), ("next", {"threadId": 1}), ("stepIn", {"threadId": 1}),
                ("continue", {"threadId": 1}), ("threads", {}), ("disconnect", {}),
            ]  # fmt: skip
            judge = Judge(raw.process.pid, folder)
            for seq, (command, arguments) in enumerate(asked, 1):
                asked_at = judge.asks()
                raw.write(_frame(_request(seq, command, arguments)))
                if command != "disconnect":
                    raw.until(lambda message, seq=seq: message.get("request_seq") == seq)  # type: ignore[misc]
                    judge.answered(asked_at)
            raw.wait(10)
        finally:
            raw.close()
    judge.said((folder / "log").read_text(errors="replace"))
