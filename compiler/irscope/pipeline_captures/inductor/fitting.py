"""The stage ``memory-fit``: whether a program fits into the memory of a target, and how many of them have enough.

Its data are the bytes of a `Needs`, with ``total``, ``memory`` (of one device) and ``devices``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

from irscope.vocabulary import units
from irscope.vocabulary.records import dataclass

_PRIMAL = "primals_"
"""What the names begin with of those inputs of a backward that are inputs of the forward, too."""


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
    """

    parameters: int
    gradients: int
    optimizer: int
    inputs: int
    forward: int
    backward: int
    step: int = 0

    @property
    def total(self) -> int:
        """At the worst moment.  Gradients of an earlier step are taken to be freed before the forward."""
        always = self.parameters + self.optimizer + self.inputs
        return always + max(self.forward, self.gradients + max(self.backward, self.step))


def needs_of(
    forward: Mapping[str, Any],
    backward: Mapping[str, Any] | None,
    parameters: int,
    gradients: int,
    optimizer: int,
    mine: tuple[int, int],
    step: int = 0,
) -> Needs:
    """What a function needs.

    Args:
        forward, backward: The data of its memory plans.
        parameters, gradients, optimizer: Bytes of the whole script; of gradients those that it has after a backward.
        mine: Bytes of the parameters that are inputs of this function, and of their gradients.
        step: Bytes that a step of an optimizer makes beside its states.
    """
    given = sum(size for _, size in forward["inputs"])
    own = 0 if backward is None else _peak_with_kept(backward) - mine[1]
    return Needs(
        parameters=max(parameters, mine[0]),
        gradients=0 if backward is None else max(gradients, mine[1]),
        optimizer=optimizer,
        inputs=max(0, given - mine[0]),
        forward=int(forward["peak"]["bytes"]),
        backward=max(0, own),
        step=step,
    )


def _peak_with_kept(backward: Mapping[str, Any]) -> int:
    """The most bytes that a backward holds: its own buffers, and what the forward has kept until the code lets it go."""
    kept = [(str(name), int(size)) for name, size in backward["inputs"] if not str(name).startswith(_PRIMAL)]
    live = [int(step["live"]) for step in backward["steps"]] or [int(backward["peak"]["bytes"])]
    change = [0] * (len(live) + 1)
    for name, size in kept:
        change[0] += size
        change[min(backward["freed"].get(name, len(live) - 1), len(live) - 1) + 1] -= size
    return max(own + there for own, there in zip(live, accumulate(change), strict=False))


def devices(needs: Needs, memory: int) -> int:
    """How many devices have that much memory together."""
    return max(1, -(-needs.total // memory))


def stage_data(needs: Needs, memory: int) -> dict[str, int]:
    """The data of the stage."""
    parts = ("parameters", "gradients", "optimizer", "inputs", "forward", "backward", "step", "total")
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
        ("together, at the worst moment", needs.total),
    )
    lines = ["# A prediction for one call of this function, without memory of CUDA, of libraries and of the allocator."]
    lines += [f"{name:35}{units.size(size):>12}" for name, size in rows]
    number = devices(needs, memory)
    if number == 1:
        lines.append(f"It fits on one {target} ({units.size(memory)}).")
    else:
        lines.append(f"It does not fit on one {target} ({units.size(memory)}).")
        lines.append(f"{number} of them have that much memory together, if everything is divided evenly.")
    return "\n".join(lines) + "\n"
