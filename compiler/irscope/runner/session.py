"""The capture of one run: starts what its pipeline captures with, and ends it."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import sys
import types
from collections.abc import Callable
from typing import TYPE_CHECKING

from irscope.capture.base import capture_of
from irscope.capture.run_book import RunBook
from irscope.events.listening import listen
from irscope.events.raised import place_of, raised_of
from irscope.internals.hooks import Hook, Hooks, Undo
from irscope.internals.script_exports import packages
from irscope.pipelines.registry import pipeline_named, role_of
from irscope.protocol import CaptureGap, CompileSeen, FactsWritten, FindingSeen, Lane, Message, RunRequest, ScriptEnded
from irscope.runner import entries, on_cpu
from irscope.runner.joining import process_facts
from irscope.runner.messages import MessagePipe
from irscope.runner.steady import SteadyState
from irscope.system import last_words
from irscope.system.commands import name_folders_after
from irscope.usercode.source import digest_of, read_source
from irscope.usercode.user_files import is_user_file
from irscope.vocabulary.stages import Role
from irscope.vocabulary.visible import bounded

if TYPE_CHECKING:
    from irscope.internals.runtime_collectives import RuntimeCollectives
    from irscope.internals.whereabouts import Whereabouts
    from irscope.runner.answering import Answering
    from irscope.runner.evidence import Evidence
    from irscope.runner.rounds import Rounds
    from irscope.runner.trial import Held
from typing import Any


class Session:
    """Captures from `start` to `finish`.

    An internal error becomes a capture gap and never reaches the script.
    Raises LookupError if the request names an unknown pipeline.

    Args:
        in_fork: Called in a fork of the script's, where this capture has ended, with `RunRequest.children`, if there is
            one, and with the error because of which it is called again.
    """

    def __init__(
        self,
        request: RunRequest,
        messages: MessagePipe,
        held: Held | None = None,
        in_fork: Callable[[str, Exception | None], None] = lambda address, error: None,
    ) -> None:
        self._in_fork = in_fork
        self._request, self._messages, self._held = request, messages, held
        self._steady = SteadyState(request.budget.steady_calls or 0, messages.send)
        self._book = RunBook(request, self._send, messages.send)
        self._capture = capture_of(pipeline_named(request.pipeline), self._book)
        self._stop_listening: list[Undo] = []
        self._device = ""
        self._process: FactsWritten | None = None
        self._answering: Answering | None = None
        self._whereabouts = self._new_whereabouts() if is_real_rank(request) else None
        self._groups: dict[str, int] = {}
        self._of_runtime = self._new_runtime_collectives() if request.world else None
        steady = [self._steady.hook()] if request.budget.steady_calls else []
        self._rounds = self._new_rounds() if request.rounds or request.evidence else None
        rounds = self._rounds.hooks() if self._rounds else []  # after the capture's, so that it sees their results
        flipped = self._flips()
        hooks = [
            *(held.hooks if held else ()),
            *flipped,
            *self._capture.hooks(),
            *entries.hooks_for(request),
            *steady,
            *rounds,
            *(self._of_runtime.hooks() if self._of_runtime is not None else ()),
            *(self._whereabouts.hooks() if self._whereabouts is not None else ()),
        ]
        self._hooks = Hooks(hooks, self._book.gap)

    def _new_runtime_collectives(self) -> RuntimeCollectives:
        from irscope.internals.runtime_collectives import RuntimeCollectives  # here: only ranks need it

        return RuntimeCollectives(self._request.fake_group)

    def _new_whereabouts(self) -> Whereabouts:
        from irscope.internals.whereabouts import Whereabouts  # here: only real ranks need it

        return Whereabouts()

    def _flips(self) -> list[Hook]:
        """Other defaults, where the run is to show what they cause."""
        request = self._request
        if not (request.settings or request.without or request.code):
            return []
        from irscope.internals import flips, older_code  # here: only a comparison of versions needs them

        return [*flips.hooks(request.settings, request.without), *older_code.hooks(request.code)]

    def _new_rounds(self) -> Rounds | Evidence:
        # Here: only the runs of a comparison, profiles and proofs need them.
        from irscope.runner.evidence import Evidence
        from irscope.runner.profiling import Profiling
        from irscope.runner.rounds import Rounds

        request, why = self._request, self._capture.why_as_python
        if request.evidence:
            free = self._held.but if self._held else ()
            again = request.lane is Lane.FAST or request.steps > 0
            return Evidence(request.evidence, again, request.without_compile, free, request.steps)
        if request.steps and not request.profile:
            from irscope.runner.steps import Steps

            return Steps(request.rounds, why, lambda: len(self._book.stage_refs))
        if not request.profile:
            return Rounds(request.rounds, why)
        compiled = (lambda: len(self._book.stage_refs)) if request.memory else None
        profiling = Profiling(request.rounds, why, request.profile, self._has_backward, self._messages.send, compiled)
        profiling.end_after(request.steps)
        return profiling

    def _has_backward(self) -> bool:
        """Whether a backward was compiled so far."""
        from irscope.provenance import chain  # here: few runs ask, and it comes with all of that room

        return any(
            role_of(stage.name) is Role.CODE and chain.is_backward(stage)
            for stage in self._book.stage_refs.values()
            if not stage.target
        )

    def start(self) -> None:
        """Begin to capture."""
        name_folders_after(self._request.run)
        self._stop_listening = [listen(handler, handler.LOGGER) for handler in self._capture.handlers()]
        self._hooks.__enter__()
        if is_real_rank(self._request):
            self._book.guarded(self._begin_to_answer)()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._in_child)

    def _begin_to_answer(self) -> None:
        """For a real rank: keeps its process, and lets `irscope attach` ask it."""
        from irscope.runner.answering import Answering  # here: only ranks need it

        self._messages.send(process_facts())
        self._answering = Answering(self._request)
        self._answering.start()

    def script_ended(self, exit_code: int, error: str, raised: BaseException | None = None) -> None:
        """Send how the script ended: its exit code, the error that ended it or an empty text, and the exception."""
        if self._book.is_open:
            told = place = None
            with contextlib.suppress(
                BaseException
            ):  # an exception of the script's may raise where it is asked for a text
                place = None if raised is None else place_of(raised)
                told = None if raised is None else raised_of(raised)
                if raised is not None and told is not None and isinstance(raised, RuntimeError):
                    from irscope.runner.out_of_memory import out_of_memory  # here: most scripts end well

                    told = dataclasses.replace(told, memory=out_of_memory(raised))
            ended = ScriptEnded(exit_code, bounded(error), told, place)
            last_words.say(ended)
            self._messages.send(ended)

    def left_out(self, package: str) -> None:
        """A package that a notebook's cell imports is missing, and a stand-in that does nothing is in its place."""
        why = f"{package} is not installed in {sys.executable}. Install it there if what is compiled depends on it."
        self._book.gap(CaptureGap(f"what the cells do with {package}: it is left out", why))

    def hidden(self, package: str, file: str) -> None:
        """PyTorch imports a file of the user's in place of a package that it looks for."""
        why = f"`import {package}` finds {file}, in PyTorch, too: rename it"
        self._book.gap(CaptureGap(f"what PyTorch does with {package}", why))

    def serve_rounds(self) -> None:
        """If this run is a part of a comparison, a profile or a proof: end the capture, and look at the compiled programs."""
        if self._rounds is not None and self._book.is_open:
            self._rounds.look()
            self.finish()
            self._rounds.serve()

    def finish(self) -> None:
        """Undoes everything that `start` did."""
        if not self._book.is_open:
            return
        if self._whereabouts is not None:
            self._whereabouts.stop()
        self._book.guarded(self._capture.finish)()
        option = "--target" if self._request.targets else "--world"
        if named := on_cpu.what_changed():
            self._book.gap(CaptureGap("what the script does on the GPU", f"a run with {option} is on the CPU: {named}"))
        with self._book.lock:
            for stop in self._stop_listening:
                stop()
            self._hooks.__exit__()
            self._book.guarded(self._keep_device)()
            self._book.guarded(self._keep_files)()
            if packages:
                self._keep("packages", len(packages))
            self._book.guarded(self._keep_groups)()
            self._book.guarded(self._keep_one_rank)()
            self._book.guarded(self._keep_arrivals)()
            self._book.guarded(self._keep_runtime_collectives)()
            self._book.close()

    def _send(self, message: Message) -> None:
        self._messages.send(message)
        if self._answering is not None:
            self._answering.note(message)
        if isinstance(message, CompileSeen):
            self._book.guarded(self._keep_device)()  # now, since a crash may end the run
            self._book.guarded(self._keep_groups)()  # now, since scripts destroy them at their end
            self._book.guarded(self._keep_process)()  # now, since multiprocessing names a process after it has begun
            self._steady.compile_changed(message.compile)
        elif isinstance(message, FindingSeen):
            self._steady.found(message.finding)

    def _keep(self, name: str, value: object) -> None:
        """Keeps one of `RUN_FACTS`."""
        self._messages.send(FactsWritten({name: value}))

    def _keep_device(self) -> None:
        """Keeps the name of the GPU as soon as the script uses one."""
        if not self._device and (name := device_name()):
            self._device = name
            self._keep("device", name)

    def _keep_process(self) -> None:
        """For a process that the script has started: keeps which one it is."""
        if not self._request.is_child:
            return
        if (facts := process_facts()) != self._process:
            self._process = facts
            self._messages.send(facts)

    def _keep_files(self) -> None:
        """Keeps which of the user's files the run had, for who wants to run it again (`Store.how_run`)."""
        self._keep("files", _files_of_the_user())

    def _keep_one_rank(self) -> None:
        """For a rank of a job: keeps whether PyTorch has the option that takes the rank out of graphs, and whether it
        is on."""
        if not self._request.world:
            return
        for name in ("torch.compiler.config", "torch.distributed.config"):  # torch 2.14 warns where the second is read
            is_on = getattr(sys.modules.get(name), "compile_on_one_rank", None)
            if isinstance(is_on, bool):
                self._keep("compile_on_one_rank", is_on)
                return

    def _keep_groups(self) -> None:
        """For a rank of a job: keeps how many ranks each process group has, since graphs have its name alone."""
        if not self._request.world or "torch.distributed" not in sys.modules:
            return
        from irscope.internals.process_groups import group_sizes  # here: only ranks need it

        known = {**self._groups, **group_sizes()}
        if known != self._groups:
            self._groups = known
            self._keep("groups", known)

    def _keep_arrivals(self) -> None:
        """For a real rank: keeps when it arrived at each collective."""
        request = self._request
        if request.world and not request.fake_group and "torch.distributed" in sys.modules:
            from irscope.internals.flight_recorder import arrivals  # here: only ranks need it

            where = self._whereabouts
            if found := arrivals() if where is None else arrivals(where.between, where.at):
                self._keep("arrivals", list(found))

    def _keep_runtime_collectives(self) -> None:
        """For a rank: keeps the collectives that are in no graph, as FSDP2's."""
        if self._of_runtime is None or "torch.distributed" not in sys.modules:
            return
        from irscope.internals.flight_recorder import entries

        where = self._whereabouts
        if rows := self._of_runtime.rows(entries(), where.at) if where is not None else self._of_runtime.rows():
            self._keep("runtime_collectives", rows)

    def _in_child(self) -> None:
        """In a fork of the script's: this capture ends, and one of the fork begins, if forks are followed."""
        if not self._book.is_open:  # that of a parent of the parent
            return
        self._messages.close()
        if self._answering is not None:
            self._answering.close()
        if self._whereabouts is not None:
            self._whereabouts.stop()
        last_words.forget()
        self._book.close()
        if not self._request.children:
            return
        try:
            for stop in self._stop_listening:
                stop()
            self._hooks.__exit__()
            self._in_fork(self._request.children, None)
        except Exception as error:  # noqa: BLE001  the script must go on
            self._in_fork(self._request.children, error)


