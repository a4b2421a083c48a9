"""What a script does itself with PyTorch/XLA: each graph that it runs is a compile of the run if XLA compiled it.

A mode sees the script's operations, and the functions of PyTorch/XLA that run what is pending are watched.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from irscope.capture.operation_graphs import Operation
from irscope.capture.run_book import RunBook
from irscope.events.stack import FramePlace, innermost_user, live_places
from irscope.internals.frames import callers
from irscope.internals.hooks import Undo, undo_all
from irscope.internals.lazy_tensors import inner
from irscope.pipeline_captures.xla import findings
from irscope.pipeline_captures.xla.device import TorchXla
from irscope.pipeline_captures.xla.frames import asked_by
from irscope.pipeline_captures.xla.graphs import Graphs
from irscope.pipeline_captures.xla.modules import Modules
from irscope.pipeline_captures.xla.program import compiled
from irscope.pipeline_captures.xla.tracing import Cut, Tracer
from irscope.protocol import Compile, CompileOutcome

Place = tuple[object, ...]
"""Where a graph ends: the user's calls, and what of PyTorch/XLA they called."""


@dataclasses.dataclass
class Site:
    """A place where graphs end, with the graph that XLA compiled last for it."""

    frame: int
    compile: Compile
    count: int = 0
    graph: list[Operation] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class Ending:
    """A graph that is about to be run because the script asks for it."""

    roots: list[str]
    operations: list[Operation]
    by: str
    places: list[FramePlace]


class LazyScript:
    """The lazy tensors of a script, outside of the programs that it passes to ``torch.compile``."""

    def __init__(self, book: RunBook, xla: TorchXla, graphs: Graphs, new_frame: Callable[[], int]) -> None:
        self._book, self._xla, self._graphs, self._new_frame = book, xla, graphs, new_frame
        self._modules = Modules()
        self._tracer = Tracer(
            xla,
            self._modules.stack,
            book.guarded(self._take),
            book.guarded(self._cut),
            is_script=True,
            guarded=book.guarded,
        )
        self._modules.on_root = book.guarded(self._tracer.name)
        self._mode = self._tracer.mode()
        self._is_on = self._is_used = self._is_outside = False
        self._sites: dict[Place, Site] = {}

    def watch(self, is_used: bool) -> Undo:
        """Begins to watch; returns what ends it.

        Args:
            is_used: Whether the script is known to use lazy tensors; if not, its operations are seen from the first
                time that it asks for the device.
        """
        watched = {
            "step_marker": lambda args: None,
            "sync_multi": lambda args: args[0],
            "get_cpu_tensors": lambda args: args[0],
        }
        undo = [self._xla.around(f"_xla_{name}", functools.partial(self._asked, of)) for name, of in watched.items()]
        undo.append(self._xla.around("_xla_get_default_device", self._device))
        if is_used:
            self._switch(True)
        return undo_all([*undo, lambda: self._switch(False)])

    @contextlib.contextmanager
    def outside(self, sees_syncs: bool) -> Iterator[None]:
        """What is done inside is not the script's: its operations are not seen.

        Args:
            sees_syncs: Whether the script's pending operations may be run inside.
        """
        was_on, was_outside, self._is_outside = self._is_on, self._is_outside, not sees_syncs
        was_quiet, self._tracer.is_quiet = self._tracer.is_quiet, True
        self._switch(False)
        try:
            yield
        finally:
            self._is_outside, self._tracer.is_quiet = was_outside, was_quiet
            self._switch(was_on)

    def _device(self, original: Callable[..., Any], *args: Any, **named: Any) -> Any:
        if not self._is_used and not self._is_outside:
            self._book.guarded(self._switch)(True)
        return original(*args, **named)

    def _switch(self, on: bool) -> None:
        if on == self._is_on:
            return
        if on:
            self._is_used = True
            self._mode.__enter__()
            self._modules.begin()
        elif not self._tracer.leave(self._mode):
            return  # a mode of the script's is above it; the tracer is quiet meanwhile
        else:
            self._modules.end()
        self._is_on = on

    # --- graphs -------------------------------------------------------------------------------------------------------

    def _asked(
        self, of: Callable[[tuple[Any, ...]], Sequence[Any] | None], original: Callable[..., Any], *args: Any, **named: Any
    ) -> Any:  # fmt: skip
        """A function of PyTorch/XLA runs what is pending of some tensors, or of all."""
        endings: list[Ending] = []
        if self._is_used and not self._is_outside:
            self._book.guarded(lambda: endings.extend(self._before(of(args))))()
        result = original(*args, **named)
        if endings:
            self._book.guarded(self._after)(endings[0])
        return result

    def _before(self, tensors: Sequence[Any] | None) -> Iterator[Ending]:
        roots = self._tracer.pending(None if tensors is None else [inner(one) for one in tensors])
        if roots:
            operations = self._tracer.graph(roots)
            self._take(self._tracer.live(roots))
            yield Ending(roots, operations, asked_by(callers()), live_places())

    def _after(self, ending: Ending) -> None:
        self._tracer.computed(ending.roots)
        compile = self._ran(ending.operations, ending.places, ending.by)
        findings.add_step(self._book, ending.by, compile, ending.places)
        self._tracer.restart()

    def _take(self, tensors: Sequence[Any]) -> None:
        self._graphs.forget()
        self._graphs.take(tensors)
        self._start = time.perf_counter()

    def _cut(self, cut: Cut, operations: list[Operation]) -> None:
        """A graph was run because its value was needed."""
        places = live_places()
        compile = self._ran(operations, places, cut.operator) if operations else None
        findings.add_cut(self._book, cut, compile, findings.with_libraries(places, cut.frames))

    def _ran(self, operations: list[Operation], places: list[FramePlace], by: str) -> Compile | None:
        """A graph was run; returns the compile of the run that it is, None if that is not known."""
        seconds = time.perf_counter() - self._start
        key = (*((place.file, place.range.start.line) for place in places), by)
        is_new = self._xla.has_compiled()
        if not is_new and key not in self._sites:  # it is a graph of another place
            self._graphs.forget()
            return None
        site = self._sites.get(key) or self._sites.setdefault(key, self._site(places))
        if is_new:
            compile = dataclasses.replace(site.compile, id=f"{site.frame}/{site.count}")
            if site.count:
                findings.add_recompilation(self._book, site.graph, operations, compile, places)
            site.compile, site.count, site.graph = compile, site.count + 1, operations
            self._book.put_compile(compiled(compile, operations, seconds))
            self._graphs.put(operations, compile, False)
        self._graphs.forget()
        return site.compile

    def _site(self, places: list[FramePlace]) -> Site:
        at = innermost_user(places)
        frame = self._new_frame()
        file, function, line, qualified = "", "backward", 1, ""
        if at is not None:
            place = places[at]
            file, function, line, qualified = place.file, place.function, place.range.start.line, place.qualified
        compile = Compile(f"{frame}/0", function, file, line, CompileOutcome.RUNNING, 0, 0, 0.0, qualified=qualified)
        return Site(frame, compile)
