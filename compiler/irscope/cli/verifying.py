"""``irscope verify-target``: runs a script on the real device and compares its kernels with a prediction."""

from __future__ import annotations

import argparse
import contextlib
import functools
import os
import sys
from collections.abc import Iterator

from irscope.cli.progress import ProgressLine
from irscope.cli.tables import table
from irscope.cli.text import Paint, print_json, to_stdout
from irscope.comparing.certificates import Certificate, Side, certify
from irscope.driver.driver import RunSpec, execute
from irscope.protocol import OutcomeKind, to_json
from irscope.store.store import Store
from irscope.targets.catalogue import catalogue
from irscope.vocabulary.units import count
from irscope.vocabulary.visible import printable


def verify(options: argparse.Namespace) -> int:
    """Prints a certificate; 0 if everything is as predicted, 1 if not.

    Raises LookupError if there is nothing to compare: the script failed or used another device, or no prediction is known.
    """
    target = catalogue().named(options.target)
    with Store(options.store) as store:
        real = _run(store, options, ())
        device = store.device_of(real)
        if not device or (target.reported and device not in target.reported):
            where = f"on {printable(device)}" if device else "without a GPU"
            raise LookupError(f"The script ran {where}, not on {target.title} ({', '.join(target.reported)}).")
        side = Side(store.report(real), *_readers(store, real))
        with _opened(options.predicted) as other:
            if other is None:
                ran = _run(store, options, (target.name,))
                predicted = Side(store.report(ran).of_target(target.name), *_readers(store, ran))
            else:
                run = next((each.run for each in other.runs(1000) if _has(other, each.run, target.name)), None)
                if run is None:
                    raise LookupError(f"{options.predicted} has no run with predictions for {target.name}.")
                predicted = Side(other.report(run).of_target(target.name), *_readers(other, run))
            certificate = certify(target.name, device, side, predicted)
    if options.json:
        print_json({**to_json(certificate), "holds": certificate.holds})
    else:
        to_stdout(_lines(certificate, Paint(sys.stdout)))
    return 0 if certificate.holds else 1


@contextlib.contextmanager
def _opened(path: str | None) -> Iterator[Store | None]:
    if path is None:
        yield None
        return
    if not os.path.isfile(path):
        raise LookupError(f"File not found: {path}.")
    with Store(path) as store:
        yield store


def _has(store: Store, run: str, target: str) -> bool:
    return any(each.target == target for each in store.report(run).predictions)


def _readers(store: Store, run: str) -> tuple[functools.partial[str], functools.partial[object]]:
    return functools.partial(store.stage_text, run), functools.partial(store.stage_data, run)


def _run(store: Store, options: argparse.Namespace, targets: tuple[str, ...]) -> str:
    """The run's id.  Raises LookupError with its outcome if the script did not run to its end."""
    spec = RunSpec(
        script=options.script, args=tuple(options.args), python=options.python, targets=targets,
        tuned=store.path if targets and not options.untuned else "",
    )  # fmt: skip
    progress = ProgressLine()
    run, outcome = execute(spec, store, on_message=progress.see, stdout=sys.stderr.fileno())
    progress.wipe()
    if outcome.kind is not OutcomeKind.COMPLETED:
        raise LookupError(f"The script did not run to its end: {outcome.message}")
    return run


def _lines(found: Certificate, paint: Paint) -> list[str]:
    versions = [
        f"torch {found.torch[0]}, triton {found.triton[0]}",
        f"torch {found.torch[1]}, triton {found.triton[1]}",
    ]
    lines = [
        paint(f"{found.target} on {printable(found.device)}", "bold"),
        f"real: {versions[0]}; prediction: {versions[1]}",
        f"{found.same} of {count(found.kernels, 'kernel')} as predicted; machine code of {found.code_same} of {found.code_compared}",
    ]
    rows = [[each.compile, each.name, each.source, each.code, each.why] for each in found.checks if each.why]
    if rows:
        lines += ["", *table(["compile", "kernel", "source", "code", "why"], rows, paint, whole=frozenset({0}))]
    lines += [f"predicted only: {printable(name)}" for name in found.only_predicted]
    return [*lines, paint("The prediction holds.", "green") if found.holds else paint("There are differences.", "red")]
