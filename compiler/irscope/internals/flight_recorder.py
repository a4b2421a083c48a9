"""When this rank arrived at each collective, from PyTorch's flight recorder, which gloo and NCCL write to.

The recorder is on if ``TORCH_FR_BUFFER_SIZE`` is set before torch is imported; irscope sets it for real ranks.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from typing import Any

from irscope.internals.names import PrivateName
from irscope.internals.process_groups import ranks_of_groups
from irscope.usercode.user_files import is_user_file

VARIABLE, ENTRIES = "TORCH_FR_BUFFER_SIZE", 2000
VARIABLES = {VARIABLE: str(ENTRIES), "TORCH_NCCL_ENABLE_TIMING": "1"}
"""What irscope sets for real ranks; the second gives NCCL's collectives their durations on the device."""
_MODULE = "torch._C._distributed_c10d"
_WHAT = "which ranks waited for which"
_DUMP = PrivateName(_WHAT, _MODULE, "_dump_fr_trace", "2.11 to 2.14")
_NCCL_DUMP = PrivateName(_WHAT, _MODULE, "_dump_nccl_trace", "2.11")
"""NCCL has its own recorder (torch 2.11)."""
_MOST = 1000
"""Arrivals that are kept, the last ones."""
_MOST_WAITING = 50


def entries() -> list[dict[str, Any]]:
    """All that the recorders have, as PyTorch names it; empty without a process group.

    Leaves a gap if this torch has no flight recorder.
    """
    dumps = [_DUMP.find()]
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_nccl_available():
        dumps.append(_NCCL_DUMP.find())
    # PyTorch made these bytes just now, in this process.
    return [
        entry
        for dump in dumps
        if dump is not None
        for entry in pickle.loads(dump(True, True, False)).get("entries", ())
    ]


Place = tuple[str, int]


def arrivals(
    before: Callable[[int, int, Place], list[list[Any]]] = lambda begin, end, but: [],
    at: Callable[[int], Place] = lambda time: ("", 0),
) -> list[list[Any]]:
    """Each collective as ``[group, number in the group, operation, nanoseconds since the epoch, file, line, nanoseconds
    on the device, lines before]``.

    The file is the user's nearest one on the stack; empty if there is none.  On the device: 0 for a CPU, -1 if the
    recorder does not know the duration.

    Args:
        before: As `irscope.internals.whereabouts.Whereabouts.between`: the lines that the rank was in between two
            times.
        at: Gives the line that its main thread was in at a time.  A GPU's backward has its own thread, whose stack does
            not have the user's line.
    """
    found, last = [], 0
    for entry in sorted(entries()[-_MOST:], key=lambda entry: int(entry["time_created_ns"])):
        if entry.get("is_p2p"):
            continue
        begun = int(entry["time_created_ns"])
        place = place_of(entry.get("frames") or ())
        place = place if place[0] else at(begun)
        group = str((entry.get("process_group") or ("",))[0])
        backend, _, operation = str(entry.get("profiling_name", "")).partition(":")
        took = entry.get("duration_ms")
        device = 0 if backend != "nccl" else -1 if took is None else int(took * 1e6)
        row = [group, int(entry["collective_seq_id"]), operation, begun, *place, device]
        found.append([*row, before(last, begun, place) if last else []])
        last = begun
    return found


def issued() -> dict[str, Any]:
    """What ``irscope attach`` is told: the collectives that have not ended, and how far this rank is in each group.

    ``groups`` has the ranks of each group, by its name; ``reached`` the number of the last collective that the rank
    issued there; ``waiting`` each one that has not ended as ``[group, number, operation, sizes, nanoseconds since the
    epoch, file, line]``.  A recorder that is off gives the groups alone.
    """
    found: dict[str, Any] = {"groups": ranks_of_groups(), "reached": {}, "waiting": []}
    for entry in entries():
        if entry.get("is_p2p"):
            continue
        group, number = str((entry.get("process_group") or ("",))[0]), int(entry["collective_seq_id"])
        found["reached"][group] = max(number, found["reached"].get(group, 0))
        if not entry.get("retired") and entry.get("state") != "completed":
            operation = str(entry.get("profiling_name", "")).partition(":")[2]
            place = place_of(entry.get("frames") or ())
            row = [group, number, operation, str(entry.get("input_sizes", "")), int(entry["time_created_ns"]), *place]
            found["waiting"].append(row)
    found["waiting"] = found["waiting"][-_MOST_WAITING:]
    return found


def place_of(frames: Any) -> Place:
    """The user's nearest line on a recorded stack; an empty file if there is none."""
    for frame in frames:
        if is_user_file(str(frame.get("filename", ""))):
            return str(frame["filename"]), int(frame["line"])
    return "", 0