def is_real_rank(request: RunRequest) -> bool:
    """Whether this process is a rank of a job that exists, and not one that a rank has started."""
    return bool(request.world) and not request.fake_group and not request.is_child


_MOST_FILES = 2000
_GENERATED = "torch."
"""What the names of modules begin with that Inductor has written into its cache, which may be emptied."""


def _files_of_the_user() -> dict[str, str]:
    """The user's files that were imported, with digests of their texts."""
    paths = [
        (name, path)
        for name, module in list(sys.modules.items())
        # A script may put there what it likes, and asking such an object for an attribute can do anything.
        if issubclass(type(module), types.ModuleType) and type(name) is str and not name.startswith(_GENERATED)
        if isinstance(path := vars(module).get("__file__"), str) and path.endswith(".py")
    ]
    # Thousands of modules are below a few packages that are not the user's, and a hundred are Python's own: only the
    # others are looked up on the disk.
    own = os.path.dirname(os.__file__) + os.sep
    paths = [
        (name, path) for name, path in paths if not path.startswith(own) or "-packages" in path or name == "__main__"
    ]
    libraries = {
        name: os.path.dirname(path) + os.sep
        for name, path in paths
        if "." not in name and path.endswith("__init__.py") and not is_user_file(path)
    }
    mine = [
        path
        for name, path in paths
        if not path.startswith(libraries.get(name.partition(".")[0], "\0")) and is_user_file(path)
    ]
    return {path: digest_of(text) for path in mine[:_MOST_FILES] if (text := read_source(path))}


def device_name() -> str:
    """As PyTorch reports it, ``NVIDIA H100 80GB HBM3``; empty while the script itself has not initialized CUDA.

    Nothing is initialized for it: a context costs memory and time, and afterwards no fork of the script could use CUDA.
    """
    cuda: Any = getattr(sys.modules.get("torch"), "cuda", None)
    try:
        return str(cuda.get_device_name()) if cuda is not None and cuda.is_initialized() else ""
    except (RuntimeError, AttributeError):  # a kernel has failed, and no call of CUDA's works any more
        return ""
