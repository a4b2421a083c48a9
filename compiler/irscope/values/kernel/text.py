"""What running a kernel found, as sentences and rows: the same in the terminal and in the debugger."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from irscope.values.kernel.asking import KernelLine, ScriptKernel, StoredKernel
from irscope.values.run.text import number
from irscope.vocabulary.units import count

WORDS: Mapping[str, str] = {
    "out-of-bounds-read": "reads outside of {argument}: element {index}",
    "out-of-bounds-write": "writes outside of {argument}: element {index}",
    "never-written": "reads memory that nothing wrote: {argument}[{index}]",
    "left-unwritten": "leaves elements of {argument} without a value: {index}",
    "undefined": "does what C++ does not define: {message}",
    "race": "{message}: {argument}[{index}]",
    "non-finite": "makes the first value that is not finite: {argument} ({message})",
}
"""By kind of a problem."""


def problem_text(problem: Mapping[str, Any]) -> str:
    """What a statement did wrong, without its place."""
    told = WORDS[problem["kind"]].format(**problem)
    more = f", {problem['elements']} elements" if problem["elements"] > 1 else ""
    return f"program {program_text(problem['program'])} {told}{more}"


def program_text(program: list[int]) -> str:
    """``(3, 0)``: the trailing zeros of a grid of one dimension are left out."""
    parts = list(program)
    while len(parts) > 1 and parts[-1] == 0:
        parts.pop()
    return f"({', '.join(map(str, parts))})"


def inputs_text(answer: Mapping[str, Any]) -> str:
    """Where the inputs of the kernel came from, as a sentence."""
    by_origin: dict[str, list[str]] = {}
    for each in answer["inputs"]:
        by_origin.setdefault(each["value"], []).append(each["buffer"])
    parts = []
    if recorded := by_origin.get("recorded"):
        parts.append(f"recorded: {', '.join(recorded)}")
    if computed := by_origin.get("computed"):
        from_what = "inputs made from their shapes" if answer["made_above"] else "recorded inputs"
        parts.append(f"computed in eager mode from {from_what}: {', '.join(computed)}")
    if by_kernels := by_origin.get("by kernels"):
        parts.append(
            f"{'as the script has them' if 'file' in answer else 'computed by the kernels before'}: {', '.join(by_kernels)}"
        )
    if made := by_origin.get("made"):
        parts.append(f"made from their shapes: {', '.join(made)}")
    return f"Inputs {'; '.join(parts)}." if parts else "The kernel has no inputs."


def programs_text(answer: Mapping[str, Any]) -> str:
    """How many programs ran, and which."""
    programs = answer["programs"]
    grid = " × ".join(str(size) for size in answer["grid"] if size > 1) or "1"
    blocks = ", ".join(f"{name} {size}" for name, size in answer["blocks"].items())
    if programs["run"] == programs["of"]:
        return f"All {count(programs['of'], 'program')} ran (grid {grid}; {blocks or 'no block sizes'})."
    return f"{programs['run']} of {programs['of']} programs ran: {programs['which']} (grid {grid}; {blocks})."


def checked_text(answer: Mapping[str, Any]) -> str:
    """That a kernel was checked, in a few words."""
    programs, found = answer["programs"], len(answer["problems"])
    part = "" if programs["run"] == programs["of"] else f" in {programs['run']} of {programs['of']} programs"
    if answer["failed"]:
        return "its check failed"
    differs = any(each["measure"] and each["measure"]["differs"] for each in answer["outputs"])
    return f"checked{part}: {count(found, 'problem')}{', differs from eager mode' if differs else ''}"


def place_of(kernel: StoredKernel | ScriptKernel, line: int) -> tuple[str, KernelLine]:
    """A line of a kernel's text, and what it computes."""
    rows = kernel.text.split("\n")
    return (rows[line - 1].strip() if 0 < line <= len(rows) else ""), kernel.line(line)


def output_text(output: Mapping[str, Any]) -> str:
    """How what was written to one argument compares with the graph."""
    name = f"{output['parameter']} ({output['buffer']}{' = ' + output['node'] if output['node'] else ''})"
    if output.get("through"):
        name = f"through {output['through']}: {name}"
    found = output["measure"]
    if found is None:
        return f"{name}: not compared: {output['why']}"
    part = "" if output["elements"] == output["of"] else f", {output['elements']} of {output['of']} elements written"
    if not found["differs"]:
        far = f", largest difference {number(found['to_eager'])}" if found["to_eager"] else ""
        return f"{name}: agrees with eager mode{far}{part}"
    own, eager, exact = found["numbers"]
    why = (
        found["why"]
        or f"at {found['index']} the kernel has {number(own)}, eager mode {number(eager)}, float64 {number(exact)}"
    )
    return f"{name}: differs: {why}{part}"
