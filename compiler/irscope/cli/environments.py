"""``irscope env``."""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

from irscope.cli.text import to_stdout
from irscope.driver.availability import Status, availability_of, trials_file
from irscope.driver.environments import Environment, EnvironmentFailure, default_folder, make
from irscope.pipelines.registry import pipeline_named
from irscope.system.streams import complain


def create(options: argparse.Namespace) -> int:
    """Makes the environment of a pipeline, and tries the pipeline in it."""
    pipeline = pipeline_named(options.pipeline)
    if not pipeline.needs:
        complain(f"irscope: The pipeline {pipeline.name} needs only torch: every environment with torch has it.")
        return 2
    base = shutil.which(options.python)
    if base is None:
        complain(f"irscope: No Python interpreter at {options.python}.")
        return 3
    folder = Path(options.folder).absolute() if options.folder else default_folder(pipeline)
    environment = Environment(pipeline, folder, base)
    if not environment.is_made:
        if not (options.yes or _agreed(environment)):
            return 2
        try:
            make(environment, _say)
        except EnvironmentFailure as error:
            complain(f"irscope: {error}")
            return 3
    _say(f"Trying the pipeline {pipeline.name}")
    [found] = availability_of([pipeline], str(environment.python), trials_file())
    if found.status is Status.UNTRIED:
        complain(f"irscope: The environment {folder} is made. {found.why} The same command tries it again.")
        return 3
    if found.status is not Status.AVAILABLE:
        complain(f"irscope: The pipeline {pipeline.name} does not work in {folder}: {found.why}")
        return 3
    to_stdout(_how_to_use(environment))
    return 0


def _agreed(environment: Environment) -> bool:
    """Says what will be done, and asks."""
    size = environment.pipeline.megabytes
    print(f"Environment: {environment.folder}", file=sys.stderr)
    print(f"From:        {environment.base}", file=sys.stderr)
    print(f"Installs:    {', '.join(environment.packages)}, and what these need", file=sys.stderr)
    print(f"Downloads:   {f'about {size} MB' if size else 'size unknown'}", file=sys.stderr)
    if not sys.stdin.isatty():
        complain(
            "irscope: Nothing was installed, since there is no terminal to ask in. Add --yes to install without a question."
        )
        return False
    print("Continue? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _say(step: str) -> None:
    print(f"irscope: {step}…", file=sys.stderr, flush=True)


def _how_to_use(environment: Environment) -> list[str]:
    python, name = environment.python, environment.pipeline.name
    if environment.folder == default_folder(environment.pipeline):
        ways = [
            f"  In the terminal: irscope run SCRIPT --pipeline {name}",
            "  In the editor:   IRScope: Select Pipeline…",
        ]
    else:  # where it is, nobody else knows
        ways = [
            f"  In the terminal: irscope run SCRIPT --pipeline {name} --python {python}",
            f'  In the editor:   "irscope.python": "{python}"',
        ]
    return [
        f"The environment of {name} is ready: {environment.folder}",
        *ways,
        f"  More packages:   {python} -m pip install PACKAGE",
    ]
