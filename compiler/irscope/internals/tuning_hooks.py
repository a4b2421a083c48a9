"""Hooks into what Inductor chooses by timing: the template or library call of an operator, and whether a matrix is padded.

A choice is known by the same key on every machine: sizes, strides and dtypes of what the operator reads.  So what one
machine has chosen can be chosen again for it on another one (`irscope.pipeline_captures.inductor.tuning`).
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import logging
import math
import re
import sys
import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

from irscope.internals.frames import report
from irscope.internals.hooks import Hook, Undo, replace_attribute, undo_all
from irscope.protocol import CaptureGap
from irscope.vocabulary.records import dataclass

_VERSIONS = "2.11 and 2.13"
_SELECT = "torch._inductor.select_algorithm"
"""The module, and the name of its logger."""
_TIMING = ("select_algorithm", "fx_passes.pad_mm", "ir", "scheduler")
_NUMBER = re.compile(r"_\d+$")
_MS = 1000.0
"""Inductor's benchmarks give milliseconds."""


@dataclass(frozen=True)
class Choice:
    """One way to compute an operator.

    Args:
        name: Inductor's, with the number that it has in this process: ``triton_mm_7``.
        kind: The class of it in Inductor: ``TritonTemplateCaller``, ``ExternKernelCaller``.
        seconds: What a call took; None if it could not be timed.
        why_not: Why it could not, if that is known.
        estimate: Seconds by a model of a device that is not here; None: there is none.
    """

    name: str
    kind: str
    description: str
    seconds: float | None
    why_not: str = ""
    estimate: float | None = None


@dataclass(frozen=True)
class Tuned:
    """An operator that was autotuned; Inductor takes the first of the choices with the least time.

    Args:
        operator: Inductor's name: ``mm``.
        key: What the choice is known by on every machine.
        node: The name of the post-grad node; empty if it is not known.
        stack: The node's stack trace, as text; empty if it has none.
        inputs: ``float32[64, 128]`` of each input.
        errors: What was logged while the choices were timed, in order.
        why: Why one of the choices is taken though nothing is timed; empty: they were timed.
        chosen: Its number, from 0.
    """

    operator: str
    key: str
    node: str
    stack: str
    inputs: tuple[str, ...]
    choices: tuple[Choice, ...]
    errors: tuple[str, ...]
    why: str = ""
    chosen: int = 0


@dataclass(frozen=True)
class Padded:
    """A product of matrices that Inductor considered to pad; ``operator`` to ``stack`` as those of `Tuned`.

    Args:
        seconds: Seconds of the product as it is and padded; None if an earlier decision was found in Inductor's cache.
        is_padded: What was decided.
    """

    operator: str
    key: str
    node: str
    stack: str
    seconds: tuple[float, float] | None
    is_padded: bool


