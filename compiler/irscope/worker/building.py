"""Builds a layer: does the imports of a script's head in a fork of the worker, and watches what they do besides.

What an import leaves in memory a fork keeps, so it is there as it would be in a fresh process: settings, registries,
handlers of signals and warnings, functions at exit, variables of the environment.  What a fork loses, or what must
happen once for each run, makes a layer *unsafe*: running threads and child processes, CUDA, open descriptors, output,
files that are written, connections, random numbers that are seeded.  So does whatever looks at what differs from script
to script (its arguments, its own modules), and a function that is compiled before the capture begins.  Operations
that run are such a thing too: they may start threads, and take memory on devices.
"""

from __future__ import annotations

import contextlib
import gc
import os
import random
import signal
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import Any

from irscope.internals.dynamo_hooks import compile_calls_hook
from irscope.internals.hooks import Hooks
from irscope.internals.modes import dispatch_mode
from irscope.protocol import CaptureGap
from irscope.vocabulary.records import dataclass
from irscope.worker import cuda
from irscope.worker.head import Step
from irscope.worker.modules import AskedNames, ModuleKind, kind_of_file

_SECONDS = 180
"""An import that takes longer is given up."""
_FORBIDDEN_EVENTS = {
    "os.fork": "starts a process",
    "os.forkpty": "starts a process",
    "os.posix_spawn": "starts a process",
    "os.exec": "starts a process",
    "os.system": "starts a process",
    "subprocess.Popen": "starts a process",
    "socket.connect": "opens a connection",
    "socket.bind": "opens a port",
}
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class UnsafeError(Exception):
    """These imports must be the script's own; the message says why."""


@dataclass(frozen=True)
class Built:
    """What the worker has to know of a layer.

    Args:
        names: Top-level modules that were looked for: a file of the user's by one of these names would be imported
            instead.
        files: Modification times of the files that were imported, in nanoseconds.
        environment: Variables that the imports have set; None: deleted.
    """

    names: tuple[str, ...]
    files: dict[str, int]
    environment: dict[str, str | None] = field(default_factory=dict)


def build(steps: Sequence[Step], script: str, cwd: str, env: dict[str, str], has_file: bool = True) -> Built:
    """Does the steps in this process.  Raises UnsafeError if a run could tell the difference.

    Args:
        has_file: Whether the main module knows its file: a script does, a notebook does not.
    """
    signal.alarm(_SECONDS)
    try:
        os.chdir(cwd)
        os.environ.clear()
        os.environ.update(env)
        sys.path[0] = os.path.dirname(os.path.realpath(script))
        main = vars(sys.modules["__main__"])
        if has_file:
            main["__file__"] = script
        else:
            main.pop("__file__", None)
        arguments = _Watched([script])
        sys.argv = arguments
        modules, before = set(sys.modules), _State()
        events: list[str] = []
        with (
            cuda.left_alone(),
            cuda.not_counted(),
            _output() as printed,
            _heard_events(events),
            _heard_seeds(events),
            _refused_compiles(events),
            AskedNames() as asked,
        ):
            environment = _run(steps, events)
        problems = [*events, *before.differences(), *_own_modules(set(sys.modules) - modules)]
        if arguments.read:
            problems.append("reads the script's arguments")
        if printed():
            problems.append("prints something")
        if problems:
            raise UnsafeError(_sentence(problems))
    except OSError as error:
        raise UnsafeError(f"The imports cannot be preloaded: {error}.") from error
    finally:
        signal.alarm(0)
    files = {file for name in set(sys.modules) - modules if (file := getattr(sys.modules[name], "__file__", None))}
    gc.collect()
    gc.freeze()
    return Built(tuple(sorted(asked.names)), {file: mtime(file) for file in files}, environment)


def mtime(file: str) -> int:
    """Nanoseconds; 0 if the file is gone."""
    try:
        return os.stat(file).st_mtime_ns
    except OSError:
        return 0


def _run(steps: Sequence[Step], events: list[str]) -> dict[str, str | None]:
    """Does the steps in order and returns what the imports among them did to the environment."""
    changes: dict[str, str | None] = {}
    variables: set[str] = set()
    filtered = seeded = False
    for step in steps:
        filtered, seeded = filtered or step.kind == "filter", seeded or step.kind == "seed"
        if step.kind in ("filter", "seed"):
            continue
        before, filters, drawn = dict(os.environ), list(warnings.filters), _random_states()
        try:
            with _no_operations(events):
                exec(step.text, {"__name__": "__main__"})
        except BaseException as error:
            raise UnsafeError(f"`{step.text}` fails: {type(error).__name__}: {error}") from error
        changed = {
            name: os.environ.get(name) for name in {*before, *os.environ} if before.get(name) != os.environ.get(name)
        }
        if step.kind == "variable":
            variables |= changed.keys()
        else:
            changes |= changed
            if seeded and drawn != _random_states():
                events.append("draws random numbers, which the script has seeded before")
            if filtered and filters != list(warnings.filters):
                events.append("sets filters of warnings, as the script did before")
    if variables & changes.keys():
        events.append("sets a variable of the environment that the script sets, too")
    return changes


def _sentence(problems: list[str]) -> str:
    return f"Importing this {', '.join(dict.fromkeys(problems))}."


