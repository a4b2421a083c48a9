"""``irscope attach``."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence

from irscope.cli.tables import table
from irscope.cli.text import Paint, print_json, short_path, to_stdout
from irscope.comparing.ranks.hanging import Hang, RankState, dead_of, hangs_of
from irscope.driver.attaching import processes_in, processes_of, ras_report, states_of
from irscope.protocol import to_json
from irscope.store.store import Store
from irscope.vocabulary.units import duration, ranks_named
from irscope.vocabulary.visible import printable


def attach(options: argparse.Namespace) -> int:
    """Prints what each process does, and which collective does not end."""
    states = states_of(_processes(options))
    hangs = hangs_of(states)
    ras = ras_report()
    if options.json:
        print_json({"processes": to_json(states), "hangs": to_json(hangs), "nccl_ras": ras})
        return 0
    paint = Paint(sys.stdout)
    rows = [[str(cell) for cell in _row(state)] for state in states]
    lines = table(["rank", "pid", "line", "doing"], rows, paint, right=frozenset({0, 1}))
    lines += ["", *map(printable, _words(states, hangs))]
    if ras:
        lines += ["", paint("What NCCL's RAS says:", "dim"), *map(printable, ras.split("\n"))]
    to_stdout(lines)
    return 0


def _processes(options: argparse.Namespace) -> list[int]:
    if options.what.isdecimal():
        return processes_of(int(options.what))
    path = options.what or options.store
    if os.path.isdir(path):
        path = os.path.join(path, os.path.basename(options.store))
    if not os.path.exists(path):
        raise LookupError(f"{path} is not a run store, and not the number of a process.")
    with Store(path) as store:
        return processes_in(store)


def _row(state: RankState) -> Sequence[object]:
    place = f"{short_path(state.file)}:{state.line}" if state.file else ""
    return "" if state.rank is None else state.rank, state.pid, printable(place), printable(_doing(state))


def _doing(state: RankState) -> str:
    if state.unknown:
        return state.unknown
    if state.compiling:
        return f"compiles {state.compiling}"
    if state.waiting:
        one = state.waiting[0]
        return f"waits in {one.operation} {one.number} of group {one.group} for {_since(one.since_ns)}"
    if state.collective:
        return f"is in {state.collective}"
    return f"runs {state.function}" if state.function and state.function != "<module>" else "runs the script"


def _since(nanoseconds: int) -> str:
    return duration(max(0.0, time.time() - nanoseconds / 1e9))


def _words(states: Sequence[RankState], hangs: Sequence[Hang]) -> list[str]:
    dead, here = dead_of(states), {state.rank for state in states}
    lines = [_first_up(f"{_have(dead)} no process: it has ended, or has never begun.")] if dead else []
    for hang in hangs:
        lines += _words_of(hang, here, dead)
    return lines or ["No rank waits for one that is missing."]


def _words_of(hang: Hang, here: set[int | None], dead: Sequence[int]) -> list[str]:
    name = f"{hang.operation} {hang.number} of group {hang.group}" if hang.number else hang.operation
    place = f" ({short_path(hang.file)}:{hang.line})" if hang.file else ""
    since = f" for {_since(hang.since_ns)}" if hang.since_ns else ""
    waits = "wait" if len(hang.waiting) > 1 else "waits"
    lines = [_first_up(f"{ranks_named(hang.waiting)} {waits} in {name}{place}{since}.")]
    if known := [rank for rank in hang.missing if rank in here or rank in dead]:
        lines.append(_first_up(f"{_have(known)} not come to it."))
    if others := [rank for rank in hang.missing if rank not in here and rank not in dead]:
        lines.append(f"Not known: {ranks_named(others)} of another machine. Run this there, too.")
    if hang.differing:
        calls = "; ".join(f"rank {rank} {words}" for rank, words in hang.differing.items())
        lines.append(f"The ranks call different collectives as the same one: {calls}.")
    return lines


def _have(ranks: Sequence[int]) -> str:
    return f"{ranks_named(ranks)} {'have' if len(ranks) > 1 else 'has'}"


def _first_up(text: str) -> str:
    return text[:1].upper() + text[1:]
