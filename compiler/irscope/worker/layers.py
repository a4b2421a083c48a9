"""Layers: forks of the worker that have done the imports of a script's head, one for each set of imports.

Importing a library of models takes longer than tracing with it, and an edit to the script does not change it.  A run
whose head is that of a layer is a fork of the layer.  One that has no layer yet is a fork of the worker, and the layer
is built when that run has ended, for the next save.
"""

from __future__ import annotations

import ast
import contextlib
import os
import socket
import sys
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import field
from typing import Any

from irscope.protocol import EntryKind, RunRequest, from_json
from irscope.vocabulary.records import dataclass
from irscope.worker.building import Built, UnsafeError, build, mtime
from irscope.worker.child import READ_AT_IMPORT
from irscope.worker.head import Step, head_of
from irscope.worker.modules import ModuleKind, hiding, kind_of_file
from irscope.worker.wire import receive, send

MOST = 3
"""Layers at a time; each holds what its imports took, up to some hundred megabytes.  The one unused for longest goes."""
_MOST_REFUSED = 50


@dataclass(frozen=True)
class LayerKey:
    """What a layer's imports could see: with the same, they do the same."""

    steps: tuple[Step, ...]
    folder: str
    """The script's, which is first on ``sys.path``."""
    cwd: str
    env: tuple[tuple[str, str], ...]
    notebook: bool = False
    """A notebook's main module has no file."""

    @property
    def text(self) -> str:
        """The imports as one line of Python."""
        return "; ".join(step.text for step in self.steps if step.kind == "import")


@dataclass
class Layer:
    """A layer as the worker sees it; ``built`` is there once it is ready."""

    key: LayerKey
    pid: int
    connection: socket.socket
    built: Built | None = None
    begun: float = field(default_factory=time.monotonic)


@dataclass(frozen=True)
class Wanted:
    """A layer to be built."""

    key: LayerKey
    script: str


