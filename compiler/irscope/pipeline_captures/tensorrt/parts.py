"""What a dry run of Torch-TensorRT's partitioner says: the parts of a program, and why an operation is in which."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from irscope.capture.operation_graphs import ITEM
from irscope.internals.tensorrt import CAPABILITY, Refusal
from irscope.vocabulary.records import dataclass

NO_CONVERTER, REFUSED, DYNAMIC, COMPLEX, SMALL = (
    "no-tensorrt-converter", "tensorrt-converter-refuses", "tensorrt-dynamic-sizes", "tensorrt-complex-numbers",
    "tensorrt-small-block",
)  # fmt: skip
"""Codes of findings: why an operation stays with PyTorch."""
_LONGEST = 300
"""Characters of what Torch-TensorRT logged."""


@dataclass(frozen=True)
class Part:
    """Neighbours that run together, in one engine or in PyTorch.

    Args:
        name: The partitioner's name of the submodule; empty if it left the operations where they were.
        nodes: The names of its operations.
    """

    name: str
    is_engine: bool
    nodes: tuple[str, ...]


@dataclass(frozen=True)
class Stay:
    """Why an operation stays with PyTorch.

    Args:
        code: One of the codes above.
        why: A few words, as a comment has them.
        said: What Torch-TensorRT logged about it; empty if it logged nothing.
        is_told: Whether it has a finding: of a block that is too small the first operation has one.
    """

    code: str
    why: str
    said: str = ""
    is_told: bool = True


@dataclass(frozen=True)
class DryRun:
    """All that is said of a program.

    Args:
        targets: Name of each operation → its operator.
        parts: In the order in which they run.
        stays: Name of each operation that stays with PyTorch → why.
        smallest: How many operators an engine has at least.
    """

    version: str
    has_gpu: bool
    smallest: int
    targets: Mapping[str, str]
    parts: Sequence[Part]
    stays: Mapping[str, Stay]


def stays_of(
    parts: Sequence[Part], blocks: Sequence[Part], refusals: Mapping[str, Refusal], smallest: int
) -> dict[str, Stay]:
    """Why each operation outside of the engines is not in one.

    Args:
        blocks: The parts if an engine may have a single operator: those that are engines there and not in ``parts`` are
            too small.
    """
    taken = {name for part in parts if part.is_engine for name in part.nodes}
    block_of = {name: block for block in blocks if block.is_engine for name in block.nodes}
    found = {}
    for name in (name for part in parts for name in part.nodes if name not in taken):
        if name in refusals:
            found[name] = _refused(refusals[name])
        else:
            block = block_of[name].nodes if name in block_of else (name,)
            why = f"a block of {len(block)}, and an engine has at least {smallest} operators"
            found[name] = Stay(SMALL, why, is_told=name == block[0])
    return found


def _refused(one: Refusal) -> Stay:
    said = "; ".join(one.said)[:_LONGEST]
    if not one.has_converter:
        return Stay(NO_CONVERTER, "no converter")
    if one.is_complex:
        return Stay(COMPLEX, "it computes with complex numbers")
    if one.is_dynamic:
        return Stay(DYNAMIC, "its converter does not take dynamic sizes")
    return Stay(REFUSED, f"its converter refuses these arguments ({', '.join(one.validators)})", said)


def titles(parts: Iterable[Part]) -> list[str]:
    """What each part is called: ``TensorRT engine 0``, ``PyTorch``."""
    found, engines = [], 0
    for part in parts:
        found.append(f"TensorRT engine {engines}" if part.is_engine else "PyTorch")
        engines += part.is_engine
    return found


def notes_of(run: DryRun) -> dict[str, str]:
    """By the name of an operation the comment that says where it runs."""
    found = {}
    for part, title in zip(run.parts, titles(run.parts), strict=True):
        for name in part.nodes:
            found[name] = f"{title}: {run.stays[name].why}" if name in run.stays else title
    return found


def report_text(run: DryRun) -> str:
    """The stage that sums up a dry run."""
    return "\n".join([*_head(run), "", *_parts(run), "", *_stays(run), *_taken(run)]) + "\n"


def shape_of(run: DryRun) -> str:
    """How the program is divided, as an explanation says it."""
    engines = sum(part.is_engine for part in run.parts)
    rest = len(run.parts) - engines
    if not engines:
        return "No operator of this program would be in a TensorRT engine."
    return (
        f"The program would run as {engines} TensorRT {_plural('engine', engines)} and "
        f"{rest} {_plural('part', rest)} in PyTorch. This is a dry run: no engine is built."
    )


def message_of(stay: Stay, target: str) -> str:
    """What a finding says of an operation."""
    if stay.code == SMALL:
        return f"{target} has a converter, but begins {stay.why}: it stays with PyTorch."
    if stay.code == NO_CONVERTER:
        return f"Torch-TensorRT has no converter for {target}: it stays with PyTorch."
    said = f" Torch-TensorRT says: {stay.said.rstrip('.')}." if stay.said else ""
    return f"{target} stays with PyTorch: {stay.why}.{said}"


def hints_of(stay: Stay) -> tuple[str, ...]:
    """What can be done about it."""
    return _HINTS.get(stay.code, ())


_HINTS = {
    NO_CONVERTER: ("Write it with other operators, register a converter for it, or move it out of the program.",),
    REFUSED: ("Use arguments that the converter takes, or move the operator out of the program.",),
    DYNAMIC: ("Give it static sizes, or compile with assume_dynamic_shape_support=True if you know that it works.",),
    COMPLEX: ("Compute with the real and the imaginary part.",),
    SMALL: ("A smaller min_block_size makes an engine of it, which pays only if the operators take much time.",),
}


def _head(run: DryRun) -> Iterator[str]:
    yield f"A dry run of the partitioner of Torch-TensorRT {run.version}: no engine is built."
    yield "The script goes on with its own program."
    if not run.has_gpu:
        major, minor = CAPABILITY
        yield f"This machine has no GPU. irscope told Torch-TensorRT of one with compute capability {major}.{minor}."
    yield f"Settings: the defaults of torch_tensorrt.compile (min_block_size={run.smallest})."
    yield "An engine may still fail when it is built: the partitioner asks converters, not TensorRT."
    yield ""
    engines = [part for part in run.parts if part.is_engine]
    inside = sum(len(part.nodes) for part in engines)
    count = sum(len(part.nodes) for part in run.parts)
    yield f"{inside} of {count} operations are in {len(engines)} TensorRT {_plural('engine', len(engines))}."


def _parts(run: DryRun) -> Iterator[str]:
    yield "# parts, in the order in which they run"
    for part, title in zip(run.parts, titles(run.parts), strict=True):
        names = ", ".join(part.nodes[:4]) + (", …" if len(part.nodes) > 4 else "")
        yield f"{title:<20}{len(part.nodes):>6}  {part.name:<16}  {names}"


def _stays(run: DryRun) -> Iterator[str]:
    if not run.stays:
        return
    yield "# operations that stay with PyTorch"
    targets = {name: run.targets.get(name, name) for name in run.stays}
    shown = [(targets[name], stay) for name, stay in run.stays.items() if targets[name] != ITEM]
    counted = Counter((target, stay.why, stay.said) for target, stay in shown)
    for (target, why, said), count in counted.items():
        yield f"{count:>6}  {target}: {why}" + (f": {said}" if said else "")
    yield ""


def _taken(run: DryRun) -> Iterator[str]:
    names = [name for part in run.parts if part.is_engine for name in part.nodes]
    if names:
        yield "# operations in TensorRT engines"
    for target, count in Counter(run.targets.get(name, name) for name in names).most_common():
        yield f"{count:>6}  {target}"


def _plural(word: str, count: int) -> str:
    return word if count == 1 else f"{word}s"
