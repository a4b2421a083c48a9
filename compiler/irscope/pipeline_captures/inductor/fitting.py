"""The stage ``memory-fit``: whether a program fits into the memory of a target, and how many of them have enough.

Its data are the bytes of a `Needs`, with ``total``, ``memory`` (of one device) and ``devices``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

from irscope.vocabulary import units
from irscope.vocabulary.records import dataclass

_PRIMAL, _TANGENT = "primals_", "tangents_"
"""What the names begin with of those inputs of a backward that are inputs of the forward, too, and of gradients."""
_OF_CUBLAS = frozenset({"mm", "addmm", "bias_addmm", "bmm", "baddbmm", "_scaled_mm", "_int_mm"})


@dataclass(frozen=True)
class Needs:
    """What one call of a compiled function needs, in bytes.

    Args:
        parameters: All of the script.
        gradients: Bytes for all parameters that are trained, if there is a backward.
        optimizer: The states of its optimizers.
        inputs: What the function gets beside parameters.
        forward, backward: The most that each graph holds beside these: its own buffers, for the backward also what the
            forward has kept for it and the code has not yet let go of.  Gradients of the function's own parameters are
            not counted again.
        step: The most that a step of an optimizer makes beside its states.
        earlier: What functions that are called before this one have kept for their backward, which comes after its own.
        libraries: The workspaces of cuBLAS.
    """

    parameters: int
    gradients: int
    optimizer: int
    inputs: int
    forward: int
    backward: int
    step: int = 0
    earlier: int = 0
    libraries: int = 0

    @property
    def total(self) -> int:
        """At the worst moment.  Gradients of an earlier step are taken to be freed before the forward."""
        always = self.parameters + self.optimizer + self.inputs + self.libraries
        in_call = self.earlier + max(self.forward, self.gradients + self.backward)
        return always + max(in_call, self.gradients + self.step)


def needs_of(
    forward: Mapping[str, Any],
    backward: Mapping[str, Any] | None,
    parameters: int,
    gradients: int,
    optimizer: int,
    mine: tuple[int, int],
    step: int = 0,
    earlier: tuple[int, int, int] = (0, 0, 0),
    workspace: int = 0,
) -> Needs:
    """What a function needs.

    Args:
        forward, backward: The data of its memory plans.
        parameters, gradients, optimizer: Bytes of the whole script; of gradients those that it has after a backward.
        mine: Bytes of the parameters that are inputs of this function, and of their gradients.
        step: Bytes that a step of an optimizer makes beside its states.
        earlier: Of the functions called before: the bytes that they have kept, those of the gradients that their backward is
            yet to make, and the libraries' of each.
        workspace: Bytes that PyTorch gives cuBLAS for each thread.
    """
    given = sum(size for _, size in forward["inputs"])
    own = 0 if backward is None else _peak_with_kept(forward, backward) - mine[1] - earlier[1]
    threads = [plan for plan in (forward, backward) if plan is not None and _multiplies(plan)]
    return Needs(
        parameters=max(parameters, mine[0]),
        gradients=0 if backward is None else max(gradients, mine[1]),
        optimizer=optimizer,
        inputs=max(0, given - mine[0]),
        forward=int(forward["peak"]["bytes"]),
        backward=max(0, own),
        step=step,
        earlier=earlier[0],
        libraries=max(workspace * len(threads), earlier[2]),
    )


def kept_bytes(forward: Mapping[str, Any], backward: Mapping[str, Any]) -> int:
    """What a forward keeps for its backward, without parameters and inputs."""
    return sum(size for size, names in _kept(forward, backward) if not names[0].startswith(_TANGENT))


def _kept(forward: Mapping[str, Any], backward: Mapping[str, Any]) -> list[tuple[int, list[str]]]:
    """The storages that a backward gets beside the forward's inputs: their bytes, and their names there.

    Views of one buffer, such as query, key and value of one product, are inputs of their own, each with the extent of
    its strides; they are told by the forward's outputs, the last of which are what the backward gets first.
    """
    of = {str(buffer["name"]): str(buffer["of"]) for buffer in forward.get("buffers", ()) if buffer["how"] == "view"}
    sizes = {str(buffer["name"]): int(buffer["bytes"]) for buffer in forward.get("buffers", ())}
    given = [(str(name), int(size)) for name, size in backward["inputs"]]
    saved = [name for name, _ in given if not name.startswith(_TANGENT)]
    outputs = [str(name) for name in forward.get("outputs", ())][-len(saved) :] if saved else []
    is_same = len(outputs) == len(saved) and all(
        name == output for name, output in zip(saved, outputs, strict=True) if name.startswith(_PRIMAL)
    )
    behind = dict(zip(saved, outputs, strict=True)) if is_same else {}  # else symbols come first: each on its own
    found: dict[str, tuple[int, list[str]]] = {}
    for name, size in given:
        home = behind.get(name, name)
        while home in of:
            home = of[home]
        if not name.startswith(_PRIMAL) and not home.startswith(_PRIMAL):
            found.setdefault(home, (sizes.get(home, size), []))[1].append(name)
    return list(found.values())


def _peak_with_kept(forward: Mapping[str, Any], backward: Mapping[str, Any]) -> int:
    """The most bytes that a backward holds: its own buffers, and what the forward has kept until the code lets it go."""
    live = [int(step["live"]) for step in backward["steps"]] or [int(backward["peak"]["bytes"])]
    change = [0] * (len(live) + 1)
    for size, names in _kept(forward, backward):
        change[0] += size
        change[min(max(backward["freed"].get(name, len(live) - 1) for name in names), len(live) - 1) + 1] -= size
    return max(own + there for own, there in zip(live, accumulate(change), strict=False))


def _multiplies(plan: Mapping[str, Any]) -> bool:
    return any(str(step["kernel"]).rpartition(".")[2] in _OF_CUBLAS for step in plan["steps"])


def devices(needs: Needs, memory: int) -> int:
    """How many devices have that much memory together."""
    return max(1, -(-needs.total // memory))


def stage_data(needs: Needs, memory: int) -> dict[str, int]:
    """The data of the stage."""
    parts = (
        "parameters",
        "gradients",
        "optimizer",
        "inputs",
        "forward",
        "backward",
        "step",
        "earlier",
        "libraries",
        "total",
    )
    return {**{part: int(getattr(needs, part)) for part in parts}, "memory": memory, "devices": devices(needs, memory)}


def stage_text(needs: Needs, memory: int, target: str) -> str:
    """The stage for people."""
    rows: Sequence[tuple[str, int]] = (
        ("parameters", needs.parameters),
        ("gradients", needs.gradients),
        ("states of optimizers", needs.optimizer),
        ("other inputs", needs.inputs),
        ("forward, at its peak", needs.forward),
        ("backward, at its peak", needs.backward),
        ("step of the optimizer, at its peak", needs.step),
        ("kept by functions called before", needs.earlier),
        ("workspaces of cuBLAS", needs.libraries),
        ("together, at the worst moment", needs.total),
    )
    lines = [
        "# A prediction for one call of this function, without memory of CUDA, of operators outside of it and of the allocator."
    ]
    lines += [f"{name:35}{units.size(size):>12}" for name, size in rows]
    number = devices(needs, memory)
    if number == 1:
        lines.append(f"It fits on one {target} ({units.size(memory)}).")
    else:
        lines.append(f"It does not fit on one {target} ({units.size(memory)}).")
        lines.append(f"{number} of them have that much memory together, if everything is divided evenly.")
    return "\n".join(lines) + "\n"