def _own_modules(names: set[str]) -> Iterator[str]:
    for name in names:
        file = getattr(sys.modules.get(name), "__file__", None)
        if isinstance(file, str) and kind_of_file(file) is ModuleKind.OWN:
            yield f"imports {name} of the user's own files"


# --- what is watched --------------------------------------------------------------------------------------------------


class _Watched(list[str]):
    """Arguments that know whether they were read."""

    read = False

    def __getitem__(self, at: Any) -> Any:
        self.read = True
        return super().__getitem__(at)

    def __iter__(self) -> Iterator[str]:
        self.read = True
        return super().__iter__()

    def __len__(self) -> int:
        self.read = True
        return super().__len__()


class _State:
    """What an import must leave as it is."""

    def __init__(self) -> None:
        self._before = self._now()

    def _now(self) -> dict[str, object]:
        torch = sys.modules["torch"]
        return {
            "changes the working folder": os.getcwd(),
            "changes the search path": list(sys.path),
            "seeds random numbers": torch.initial_seed(),
            "opens descriptors": sorted(os.listdir("/proc/self/fd")),
            "handles the signal of children": signal.getsignal(signal.SIGCHLD),
        }

    def differences(self) -> list[str]:
        now = self._now()
        found = [what for what, before in self._before.items() if before is not None and now[what] != before]
        if threads() > 1:
            found.append("starts threads")
        with contextlib.suppress(ChildProcessError):
            os.waitpid(-1, os.WNOHANG)
            found.append("starts a process")
        if cuda.is_unusable_in_forks():
            found.append("touches CUDA")
        return found


def _random_states() -> tuple[object, ...]:
    return random.getstate(), sys.modules["torch"].get_rng_state().numpy().tobytes(), _numpy_state()


@contextlib.contextmanager
def _heard_seeds(events: list[str]) -> Iterator[None]:
    """A run gets its own seeds, so numbers that an import draws change nothing; but those that it seeds do."""
    modules: list[Any] = [module for name in ("random", "numpy.random") if (module := sys.modules.get(name))]
    seeds = [module.seed for module in modules]

    def noting(seed: Any) -> Any:
        def noted(*args: Any, **keywords: Any) -> Any:
            events.append("seeds random numbers")
            return seed(*args, **keywords)

        return noted

    for module, seed in zip(modules, seeds, strict=True):
        module.seed = noting(seed)
    try:
        yield
    finally:
        for module, seed in zip(modules, seeds, strict=True):
            module.seed = seed


def _numpy_state() -> object:
    """None if it is not imported: the import seeds it."""
    numpy = sys.modules.get("numpy.random")
    if numpy is None:
        return None
    kind, keys, *rest = numpy.get_state()
    return kind, keys.tobytes(), rest


def threads() -> int:
    """Threads of this process; those that are about to end are not counted."""
    for _ in range(10):
        count = len(os.listdir("/proc/self/task"))
        if count == 1:
            break
        time.sleep(0.01)
    return count


@contextlib.contextmanager
def _output() -> Iterator[Any]:
    """Keeps what is printed; gives a function that says whether there is any."""
    file = os.memfd_create("irscope-layer")
    kept = [os.dup(1), os.dup(2)]
    for fd in (1, 2):
        os.dup2(file, fd)
    size = 0
    try:
        yield lambda: size
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
        size = os.fstat(file).st_size
        for fd, target in zip(kept, (1, 2), strict=True):
            os.dup2(fd, target)
            os.close(fd)
        os.close(file)


@contextlib.contextmanager
def _heard_events(events: list[str]) -> Iterator[None]:
    """Notes what must not happen; an audit hook cannot be taken away, so it falls silent."""
    listening = True

    def heard(event: str, arguments: tuple[Any, ...]) -> None:
        if not listening:
            return
        if event in _FORBIDDEN_EVENTS:
            events.append(_FORBIDDEN_EVENTS[event])
        elif event == "open" and isinstance(arguments[2], int) and arguments[2] & _WRITING:
            path = arguments[0]
            if isinstance(path, (str, bytes)) and not _is_harmless(os.fsdecode(path)):
                events.append(f"writes {os.fsdecode(path)}")

    sys.addaudithook(heard)
    try:
        yield
    finally:
        listening = False


def _is_harmless(path: str) -> bool:
    return path == os.devnull or os.path.basename(os.path.dirname(path)) == "__pycache__"


@contextlib.contextmanager
def _no_operations(events: list[str]) -> Iterator[None]:
    mode: Any = dispatch_mode()

    class Noting(mode):  # type: ignore[misc]
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            result = func(*args, **(kwargs or {}))
            tensor = sys.modules["torch"].Tensor
            if any(isinstance(one, (tensor, list, tuple)) for one in (*args, result)):  # and not a library's version
                events.append(f"runs operations ({func})")
            return result

    with Noting():
        yield


@contextlib.contextmanager
def _refused_compiles(events: list[str]) -> Iterator[None]:
    """``torch.compile`` takes its backend when it is called: before the fast lane could put its own in its place."""

    def gap(gap: CaptureGap) -> None:
        events.append(f"may compile functions, which is not seen ({gap.why})")

    with Hooks([compile_calls_hook(lambda: events.append("compiles functions"))], gap):
        yield