def tuning_hooks(tuned: Callable[[Tuned], None], padded: Callable[[Padded], None]) -> list[Hook]:
    """Reports each choice that Inductor makes by timing, also one whose times were in its cache.

    The receivers must not raise.  A stand-in for a device that is not here times nothing: what `choose_again` takes is
    reported with why.
    """
    return [
        Hook("what autotuning tried", _SELECT, _VERSIONS, functools.partial(_watch_templates, tuned)),
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
    """A template with its configuration, or a library call, by a name that is the same in every process.

    Args:
        choice: Inductor's, or a `Choice`.
    """
    return option_name(str(choice.name), str(getattr(choice, "description", "") or ""))


def option_name(name: str, description: str) -> str:
    """The same from Inductor's name, which ends with a number, and its description of the configuration."""
    return " ".join(part for part in (_NUMBER.sub("", name), description.strip()) if part)


def _watch_templates(tuned: Callable[[Tuned], None], select: Any) -> Undo:
    cls = select.AlgorithmSelectorCache
    choose, time_one, select_one = cls.do_autotuning, cls.benchmark_choice, cls.__call__
    failures: dict[str, str] = {}
    if choose.__module__ != select.__name__:
        return lambda: None

    @functools.wraps(choose)
    def do_autotuning(self: Any, name: str, nodes: Any, layout: Any, gens: Any, key: Any, choices: Any, *args: Any, **kwargs: Any) -> Any:  # fmt: skip
        failures.clear()
        with _heard() as errors:
            timings = choose(self, name, nodes, layout, gens, key, choices, *args, **kwargs)
        if timings:
            found = tuple(_choice(choice, milliseconds, failures) for choice, milliseconds in timings.items())
            tuned(_tuned(name, nodes, key, next(iter(timings)), found, tuple(errors)))
        return timings

    do_autotuning.report = tuned  # type: ignore[attr-defined]  # for `choose_again`, which takes its place

    def __call__(self: Any, name: str, choices: Any, *args: Any, **kwargs: Any) -> Any:
        _nodes.update(dict.fromkeys(choices, current_node()))
        return select_one(self, name, choices, *args, **kwargs)

    def benchmark_choice(_: Any, choice: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return time_one(choice, *args, **kwargs)
        except Exception as error:
            failures[name_of_option(choice)] = f"{type(error).__name__}: {str(error).strip()}"[:500]
            raise

    return undo_all(
        [
            replace_attribute(cls, "__call__", __call__),
            replace_attribute(cls, "do_autotuning", do_autotuning),
            replace_attribute(cls, "benchmark_choice", classmethod(benchmark_choice)),
        ]
    )


_nodes: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
"""By choice the node that it is for: many are timed later, when fusions are decided."""


def _tuned(name: str, nodes: Any, key: Any, choice: Any, found: tuple[Choice, ...], *rest: Any) -> Tuned:
    node = _nodes.get(choice) or current_node()
    shapes = tuple(map(_shape, nodes))
    return Tuned(name, template_key(name, str(key)), _name_of(node), _stack_of(node), shapes, found, *rest)


def _choice(choice: Any, milliseconds: float, failures: dict[str, str]) -> Choice:
    is_timed = math.isfinite(milliseconds)
    return Choice(
        str(choice.name),
        type(choice).__name__,
        str(getattr(choice, "description", "") or ""),
        milliseconds / _MS if is_timed else None,
        "" if is_timed else failures.get(name_of_option(choice), ""),
    )


class _Heard(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())


@contextlib.contextmanager
def _heard() -> Iterator[list[str]]:
    """What Inductor warns of meanwhile: choices that fail (torch 2.13)."""
    handler, logger = _Heard(), logging.getLogger(_SELECT)
    logger.addHandler(handler)
    try:
        yield handler.texts
    finally:
        logger.removeHandler(handler)


def current_node() -> Any:
    """The post-grad node that is being lowered in this thread; None if there is none."""
    virtualized: Any = sys.modules["torch._inductor.virtualized"]
    return getattr(virtualized.V.graph, "current_node", None)


def stack_of_current_node() -> str:
    """Where the node that is being lowered was traced, as PyTorch prints frames; empty if there is none."""
    return _stack_of(current_node()) if "torch._inductor.virtualized" in sys.modules else ""


def _name_of(node: Any) -> str:
    return str(getattr(node, "name", ""))


def _stack_of(node: Any) -> str:
    return str((getattr(node, "meta", None) or {}).get("stack_trace") or "")


def _shape(node: Any) -> str:
    try:
        return f"{str(node.get_dtype()).removeprefix('torch.')}[{', '.join(map(str, node.get_size()))}]"
    except Exception:  # noqa: BLE001  an input that has no size, as an effect
        return type(node).__name__


def _watch_padding(padded: Callable[[Padded], None], pad: Any) -> Undo:
    make_key, look_up, is_faster = pad.should_pad_bench_key, pad.get_cached_should_pad, pad.is_padded_faster
    nodes: dict[str, tuple[str, str, str]] = {}  # key → operator, node, stack
    if look_up.__module__ != pad.__name__:
        return lambda: None

    def should_pad_bench_key(match: Any, mat1: Any, mat2: Any, op: Any, *args: Any, **kwargs: Any) -> Any:
        key = make_key(match, mat1, mat2, op, *args, **kwargs)
        node = match.output_node()
        nodes[key] = (str(op).rpartition(".")[2], _name_of(node), _stack_of(node))
        return key

    def about(key: str) -> tuple[str, str, str, str]:
        op, node, stack = nodes.get(key, ("mm", "", ""))
        return op, key, node, stack

    def get_cached_should_pad(key: str) -> Any:
        found = look_up(key)
        if found is not None:
            padded(Padded(*about(key), None, bool(found)))
        return found

    def is_padded_faster(key: str, as_it_is: float, with_padding: float) -> Any:
        chosen = is_faster(key, as_it_is, with_padding)
        padded(Padded(*about(key), (as_it_is / _MS, with_padding / _MS), bool(chosen)))
        return chosen

    return undo_all(
        [
            replace_attribute(pad, "should_pad_bench_key", should_pad_bench_key),
            replace_attribute(pad, "get_cached_should_pad", get_cached_should_pad),
            replace_attribute(pad, "is_padded_faster", is_padded_faster),
        ]
    )


class Replay(Protocol):
    """What another machine has chosen, and what is taken where it has not; see
    `irscope.pipeline_captures.inductor.target_choices`."""

    def template(self, key: str) -> dict[str, float | None] | None:
        """Times in seconds by option; None if it has not chosen for this key."""

    def padding(self, key: str) -> bool | None:
        """Whether it pads; None if it has not chosen for this key."""

    def estimate(self, sizes: tuple[int, ...], dtype: str, itemsize: int, options: dict[str, str]) -> float | None:
        """Seconds of a template for matrices of ``batch, rows, columns, inner``; None: not known."""

    def number(self, name: str) -> int | None:
        """Which choice the user wants, counted from 1; None: the first."""


_EPILOGUE_MS = 0.001
"""What a kernel after a template takes by itself: fused into the fastest option it costs nothing, so it is fused into a
template of Triton's that is the fastest, and no slower template is taken for its sake."""


def choose_again(replay: Replay, is_template: Callable[[Any], bool], open_choices: list[str]) -> None:
    """From now on in this process nothing is timed: what ``replay`` knows is chosen, else what is best without a clock.

    Where it is not known, that is the template of Triton's with the least estimate, whose fusions Inductor believes in,
    for FlexAttention PyTorch's own default for the device, and no padding; and ``open_choices`` gets a text for the user.
    """
    select, pad, ir, scheduler = (sys.modules[f"torch._inductor.{name}"] for name in _TIMING)
    milliseconds: dict[Any, float] = {}  # by choice, in the order in which they were asked for
    report = getattr(select.AlgorithmSelectorCache.do_autotuning, "report", None)

    def do_autotuning(_: Any, name: str, inputs: Any, layout: Any, gen: Any, key: Any, choices: Any, *__: Any, **___: Any) -> Any:  # fmt: skip
        known = replay.template(template_key(name, str(key))) or {}
        seconds = [known.get(name_of_option(choice)) for choice in choices]
        if any(each is not None for each in seconds):
            found = {choice: math.inf if s is None else _MS * s for choice, s in zip(choices, seconds, strict=True)}
        else:
            ranked, chosen, why = _ranked(replay, is_template, name, inputs, layout, choices)
            open_choices.append(f"one of {len(ranked)} templates for {name}")
            found = {choice: 1.0 + number for number, (choice, _) in enumerate(ranked)}
            found[ranked[chosen][0]] = 0.5
            if report is not None:
                listed = tuple(
                    dataclasses.replace(_choice(choice, math.inf, {}), estimate=estimate) for choice, estimate in ranked
                )
                report(_tuned(name, inputs, key, ranked[0][0], listed, (), why, chosen))
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


_FLEX = {
    "flex_attention": "get_flex_attention_fwd_configs",
    "flex_attention_backward": "get_flex_attention_bwd_configs",
}
_OPTION = re.compile(r"(\w+)=('[^']*'|[^,]+)")
_LIKE_MM = ("mm", "addmm", "bmm", "baddbmm")


def _ranked(
    replay: Replay, is_template: Callable[[Any], bool], name: str, inputs: Any, layout: Any, choices: Any
) -> tuple[list[tuple[Any, float | None]], int, str]:
    """The choices with their estimates in seconds, the best first, the number of the one to take, and why it is."""
    options = {choice: dict(_OPTION.findall(str(getattr(choice, "description", "") or ""))) for choice in choices}
    estimates: dict[Any, float | None] = {choice: None for choice in choices if is_template(choice)}
    default = _default_of_flex(name, inputs) if name in _FLEX else None
    if default is not None:
        why = "PyTorch's own default for this GPU"
        ordered = sorted(
            estimates, key=lambda choice: any(options[choice].get(key) != value for key, value in default.items())
        )
    else:
        if name in _LIKE_MM:
            estimates.update(_estimates(replay, name, inputs, layout, {each: options[each] for each in estimates}))
        why = "the least estimate" if any(estimates.values()) else "the first of Triton's templates"
        ordered = sorted(estimates, key=lambda choice: estimates[choice] or math.inf)
    ordered += [choice for choice in choices if choice not in estimates]
    ranked = [(choice, estimates.get(choice)) for choice in ordered]
    number = replay.number(name) or 0
    return (ranked, number - 1, f"--config {number}") if 1 <= number <= len(ranked) else (ranked, 0, why)


def _estimates(
    replay: Replay, name: str, inputs: Any, layout: Any, options: Mapping[Any, dict[str, str]]
) -> dict[Any, float | None]:
    """None are known, which leaves a gap, of sizes that are not known, or a layout that is not as expected."""
    try:
        return _estimated(replay, inputs, layout, options)
    except Exception as error:  # noqa: BLE001
        report(CaptureGap(f"estimates of the choices for {name}", f"{type(error).__name__}: {error}"))
        return {}


def _estimated(
    replay: Replay, inputs: Any, layout: Any, options: Mapping[Any, dict[str, str]]
) -> dict[Any, float | None]:
    sizevars = sys.modules["torch._inductor.virtualized"].V.graph.sizevars
    hint = getattr(sizevars, "optimization_hint", None) or sizevars.size_hint  # until torch 2.11
    *batch, rows, columns = (int(hint(size)) for size in layout.size)
    sizes = (math.prod(batch), rows, columns, int(hint(inputs[-2].get_size()[-1])))
    dtype = inputs[-2].get_dtype()
    named = str(dtype).removeprefix("torch.")
    return {choice: replay.estimate(sizes, named, dtype.itemsize, each) for choice, each in options.items()}


def _default_of_flex(name: str, inputs: Any) -> dict[str, str] | None:
    """The configuration that PyTorch takes without max-autotune, as the description of a choice has it."""
    try:
        config, virtualized = (sys.modules[f"torch._inductor.{module}"] for module in ("config", "virtualized"))
        with config.patch(max_autotune=False):
            (default, *_) = getattr(virtualized.V.choices, _FLEX[name])(
                int(inputs[0].get_size()[-1]), inputs[0].get_dtype(), "cuda"
            )
        return {key.upper() if key.startswith("block") else key: str(value) for key, value in vars(default).items()}
    except Exception as error:  # noqa: BLE001  then the first is taken, which says so
        report(CaptureGap(f"PyTorch's default for {name}", f"{type(error).__name__}: {error}"))
        return None
