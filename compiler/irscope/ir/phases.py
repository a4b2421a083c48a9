"""Where the time of a compile went: PyTorch's own timed events as a tree of phases.

The events are the ``chromium_event`` records of the trace: a begin (``B``) and an end (``E``) with a time in
microseconds.  The data of a stage ``phases`` is what a flame chart draws:

``version``  1
``seconds``  of the whole, the backward's compile included.
``phases``   ``[name, parent, start, seconds, own, track]`` for each, parents before children: PyTorch's name; the index
             of the phase around it, -1 for none; seconds since the compile's first event; how long it took; how long
             without the phases of its thread inside it; a number for its thread, 0 being the one that compiles.  What
             begins in another thread (a kernel's compile) is inside the phase that thread 0 was in then.
             A phase that had not ended (the process died in it, or the trace ended) goes to the last event.
``metrics``  what ``compilation_metrics`` says of how long and how many, by PyTorch's names; among it the compile time
             of each Triton kernel (``triton_kernel_compile_times_us``, JSON in a text), which happens in other processes
             and has no phase of its own: the phases only have the wait for it.  So it is with C++ kernels.

`LABELS` has words for the names that matter.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from irscope.vocabulary.records import dataclass

VERSION = 1

LABELS = {
    "dynamo": "Dynamo, and all that it calls",
    "entire_frame_compile": "the whole compile",
    "entire_backward_compile": "the backward's compile, at the first backward call",
    "bytecode_tracing": "symbolic tracing of the user's code",
    "build_guards": "guards",
    "backend_compile": "backend",
    "_recursive_pre_grad_passes": "passes before autograd",
    "create_aot_dispatcher_function": "AOTAutograd",
    "aot_collect_metadata": "a first run on fake tensors",
    "aot_trace_joint_graph": "trace of the joint graph",
    "_recursive_joint_graph_passes": "passes on the joint graph",
    "min_cut_rematerialization_partition": "partition into forward and backward",
    "compile_fx.<locals>.fw_compiler_base": "the forward in Inductor",
    "compile_fx.<locals>.bw_compiler": "the backward in Inductor",
    "inductor_compile": "Inductor",
    "_recursive_post_grad_passes": "passes after autograd",
    "GraphLowering.run": "lowering to Inductor's IR",
    "Scheduler.__init__": "scheduling",
    "Scheduler.fused_nodes": "fusion",
    "Scheduler.codegen": "code of the kernels",
    "PythonWrapperCodegen.generate": "code of the wrapper",
    "compile_file": "C++ compiler",
    "async_compile.wait": "waiting for kernels to be compiled",
    "async_compile.precompile": "compiling Triton kernels",
    "PyCodeCache.load_by_key_path": "loading the output code",
}


_ORDINALS = ("first", "second", "third")


@dataclass(frozen=True)
class Phase:
    """One phase; times in seconds, ``start`` counts from the compile's first event."""

    name: str
    parent: int
    start: float
    seconds: float
    own: float
    track: int

    @property
    def label(self) -> str:
        """What the name means; empty if the name is clear, or its meaning is unknown."""
        if self.name.startswith("compile_attempt_"):
            return f"Dynamo, {_attempt(self.name.rpartition('_')[2])}"
        return LABELS.get(self.name, "")


def _attempt(number: str) -> str:
    """``first attempt`` of ``0``; PyTorch counts from 0, people from 1."""
    if not number.isdigit():
        return f"attempt {number}"
    return f"{_ORDINALS[int(number)]} attempt" if int(number) < len(_ORDINALS) else f"attempt {int(number) + 1}"


@dataclass(frozen=True)
class Event:
    """The begin or the end of a phase, at a time in microseconds, in a process and thread."""

    name: str
    when: float
    begins: bool
    where: tuple[Any, Any]


def event_of(payload: str | dict[str, Any], thread: object = None) -> Event | None:
    """A ``chromium_event``, as JSON or as it is, of a thread that the event itself does not tell.

    None for another kind of event (``i``: something happened).
    """
    try:
        event = json.loads(payload) if isinstance(payload, str) else payload
        if event["ph"] in ("B", "E"):
            return Event(
                str(event["name"]),
                float(event["ts"]),
                event["ph"] == "B",
                (event.get("pid"), event.get("tid") or thread),
            )
    except (ValueError, TypeError, KeyError):
        pass
    return None


def build(events: Iterable[Event]) -> list[Phase]:
    """The phases of a compile's events in the order of the trace."""
    begun: list[list[Any]] = []  # name, parent, start, end, track
    open_: dict[int, list[int]] = {}  # track → indices into it, outermost first
    tracks: dict[tuple[Any, Any], int] = {}
    last = 0.0
    for event in events:
        last = max(last, event.when)
        track = tracks.setdefault(event.where, len(tracks))
        stack = open_.setdefault(track, [])
        if event.begins:
            around = stack or open_.get(0) or [-1]
            begun.append([event.name, around[-1], event.when, None, track])
            stack.append(len(begun) - 1)
        else:
            # Threads share a number, so ends may not be in the reverse order of beginnings.
            match = next((i for i in range(len(stack) - 1, -1, -1) if begun[stack[i]][0] == event.name), None)
            if match is not None:
                begun[stack.pop(match)][3] = event.when
    if not begun:
        return []
    zero = min(phase[2] for phase in begun)
    inside = [0.0] * len(begun)
    for _, parent, start, end, track in begun:
        if parent >= 0 and begun[parent][4] == track:
            inside[parent] += (last if end is None else end) - start
    phases = []
    for (name, parent, start, end, track), children in zip(begun, inside, strict=True):
        took = (last if end is None else end) - start
        phases.append(
            Phase(name, parent, _seconds(start - zero), _seconds(took), _seconds(max(took - children, 0)), track)
        )
    return phases


def _seconds(microseconds: float) -> float:
    return round(microseconds / 1e6, 6)


def whole(phases: Sequence[Phase]) -> float:
    """Seconds of the clock in which the thread that compiles did any of it.  What was never said to end goes on until the
    last event, beside all that began after it."""
    outer = sorted(
        (phase.start, phase.start + phase.seconds) for phase in phases if phase.parent < 0 and phase.track == 0
    )
    seconds = until = 0.0
    for start, end in outer:
        seconds += max(0.0, end - max(start, until))
        until = max(until, end)
    return round(seconds, 6)


def to_data(phases: Sequence[Phase], metrics: Mapping[str, object]) -> dict[str, Any]:
    """As told above.  ``metrics`` are those of ``compilation_metrics``."""
    return {
        "version": VERSION,
        "seconds": whole(phases),
        "phases": [[p.name, p.parent, p.start, p.seconds, p.own, p.track] for p in phases],
        "metrics": {
            name: value
            for name, value in metrics.items()
            if name.endswith(("_s", "_us", "_count")) and isinstance(value, (int, float, str))
        },
    }


def from_data(data: Any) -> list[Phase]:
    """The inverse of `to_data`.  Raises ValueError if it is not such data."""
    try:
        if data["version"] != VERSION:
            raise ValueError("phases of another version")
        return [Phase(str(n), int(p), float(s), float(t), float(o), int(k)) for n, p, s, t, o, k in data["phases"]]
    except (KeyError, TypeError) as error:
        raise ValueError(f"not phases: {error!r}") from error


def whole_compile(seconds: float) -> list[Phase]:
    """A compile of which only the time as a whole is known; empty if it is not."""
    return [Phase("entire_frame_compile", -1, 0.0, seconds, seconds, 0)] if seconds > 0 else []
