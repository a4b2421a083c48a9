"""The user's ``launch.json``: arguments, environment and working folder of a script, as the debugger would start it."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from irscope.protocol import EntryKind
from irscope.usercode.reading import read_bounded

from irscope_server.running.entries import Entry

_TYPES = ("python", "debugpy")
_VARIABLE = re.compile(r"\$\{([^}]*)\}")
_ENV_LINE = re.compile(r"^\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*?)\s*$")
_LONGEST = 2_000_000
"""Bytes of a configuration or of variables that are written by hand."""
_PLATFORM = {"win32": "windows", "darwin": "osx"}.get(sys.platform, "linux")


class Unresolved(ValueError):
    """A variable that only the editor can fill in; the message names it."""


@dataclass(frozen=True)
class Launch:
    """One configuration with its variables filled in."""

    name: str
    entry: Entry | None
    """None if it names neither a program nor a module."""
    any_file: bool
    """Its program is whatever file is open."""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str = ""
    python: str = ""


def read_launch_file(folder: str) -> tuple[list[Mapping[str, Any]], str]:
    """The configurations in a folder's ``.vscode/launch.json``, and what is wrong with the file; both may be empty."""
    path = os.path.join(folder, ".vscode", "launch.json")
    try:
        data = json.loads(without_comments(read_bounded(path, _LONGEST).decode("utf-8-sig")))
    except FileNotFoundError:
        return [], ""
    except (OSError, ValueError, RecursionError) as error:
        return [], f"{path} cannot be read: {error}"
    configurations = data.get("configurations") if isinstance(data, dict) else None
    if not isinstance(configurations, list):
        return [], ""
    return [one for one in configurations if isinstance(one, dict)], ""


def without_comments(text: str) -> str:
    """JSON as editors write it, as JSON: comments become blanks and a comma before a bracket goes; lines stay."""
    out: list[str] = []
    position, comma = 0, -1
    while position < len(text):
        character = text[position]
        if character == '"':
            end = position + 1
            while end < len(text) and text[end] != '"':
                end += 2 if text[end] == "\\" else 1
            out.append(text[position : end + 1])
            position, comma = end + 1, -1
            continue
        if text.startswith("//", position):
            end = text.find("\n", position)
            position = len(text) if end < 0 else end
            continue
        if text.startswith("/*", position):
            end = text.find("*/", position + 2)
            end = len(text) if end < 0 else end + 2
            out.append("\n" * text.count("\n", position, end) or " ")
            position = end
            continue
        if character == ",":
            comma = len(out)
        elif character in "]}":
            if comma >= 0:
                out[comma] = " "
            comma = -1
        elif not character.isspace():
            comma = -1
        out.append(character)
        position += 1
    return "".join(out)


def python_launches(
    configurations: Sequence[Mapping[str, Any]], file: str, folder: str
) -> tuple[list[Launch], list[str]]:
    """The configurations that start Python, for the file that is open, and why others of them cannot be used."""
    launches, complaints = [], []
    for configuration in configurations:
        if configuration.get("type") not in _TYPES or configuration.get("request", "launch") != "launch":
            continue
        name = str(configuration.get("name", ""))
        try:
            launches.append(_launch(name, configuration, file, folder))
        except Unresolved as error:
            complaints.append(f"The launch configuration {name!r} is ignored: {error}")
    return launches, complaints


def launch_named(launches: Sequence[Launch], name: str) -> Launch | None:
    """The first configuration with this name; None if there is none."""
    return next((launch for launch in launches if launch.name == name), None)


def launch_of(launches: Sequence[Launch], entry: Entry) -> Launch | None:
    """The configuration whose program or module is this entry; else one for whatever file is open."""
    exact = [launch for launch in launches if launch.entry and not launch.any_file and launch.entry.key == entry.key]
    if exact:
        return exact[0]
    open_file = [launch for launch in launches if launch.any_file and launch.entry and launch.entry.key == entry.key]
    return open_file[0] if open_file else None


