"""Asks a value process; starts it when the first question comes, and again where it has died.

Used by debuggers.  Nothing is evaluated in the process that asks.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
from collections.abc import Mapping
from typing import Any

from irscope.values.run.expressions import names_in
from irscope.values.run.reading import StoredValues

_BOOT = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "driver", "boot.py")
START_SECONDS = 60.0
"""For importing torch."""
ANSWER_SECONDS = 20.0


class ValueProcessError(Exception):
    """There is no answer; the message says why."""


class ValueProcess:
    """One process of the user's interpreter; one question at a time.  `close` ends it."""

    def __init__(self, python: str) -> None:
        self._python = python
        self._process: subprocess.Popen[bytes] | None = None
        self._rest = b""

    def evaluate(
        self, text: str, values: StoredValues, here: str = "", more: Mapping[str, Any] | None = None
    ) -> tuple[dict[str, Any], str]:
        """The value of an expression over the nodes of a stage, and its text as torch prints it.

        Args:
            here: The node that ``value`` stands for; empty: none.
            more: Values beside those of the stage, by name, each with the ``path`` of its file.

        Raises:
            ValueProcessError: The expression has no value, or the process gives no answer.
        """
        answer = self._ask(_question(text, values, here, more or {}))
        return answer["value"], str(answer["text"])

    def picture(
        self, text: str, values: StoredValues, here: str, more: Mapping[str, Any], view: Mapping[str, Any]
    ) -> dict[str, Any]:
        """The value of an expression as a picture (`irscope.values.run.picture`).  Raises ValueProcessError."""
        picture: dict[str, Any] = self._ask({**_question(text, values, here, more), "view": dict(view)})["picture"]
        return picture

    def close(self) -> None:
        """Kill the process, if there is one, and wait for its end."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    with contextlib.suppress(OSError):
                        stream.close()
            process.wait()

    def _ask(self, question: dict[str, Any]) -> dict[str, Any]:
        try:
            if self._process is None or self._process.poll() is not None:
                self._start()
            assert self._process is not None and self._process.stdin is not None
            self._process.stdin.write(json.dumps(question).encode() + b"\n")
            self._process.stdin.flush()
            answer = self._read(ANSWER_SECONDS, f"There was no answer within {ANSWER_SECONDS:.0f} s")
        except OSError as error:
            self.close()
            raise ValueProcessError(f"The process that evaluates has ended: {error.strerror or error}") from None
        if "error" in answer:
            raise ValueProcessError(str(answer["error"]))
        return answer

    def _start(self) -> None:
        self.close()
        self._rest = b""
        self._process = subprocess.Popen(
            [self._python, _BOOT, "values"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip
        self._read(START_SECONDS, f"{self._python} did not start within {START_SECONDS:.0f} s")

    def _read(self, seconds: float, late: str) -> dict[str, Any]:
        assert self._process is not None and self._process.stdout is not None
        stream = self._process.stdout.fileno()
        while b"\n" not in self._rest:
            if not select.select([stream], [], [], seconds)[0]:
                self.close()
                raise ValueProcessError(f"{late}; the process that evaluates was ended.")
            piece = os.read(stream, 65536)
            if not piece:
                self.close()
                raise ValueProcessError(
                    "The process that evaluates has ended (out of memory, or no torch in its Python)."
                )
            self._rest += piece
        line, _, self._rest = self._rest.partition(b"\n")
        found = json.loads(line)
        return found if isinstance(found, dict) else {}


def _question(text: str, values: StoredValues, here: str, more: Mapping[str, Any]) -> dict[str, Any]:
    """Raises ValueProcessError if the elements of the stage were not kept."""
    tensors: dict[str, Any] = {}
    for name in names_in(text):
        if name in more:
            tensors[name] = more[name]
        elif (value := values.value(here if name == "value" else name)) is not None:
            tensors[name] = {key: each for key, each in value.items() if key != "path"}  # only ours may name a file
    try:
        path = values.path()
    except ValueError as error:
        raise ValueProcessError(str(error)) from None
    return {"text": text, "file": path, "tensors": tensors}