class Layers:
    """All layers of the worker.

    Args:
        tell: Called with what happens to a layer, for the process that started the worker.
    """

    def __init__(self, tell: Callable[[dict[str, Any]], None]) -> None:
        self._tell = tell
        self._layers: OrderedDict[LayerKey, Layer] = OrderedDict()  # the one used last is at the end
        self._leaving: list[Layer] = []
        self._refused: OrderedDict[LayerKey, str] = OrderedDict()
        self.wanted: Wanted | None = None

    @property
    def all(self) -> list[Layer]:
        """All layers whose process may still be alive, those that are ending included."""
        return [*self._layers.values(), *self._leaving]

    @property
    def is_building(self) -> bool:
        """Whether a layer has begun to import and is not ready yet."""
        return any(layer.built is None for layer in self._layers.values())

    def take(self, message: dict[str, Any], fds: list[int]) -> bool:
        """Hands a request to its layer; false if it has none that is ready, and then it may get one later."""
        layer = self._layer_for(message)
        if layer is None:
            return False
        try:
            send(layer.connection, message, fds)
        except OSError:
            return False
        return True

    def _layer_for(self, message: dict[str, Any]) -> Layer | None:
        request = from_json(RunRequest, message["request"])
        if request.entry not in (EntryKind.SCRIPT, EntryKind.NOTEBOOK) or getattr(sys.flags, "safe_path", False):
            return None
        steps = _head(request)
        if not steps:
            return None
        folder = os.path.dirname(os.path.realpath(request.script))
        notebook = request.entry is EntryKind.NOTEBOOK
        key = LayerKey(steps, folder, message["cwd"], tuple(sorted(message["env"].items())), notebook)
        if key in self._refused:
            return None
        layer = self._layers.get(key)
        if layer is not None and layer.built is None:
            return None
        if layer is not None and layer.built is not None:
            reason = _stale(layer.built, folder)
            if not reason:
                self._layers.move_to_end(key)
                return layer
            self.drop(layer, reason)
        self.wanted = Wanted(key, request.script)
        return None

    # --- building and ending ------------------------------------------------------------------------------------------

    def start(self) -> tuple[Wanted, socket.socket] | None:
        """Forks the layer that is wanted.  In the fork it returns what to build, and the socket to the worker."""
        wanted, self.wanted = self.wanted, None
        if wanted is None or wanted.key in self._layers:
            return None
        while len(self._layers) >= MOST:
            self.drop(next(iter(self._layers.values())), "Other layers were used more recently.")
        ours, theirs = socket.socketpair()
        pid = os.fork()
        if pid == 0:
            ours.close()
            for layer in self.all:
                layer.connection.close()
            return wanted, theirs
        theirs.close()
        self._layers[wanted.key] = Layer(wanted.key, pid, ours)
        return None

    def hear(self, layer: Layer) -> None:
        """Takes in what a layer says: that it is ready, or refused; or that it is gone."""
        received = receive(layer.connection)
        if received is None:
            self._forget(layer)
            self._note(layer, "ended", "It exited.")
        elif "refused" in received[0]:
            self._forget(layer)
            self._refuse(layer.key, received[0]["refused"])
            self._note(layer, "refused", received[0]["refused"])
        else:
            layer.built = Built(**received[0])
            self._note(layer, "ready", "")

    def drop(self, layer: Layer, reason: str) -> None:
        """Ends a layer; its runs go on to their end."""
        self._layers.pop(layer.key, None)
        self._leaving.append(layer)
        with contextlib.suppress(OSError):
            send(layer.connection, {"drop": True})
        self._note(layer, "dropped", reason)

    def ended(self, pid: int) -> bool:
        """Notes that a process has ended; says whether it was a layer."""
        for layer in self.all:
            if layer.pid == pid:
                if layer in self._leaving:
                    self._forget(layer)
                return True  # what it has said last is still to be read
        return False

    def _forget(self, layer: Layer) -> None:
        if self._layers.get(layer.key) is layer:
            del self._layers[layer.key]
        if layer in self._leaving:
            self._leaving.remove(layer)
        layer.connection.close()

    def _refuse(self, key: LayerKey, reason: str) -> None:
        self._refused[key] = reason
        if len(self._refused) > _MOST_REFUSED:
            self._refused.popitem(last=False)

    def _note(self, layer: Layer, state: str, reason: str) -> None:
        seconds = round(time.monotonic() - layer.begun, 3)
        self._tell({"layer": layer.key.text, "pid": layer.pid, "state": state, "reason": reason, "seconds": seconds})


def build_layer(wanted: Wanted, connection: socket.socket) -> Built | None:
    """In the layer's process: does the imports and says how that went."""
    try:
        key = wanted.key
        built = build(key.steps, wanted.script, key.cwd, dict(key.env), has_file=not key.notebook)
    except UnsafeError as error:
        send(connection, {"refused": str(error)})
        return None
    send(connection, {"names": built.names, "files": built.files, "environment": built.environment})
    return built


def _head(request: RunRequest) -> tuple[Step, ...]:
    """None if the script cannot be read, or if its variables are for torch: it needs a fresh process anyway."""

    def read(path: str) -> str | bytes:
        if path == request.script and request.cells:
            return _cells(request)
        text = request.overlays.get(path)
        if text is None:
            with open(path, "rb") as file:
                return file.read()
        return text

    try:
        steps = head_of(request.script, read)
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    variables = [step.text for step in steps if step.kind == "variable"]
    return () if any(prefix in text for prefix in READ_AT_IMPORT for text in variables) else steps


def _cells(request: RunRequest) -> str:
    """The cells of a notebook as one text, up to one that is not Python: the run ends there."""
    texts = []
    for name in request.cells:
        text = request.overlays.get(name, "")
        try:
            ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            break
        texts.append(text)
    return "\n".join(texts)


def _stale(built: Built, folder: str) -> str:
    """Why a layer is not what a fresh import would give any more; empty if it is."""
    own = (
        path for path in sys.path[1:] if kind_of_file(os.path.join(path, "x")) is ModuleKind.OWN and os.path.isdir(path)
    )
    if hidden := hiding([folder, *own], built.names):
        return f"{hidden} stands in for a module that it imported."
    changed = next((file for file, then in built.files.items() if mtime(file) != then), "")
    return f"{changed} has changed." if changed else ""
