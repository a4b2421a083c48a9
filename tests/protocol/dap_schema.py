"""The schema of the Debug Adapter Protocol, as debugpy ships it: each message of the adapter's has to fit."""

from __future__ import annotations

import functools
import json
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

from jsonschema import Draft4Validator
from jsonschema.exceptions import best_match


def problem_of(message: dict[str, Any], command: str = "") -> str:
    """What does not fit in a message of the adapter's; empty if all does.

    Args:
        command: What was asked for, where the message is a response.
    """
    kind = message.get("type")
    if kind == "response" and not message.get("success"):
        name = "ErrorResponse"
    elif kind == "response":
        name = f"{command[:1].upper()}{command[1:]}Response"
    else:
        word = str(message.get("event" if kind == "event" else "command", ""))
        name = f"{word[:1].upper()}{word[1:]}{str(kind).capitalize()}"
    if name not in schema()["definitions"]:
        name = {"response": "Response", "event": "Event", "request": "Request"}.get(str(kind), "ProtocolMessage")
    error = best_match(_validator(name).iter_errors(message))
    return "" if error is None else f"{name}: {error.json_path}: {error.message}"


@functools.cache
def _validator(name: str) -> Draft4Validator:
    return Draft4Validator({**schema(), "$ref": f"#/definitions/{name}"})


@functools.cache
def schema() -> dict[str, Any]:
    """The whole of it."""
    (file,) = (file for file in distribution("debugpy").files or () if file.name == "debugProtocol.json")
    read: dict[str, Any] = json.loads(Path(str(file.locate())).read_text(encoding="utf-8"))
    return {key: read[key] for key in ("$schema", "definitions")}
