"""What `torch.save` writes, where a process group meets, and what `multiprocessing` starts: no event of Python says so."""

from __future__ import annotations

import os
import types
from collections.abc import Callable
from typing import Any

from irscope.internals.hooks import Hook, Undo, replace_attribute


def hook(before: Callable[[Any], None]) -> Hook:
    """Calls ``before`` with the path of each file that `torch.save` is about to write."""

    def apply(serialization: types.ModuleType) -> Undo:
        name: Any = "_open_zipfile_writer"
        original = getattr(serialization, name)

        def opened(name_or_buffer: Any) -> Any:
            if isinstance(name_or_buffer, (str, os.PathLike)):
                before(name_or_buffer)
            return original(name_or_buffer)

        setattr(serialization, name, opened)
        return lambda: setattr(serialization, name, original)

    return Hook("files that torch.save writes", "torch.serialization", "2.9 to 2.13", apply)


def meeting_hook(before: Callable[[str, int], None]) -> Hook:
    """Calls ``before`` with host and port of each store over TCP; where it cannot be reached it tries for minutes."""

    def apply(rendezvous: types.ModuleType) -> Undo:
        name = "_create_c10d_store"
        original = getattr(rendezvous, name)

        def made(hostname: str, port: int, *rest: Any, **options: Any) -> Any:
            before(hostname, port)
            return original(hostname, port, *rest, **options)

        return replace_attribute(rendezvous, name, made)

    return Hook("where process groups meet", "torch.distributed.rendezvous", "2.9 to 2.13", apply)


def process_hook(before: Callable[[Any, Any], None]) -> Hook:
    """Calls ``before`` with program and arguments of each process that `multiprocessing` starts as a new program."""

    def apply(util: types.ModuleType) -> Undo:
        name = "spawnv_passfds"
        original = getattr(util, name)

        def started(path: Any, arguments: Any, handles: Any) -> Any:
            before(path, arguments)
            return original(path, arguments, handles)

        return replace_attribute(util, name, started)

    return Hook("processes that multiprocessing starts", "multiprocessing.util", "Python 3.10 to 3.14", apply)
