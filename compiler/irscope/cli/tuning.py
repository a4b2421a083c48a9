"""``irscope tune``."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator
from typing import Any

from irscope.cli.text import to_stdout
from irscope.comparing.texts import diff_of
from irscope.driver.driver import RunSpec
from irscope.driver.trials.proving import Status
from irscope.driver.tuning.tuning import ROUNDS, Row, Tuned, tuned
from irscope.protocol import to_json
from irscope.vocabulary.units import duration, percent, size
from irscope.vocabulary.visible import printable


def tune(options: argparse.Namespace) -> int:
    """Tries what may pay, and prints it; 3 if nothing could be tried."""
    spec = RunSpec(options.script, tuple(options.args), python=options.python, cwd=options.cwd)
    say = _say if sys.stderr.isatty() else lambda what: None
    found = tuned(spec, options.budget, say, only=options.only)
    if options.json:
        print(json.dumps(_data(found), indent=1))
    elif not found.problem:
        to_stdout([*_lines(found)])
    if found.problem:
        print(f"irscope tune: {printable(found.problem)}", file=sys.stderr)
        return 3
    return 0


def _say(what: str) -> None:
    print(printable(what), file=sys.stderr)


def _row_data(row: Row, found: Tuned) -> dict[str, Any]:
    return {
        "name": row.name, "pays": row.pays, "numerics": row.numerics, "gain": to_json(row.gain), "why": row.why,
        "compile_seconds": round(row.compile_seconds, 3), "steps_to_pay_back": row.steps_to_pay_back,
        "memory": list(row.memory), "status": row.status.value if row.status is not None else None, "reason": row.reason,
        "checks": list(row.checks), "diff": "\n".join(_diff(row, found)),
    }  # fmt: skip


def _data(found: Tuned) -> dict[str, Any]:
    return {
        "schema": 1, "problem": found.problem, "step": to_json(found.step), "compile_seconds": round(found.compile_seconds, 3),
        "rounds": ROUNDS, "best": _row_data(found.best, found) if found.best is not None else None,
        "rows": [_row_data(row, found) for row in found.rows], "ended_early": found.ended_early, "notes": found.notes,
        "consists": [{"kernel": name, "part": round(part, 4)} for name, part in found.consists],
    }  # fmt: skip


def _lines(found: Tuned) -> Iterator[str]:
    """The table, the best first, and the patch."""
    if found.step is not None:
        yield f"A step takes {found.step.words}; compile time {duration(found.compile_seconds)}."
    yield printable(_said(found))
    for row in (*([found.best] if found.best is not None else []), *found.rows):
        yield f"  {printable(row.name)}: {_words(row, found)}"
        if row.numerics:
            yield f"    changes numbers: {row.numerics}. It is in no combination."
        if row.status is Status.VERIFIED:
            yield printable(f"    same results as without compile: {'; '.join(row.checks)}")
    yield from (printable(note) for note in (*found.notes, found.ended_early) if note)
    if found.best is not None:
        yield ""
        yield from (printable(line) for line in _diff(found.best, found))


def _said(found: Tuned) -> str:
    """What pays, in a sentence."""
    if found.best is not None:
        return f"Best: {found.best.name}, proven and measured again as a whole."
    pays = any(row.pays for row in found.rows)
    if not pays and any(row.gain is not None and row.gain.is_faster for row in found.rows):
        return "What is faster below was not proven to compute the same."
    which = " of what was tried" if found.ended_early else ""
    parts = ", ".join(f"{percent(part)} {name}" for name, part in found.consists)
    consists = f": a call of what is compiled is {parts}" if parts else ""
    return f"Nothing{which} pays here{' but what changes numbers' if pays else ''}{consists}."


def _words(row: Row, found: Tuned) -> str:
    gain = row.gain
    if gain is None:
        return printable(row.why)
    if not gain.is_clear:
        return f"no difference above the noise ({_part(gain.parts[0])}, quartiles {_part(gain.parts[1])} to {_part(gain.parts[2])})"
    said = (
        f"{duration(abs(gain.saved.median))} a step {'less' if gain.is_faster else 'more'} ({_part(gain.parts[0])}, "
        f"quartiles {_part(gain.parts[1])} to {_part(gain.parts[2])}), compile time {duration(row.compile_seconds)}"
    )
    if not gain.is_faster:
        return said
    back = row.steps_to_pay_back
    said += f", paid back after {back} steps" if back else ""
    said += f", memory {size(row.memory[1])} (was {size(row.memory[0])})" if all(row.memory) else ""
    return (
        said
        if row.status is Status.VERIFIED
        else printable(f"{said}; {row.status.value if row.status else 'unproven'}: {row.reason}")
    )


def _part(part: float) -> str:
    return f"{'+' if part < 0 else '−'}{percent(abs(part), 1.0)}"


def _diff(row: Row, found: Tuned) -> Iterator[str]:
    for path, text in row.texts.items():
        yield from diff_of(found.before.get(path, ""), text, os.path.relpath(path))
