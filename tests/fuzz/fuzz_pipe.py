"""What a run's process writes to its message pipe: valid messages, spoiled ones, and bytes.

A shell stands in for the interpreter.  The driver reads from it what irscope would print or store of a run.
"""

from __future__ import annotations

import json
import os
import typing
from pathlib import Path
from random import Random

from garble import Garbler
from irscope.driver.driver import RunSpec, execute
from irscope.protocol import Budget, Message, Report, StoreWrite, encode_message, from_json, to_json
from irscope.protocol.frames import MARK, frame
from irscope.store.store import Store
from judge import Judge, nothing_left, until
from support import run_cli

_PYTHON = """\
#!/bin/sh
cat "$IRSCOPE_FUZZ_BYTES" > /dev/fd/$3
printf 'x\\303\\244'
exit $(($$ % 3))
"""
_MESSAGES = (*typing.get_args(Message), *typing.get_args(StoreWrite))
_RUNS_PER_STORE = 300


def fuzz(seconds: float, random: Random, folder: Path) -> int:
    """Runs the stand-in for so long; returns how often.  Raises FuzzError."""
    temporary = folder / "temporary"
    temporary.mkdir(parents=True)
    script = folder / "script.py"
    script.write_text("import torch\nprint(1)\n")
    python = folder / "python"
    python.write_text(_PYTHON)
    python.chmod(0o755)
    written = folder / "bytes"
    garbler = Garbler(random, {"file": [str(script)], "line": [1, 2, 3], "is": [cls.__name__ for cls in _MESSAGES]})
    judge = Judge(os.getpid(), folder)
    env = {"IRSCOPE_FUZZ": str(folder), "IRSCOPE_FUZZ_BYTES": str(written), "TMPDIR": str(temporary)}
    over, count = until(seconds), 0
    while not over():
        store = folder / f"{count // _RUNS_PER_STORE}.db"
        data = _bytes(garbler)
        written.write_bytes(data)
        judge.note(data)
        asked = judge.asks()
        if random.random() < 0.97:
            _execute(RunSpec(str(script), python=str(python), env=env, budget=Budget(seconds=20)), store, judge)
        else:
            _on_the_command_line(script, python, store, env, judge, json_asked=random.random() < 0.5)
        judge.answered(asked)
        count += 1
    nothing_left(f"IRSCOPE_FUZZ={folder}", temporary)
    return count


def _execute(spec: RunSpec, store: Path, judge: Judge) -> None:
    told: list[Message] = []
    printed: list[str] = []
    with Store(str(store)) as opened:
        run, outcome = execute(
            spec, opened, on_message=told.append, on_output=lambda stream, text: printed.append(text)
        )
        report = opened.report(run)
    if report.outcome != outcome:
        judge.fail(f"{report.outcome} is stored, and {outcome} told")
    if from_json(Report, json.loads(json.dumps(to_json(report)))) != report:
        judge.fail("the report is not what its JSON says")
    for message in told:
        json.dumps(encode_message(message)).encode()
    if not "x\u00e4".startswith("".join(printed)):  # a message can say that a limit is reached: then it is ended
        judge.fail(f"{printed} was printed")


def _on_the_command_line(
    script: Path, python: Path, store: Path, env: dict[str, str], judge: Judge, *, json_asked: bool
) -> None:
    arguments = [
        "run",
        str(script),
        "--python",
        str(python),
        "--store",
        str(store),
        *(["--json"] if json_asked else []),
    ]
    done = run_cli(*arguments, env=env)
    judge.said(done.stderr)
    if done.returncode not in (0, 3):
        judge.fail(f"exit code {done.returncode}: {done.stderr[-1000:]}")
    if json_asked:
        json.loads(done.stdout)


def _bytes(garbler: Garbler) -> bytes:
    """Some frames, and what else may be in the pipe."""
    random = garbler.random
    parts = []
    for number in range(random.choice((0, 1, 3, 10, 40))):
        cls = random.choice(_MESSAGES)
        message = {"is": cls.__name__, **garbler.of_type(cls)}
        share = random.choice((0.0, 0.0, 0.02, 0.1))
        message = garbler.spoiled(message, share) if share else message
        texts = b""
        if isinstance(message, dict) and random.random() < 0.2:
            texts = random.choice((b"x = 1\n", b"[1, {}]", b"\xff\xfe", b"\0" * 5000, b""))
            lengths = random.choice(
                ({"text": len(texts)}, {"data": len(texts)}, {"text": len(texts) + 1}, [1], {"file": 0})
            )
            message["texts"] = lengths
        payload = json.dumps(message).encode("utf-8", "surrogatepass") + b"\n" + texts
        part = frame(number if random.random() < 0.95 else random.choice((0, 2**63, 2**64 - 1)), payload)
        choice = random.randrange(60)
        if choice == 0:
            part = garbler.scratched(part)
        elif choice == 1:
            part = random.choice(
                (
                    b"[" * 100_000,
                    MARK * 50_000,
                    b"\xff\xfe",
                    b"\0" * 10_000,
                    part[:-1],
                    b'"' + b"x" * (1 << 20),
                    payload,
                )
            )
        parts.append(part)
    return b"".join(parts)
