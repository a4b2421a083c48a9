"""Hooks into what Inductor chooses by timing: the template or library call of an operator, and whether a matrix is padded.

A choice is known by the same key on every machine: sizes, strides and dtypes of what the operator reads.  So what one
machine has chosen can be chosen again for it on another one (`irscope.pipelines.inductor.tuning`).
"""

from __future__ import annotations

import contextlib
import functools
import math
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from irscope.internals.hooks import Hook, Undo, replace_attribute, undo_all

_VERSIONS = "2.11 and 2.13"
_TIMING = ("select_algorithm", "fx_passes.pad_mm", "ir", "scheduler")
_NUMBER = re.compile(r"_\d+$")
_MS = 1000.0
"""Inductor's benchmarks give milliseconds."""

Timed = tuple[str, float | None, str]
"""One option: what it is, its time in seconds, None if it was not or could not be timed, and why it failed."""


Tuned = Callable[[str, str, str, list[Timed]], None]
"""Gets Inductor's name of an operator (``mm``), the key of the choice, the name of the post-grad node (empty if it is not
known), and the options.  Inductor takes the first of those with the least time."""

Padded = Callable[[str, str, str, "tuple[float, float] | None", bool], None]
"""Gets operator, key and node likewise, the seconds of the multiplication as it is and padded (None if an earlier decision
was found in Inductor's cache), and whether it is padded."""


def tuning_hooks(tuned: Tuned, padded: Padded) -> list[Hook]:
    """Reports each choice that Inductor makes by timing.  The receivers must not raise."""
    return [
        Hook(
            "what max-autotune has timed",
            "torch._inductor.select_algorithm",
            _VERSIONS,
            functools.partial(_watch_templates, tuned),
        ),
        Hook(
            "whether matrices are padded",
            "torch._inductor.fx_passes.pad_mm",
            _VERSIONS,
            functools.partial(_watch_padding, padded),
        ),
    ]


def template_key(op: str, inputs: str) -> str:
    """What an operator's choice is known by; ``inputs`` is Inductor's own key of its inputs."""
    return f"{op} {inputs}"


def name_of_option(choice: Any) -> str:
    """A template with its configuration, or a library call, by a name that is the same in every process."""
    description = str(getattr(choice, "description", "") or "").strip()
    return " ".join(part for part in (_NUMBER.sub("", str(choice.name)), description) if part)


