"""The arguments of ``launch`` and ``attach``, checked, as what the driver and the store understand."""

from __future__ import annotations

import dataclasses
import math
import os
import shutil
import sys
from dataclasses import dataclass

from irscope.driver.driver import RunSpec
from irscope.pipelines.registry import pipeline_named
from irscope.protocol import DEFAULT_PIPELINE, Budget, Lane, ValuesRequest
from irscope.store.store import default_path
from irscope.vocabulary.limits import LIMITS, budget_of

from irscope_server.dap.protocol.value_requests import values_of
from irscope_server.dap.protocol.wire import Arguments, RequestFailed, WrongMessage

STOP_ON = ("entry", "stage", "pass", "none")
"""Where a session stops by itself: at its beginning, where each stage begins, where a pass changed the graph."""


@dataclass(frozen=True)
class Wanted:
    """What is to be debugged.

    Args:
        spec: The script to run; None: a stored run is looked at.
        stop_on: Values of `STOP_ON`; None: at the first breakpoint, or at the beginning if there is none.
        run: The id of the stored run, or a part that only it begins with; empty: the newest that came to its end.
        program: Without a run: the file of which the newest run is wanted; empty: of any.
    """

    store: str
    stop_on: frozenset[str] | None
    spec: RunSpec | None = None
    run: str = ""
    program: str = ""
    only_run: bool = False
    """Run it and show what it prints, and debug nothing."""
    attached: bool = False
    """It was asked for by ``attach``, also where its script is run again."""
    just_my_code: bool = True
    """Steps go past frames of libraries."""
    values: ValuesRequest | None = None
    """What `attach` asks for of a run's numbers."""
    python: str = ""
    """The interpreter that evaluates expressions over tensors; empty: the adapter's own."""


def launch_of(arguments: Arguments) -> Wanted:
    """Raises RequestFailed with a sentence for what cannot be launched."""
    program = arguments.text("program")
    cwd = arguments.text("cwd", "")
    if not program or "\0" in program + cwd:
        raise WrongMessage("'program' must be the path of a Python script.")
    if cwd and not os.path.isdir(cwd):
        raise RequestFailed(f"Working folder not found: {cwd}.", show=True)
    path = os.path.join(cwd or os.getcwd(), os.path.expanduser(program))
    if not os.path.isfile(path):
        raise RequestFailed(f"File not found: {path}.", show=True)
    budget = _budget(arguments)
    words = arguments.texts("args")
    if any("\0" in word for word in words):
        raise WrongMessage("'args' must hold words without zero bytes.")
    python = os.path.expanduser(arguments.text("python", "")) or sys.executable
    if "\0" in python or shutil.which(python) is None:
        raise RequestFailed(f"No Python interpreter at {python}. Name one that has torch ('python').", show=True)
    spec = RunSpec(
        path,
        tuple(words),
        Lane.DEEP,
        python=python,
        cwd=cwd or None,
        env=arguments.variables("env") or None,
        budget=budget,
        values=values_of(arguments),
    )
    spec = _with(spec, "target", arguments.text("target", ""), ("", "native"))
    spec = dataclasses.replace(spec, pipeline=_pipeline(arguments.text("pipeline", DEFAULT_PIPELINE)))
    return Wanted(
        _store(arguments),
        _stop_on(arguments),
        spec,
        only_run=arguments.flag("noDebug"),
        just_my_code=_just_my_code(arguments),
        python=spec.python,
    )


def _budget(arguments: Arguments) -> Budget:
    """The limits that have an attribute of a launch configuration."""
    values: dict[str, float | None] = {}
    for name, row in LIMITS.items():
        if row.launch:
            value = values[name] = arguments.number(row.launch, 0.0)
            if not 0 <= value < math.inf:
                raise WrongMessage(f"{row.launch!r} must be a number of {row.unit.name}, or 0 for no limit.")
    return budget_of(values)


def _pipeline(name: str) -> str:
    """A pipeline's name.  Raises RequestFailed for an unknown pipeline."""
    try:
        return pipeline_named(name or DEFAULT_PIPELINE).name
    except LookupError as error:
        raise RequestFailed(str(error.args[0]), show=True) from error


def _with(spec: RunSpec, name: str, value: str, usual: tuple[str, ...]) -> RunSpec:
    """The spec with a target or pipeline, if this version of irscope can run one."""
    if value in usual:
        return spec
    if name not in {each.name for each in dataclasses.fields(spec)}:
        raise RequestFailed(f"The {name} {value!r} cannot be run by this version of irscope.", show=True)
    return dataclasses.replace(spec, **{name: value})  # type: ignore[arg-type]


def attach_of(arguments: Arguments) -> Wanted:
    """Raises RequestFailed with a sentence for what cannot be attached to."""
    store = _store(arguments)
    if not os.path.isfile(store):
        raise RequestFailed(f"Run store not found: {store}. Run something first: irscope run SCRIPT.py", show=True)
    arguments.variables("env")
    return Wanted(
        store, _stop_on(arguments), run=arguments.text("run", ""), program=_program(arguments), attached=True,
        just_my_code=_just_my_code(arguments), values=values_of(arguments), python=arguments.text("python", ""),
    )  # fmt: skip


def _just_my_code(arguments: Arguments) -> bool:
    return arguments.flag("justMyCode", True)


def _program(arguments: Arguments) -> str:
    path = arguments.text("program", "")
    if "\0" in path:
        raise WrongMessage("'program' must be the path of a Python script.")
    return os.path.abspath(os.path.expanduser(path)) if path else ""


def _store(arguments: Arguments) -> str:
    path = arguments.text("store", "")
    if "\0" in path:
        raise WrongMessage("'store' must be the path of a file.")
    return os.path.expanduser(path) or default_path()


def _stop_on(arguments: Arguments) -> frozenset[str] | None:
    value = arguments.raw("stopOn")
    if value is None:
        if "stopOnEntry" not in arguments:
            return None
        return frozenset({"entry"} if arguments.flag("stopOnEntry", True) else ())
    words = [value] if isinstance(value, str) else arguments.texts("stopOn")
    for word in words:
        if word not in STOP_ON:
            raise WrongMessage(f"'stopOn' must be of {', '.join(STOP_ON)}, not {word[:40]!r}.")
    return frozenset(words) - {"none"}