def _launch(name: str, given: Mapping[str, Any], file: str, folder: str) -> Launch:
    own = given.get(_PLATFORM)
    merged = {**given, **own} if isinstance(own, Mapping) else dict(given)

    def text(key: str) -> str:
        value = merged.get(key)
        return resolve(value, file, folder) if isinstance(value, str) else ""

    cwd = text("cwd") or folder
    cwd = os.path.normpath(os.path.join(folder, cwd))
    env_file = text("envFile")
    env = read_env_file(os.path.join(folder, env_file)) if env_file else {}
    if isinstance(merged.get("env"), Mapping):
        env.update(
            {str(key): resolve(str(value), file, folder) for key, value in merged["env"].items() if value is not None}
        )
    words = _words(merged.get("args"), file, folder)
    try:
        python = merged.get("python") or merged.get("pythonPath")
        python = resolve(python, file, folder) if isinstance(python, str) else ""
    except Unresolved:  # as `${command:python.interpreterPath}`: the interpreter that irscope uses anyway
        python = ""
    program, module = merged.get("program"), text("module")
    if isinstance(program, str) and program:
        path = os.path.normpath(os.path.join(folder, resolve(program, file, folder)))
        entry: Entry | None = Entry(EntryKind.SCRIPT, path, (), folder)
    else:
        entry, words = _module_entry(module, words, folder)
    any_file = isinstance(program, str) and "${file" in program
    return Launch(name, entry, any_file, tuple(words), env, cwd, os.path.expanduser(python))


def _module_entry(module: str, words: list[str], folder: str) -> tuple[Entry | None, list[str]]:
    """The entry of a module, of pytest its first test; and the arguments that are left."""
    if module == "pytest" and (nodes := [word for word in words if not word.startswith("-")]):
        return Entry(EntryKind.PYTEST, nodes[0], (), folder), [word for word in words if word != nodes[0]]
    return (Entry(EntryKind.MODULE, module, (), folder) if module else None), words


def _words(args: Any, file: str, folder: str) -> list[str]:
    """The arguments of a program, which may be one text."""
    if isinstance(args, str):
        return shlex.split(resolve(args, file, folder))
    return [resolve(str(arg), file, folder) for arg in args] if isinstance(args, (list, tuple)) else []


def resolve(text: str, file: str, folder: str) -> str:
    """Fills in VS Code's variables.

    Raises:
        Unresolved: One of them is a question to the user, a command or a setting of the editor.
    """

    def value(match: re.Match[str]) -> str:
        name = match[1]
        if name.startswith("env:"):
            return os.environ.get(name[4:], "")
        if name.startswith("workspaceFolder:"):
            name = "workspaceFolder" if name.partition(":")[2] == os.path.basename(folder) else name
        stem, extension = os.path.splitext(os.path.basename(file))
        known = {
            "workspaceFolder": folder,
            "workspaceRoot": folder,
            "workspaceFolderBasename": os.path.basename(folder),
            "fileWorkspaceFolder": folder,
            "file": file,
            "fileDirname": os.path.dirname(file),
            "fileBasename": os.path.basename(file),
            "fileBasenameNoExtension": stem,
            "fileExtname": extension,
            "relativeFile": os.path.relpath(file, folder) if file and folder else file,
            "relativeFileDirname": os.path.relpath(os.path.dirname(file), folder) if file and folder else "",
            "userHome": os.path.expanduser("~"),
            "cwd": folder,
            "pathSeparator": os.sep,
            "/": os.sep,
        }
        if name not in known:
            raise Unresolved(f"only the editor knows the value of ${{{name}}}.")
        return known[name]

    return _VARIABLE.sub(value, text)


def read_env_file(path: str) -> dict[str, str]:
    """``NAME=value`` lines; quotes around a value go, other lines are passed over, a missing file is empty."""
    variables: dict[str, str] = {}
    try:
        lines = read_bounded(path, _LONGEST).decode("utf-8", "replace").splitlines()
    except (OSError, ValueError):
        return variables
    for line in lines:
        match = None if line.lstrip().startswith("#") else _ENV_LINE.match(line)
        if match is None:
            continue
        value = match[2]
        if len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'":
            quote, value = value[0], value[1:-1]
            if quote == '"':
                value = value.replace("\\n", "\n").replace('\\"', '"')
        variables[match[1]] = value
    return variables