def _watch_templates(tuned: Tuned, select: Any) -> Undo:
    cls = select.AlgorithmSelectorCache
    choose, time_one = cls.do_autotuning, cls.benchmark_choice
    failures: dict[str, str] = {}

    def do_autotuning(self: Any, name: str, nodes: Any, layout: Any, gens: Any, key: Any, choices: Any, *args: Any, **kwargs: Any) -> Any:  # fmt: skip
        failures.clear()
        found = choose(self, name, nodes, layout, gens, key, choices, *args, **kwargs)
        tuned(name, template_key(name, str(key)), current_node(), _options(found, failures))
        return found

    def benchmark_choice(_: Any, choice: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return time_one(choice, *args, **kwargs)
        except Exception as error:
            failures[name_of_option(choice)] = f"{type(error).__name__}: {str(error).strip()}"[:500]
            raise

    return undo_all(
        [
            replace_attribute(cls, "do_autotuning", do_autotuning),
            replace_attribute(cls, "benchmark_choice", classmethod(benchmark_choice)),
        ]
    )


def _options(timings: Any, failures: dict[str, str]) -> list[Timed]:
    options: list[Timed] = []
    for choice, milliseconds in timings.items():
        name, timed = name_of_option(choice), math.isfinite(milliseconds)
        why = "" if timed else failures.get(name, "Inductor could not time it")
        options.append((name, milliseconds / _MS if timed else None, why))
    return options


def current_node() -> str:
    """The post-grad node that is being lowered in this thread; empty if there is none."""
    virtualized: Any = sys.modules["torch._inductor.virtualized"]
    node = getattr(virtualized.V.graph, "current_node", None)
    return "" if node is None else str(node.name)


def _watch_padding(padded: Padded, pad: Any) -> Undo:
    make_key, look_up, is_faster = pad.should_pad_bench_key, pad.get_cached_should_pad, pad.is_padded_faster
    nodes: dict[str, tuple[str, str]] = {}  # key → operator, node

    def should_pad_bench_key(match: Any, mat1: Any, mat2: Any, op: Any, *args: Any, **kwargs: Any) -> Any:
        key = make_key(match, mat1, mat2, op, *args, **kwargs)
        nodes[key] = (str(op).rpartition(".")[2], str(match.output_node().name))
        return key

    def get_cached_should_pad(key: str) -> Any:
        found = look_up(key)
        if found is not None:
            padded(*_named(nodes, key), None, bool(found))
        return found

    def is_padded_faster(key: str, as_it_is: float, with_padding: float) -> Any:
        chosen = is_faster(key, as_it_is, with_padding)
        padded(*_named(nodes, key), (as_it_is / _MS, with_padding / _MS), bool(chosen))
        return chosen

    return undo_all(
        [
            replace_attribute(pad, "should_pad_bench_key", should_pad_bench_key),
            replace_attribute(pad, "get_cached_should_pad", get_cached_should_pad),
            replace_attribute(pad, "is_padded_faster", is_padded_faster),
        ]
    )


def _named(nodes: dict[str, tuple[str, str]], key: str) -> tuple[str, str, str]:
    op, node = nodes.get(key, ("mm", ""))
    return op, key, node


class Replay(Protocol):
    """What another machine has chosen; see `irscope.pipelines.inductor.tuning.Choices`."""

    def template(self, key: str) -> dict[str, float | None] | None:
        """Times in seconds by option; None if it has not chosen for this key."""

    def padding(self, key: str) -> bool | None:
        """Whether it pads; None if it has not chosen for this key."""


_EPILOGUE_MS = 0.001
"""What a kernel after a template takes by itself: fused into the fastest option it costs nothing, so it is fused into a
template of Triton's that is the fastest, and no slower template is taken for its sake."""


def choose_again(replay: Replay, is_template: Callable[[Any], bool], open_choices: list[str]) -> None:
    """From now on in this process nothing is timed: what ``replay`` knows is chosen, else a fixed option.

    Where it is not known, that is the first of Triton's templates, whose fusions Inductor believes in, and no padding; and
    ``open_choices`` gets a text for the user.
    """
    select, pad, ir, scheduler = (sys.modules[f"torch._inductor.{name}"] for name in _TIMING)
    milliseconds: dict[Any, float] = {}  # by choice, in the order in which they were asked for

    def do_autotuning(_: Any, name: str, inputs: Any, layout: Any, gen: Any, key: Any, choices: Any, *__: Any, **___: Any) -> Any:  # fmt: skip
        known = replay.template(template_key(name, str(key))) or {}
        seconds = [known.get(name_of_option(choice)) for choice in choices]
        if any(each is not None for each in seconds):
            found = {choice: math.inf if s is None else _MS * s for choice, s in zip(choices, seconds, strict=True)}
        else:
            ordered = sorted(choices, key=lambda choice: not is_template(choice))
            open_choices.append(f"one of {len(ordered)} templates for {name}")
            found = {choice: 1.0 + number for number, choice in enumerate(ordered)}
        milliseconds.update(found)
        return dict(found)

    def get_cached_should_pad(key: str) -> bool:
        known = replay.padding(key)
        if known is None:
            open_choices.append("whether to pad a matrix")
        return bool(known)

    swap, swapped = ir.MultiTemplateBuffer.swap_as_triton_caller, [1.0]

    @contextlib.contextmanager
    def swap_as_triton_caller(self: Any, caller: Any) -> Iterator[Any]:
        swapped.append(milliseconds.get(caller, 1.0))
        try:
            with swap(self, caller) as found:
                yield found
        finally:
            swapped.pop()

    for holder, name, instead in (
        (select.AlgorithmSelectorCache, "do_autotuning", do_autotuning),
        (select.AlgorithmSelectorCache, "make_precompile_fn", lambda *_, **__: lambda: None),
        (pad, "get_cached_should_pad", get_cached_should_pad),
        (ir.MultiTemplateBuffer, "swap_as_triton_caller", swap_as_triton_caller),
        (scheduler.Scheduler, "benchmark_fused_nodes", lambda *_, **__: (_EPILOGUE_MS, "")),
        (scheduler.Scheduler, "benchmark_codegened_module", lambda *_, **__: (swapped[-1], "")),
    ):
        replace_attribute(holder, name, instead)
