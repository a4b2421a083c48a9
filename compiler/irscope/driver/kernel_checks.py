"""What running a kernel found, kept in its run: the same from the command line and from the debugger."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from irscope.findings.kinds.kernel_check import finding_of
from irscope.protocol.facts import KernelCheckFacts
from irscope.store.store import Store
from irscope.values.kernel.asking import ScriptKernel, StoredKernel
from irscope.values.kernel.text import checked_text, place_of, problem_text


def described(kernel: StoredKernel | ScriptKernel, found: Mapping[str, Any]) -> dict[str, Any]:
    """A problem, or an access that was asked for, with its statement, its nodes and the user's line; a problem in words."""
    statement, line = place_of(kernel, found["line"])
    place = kernel.place(found["line"])
    told = {"statement": statement, "nodes": list(line.nodes), "place": f"{place.file}:{place.line}" if place else ""}
    return {**found, **told, **({"message": problem_text(found)} if "message" in found else {})}


def keep(store: Store, stored: StoredKernel, answer: Mapping[str, Any]) -> None:
    """Puts what the checks found into the run, in place of what an earlier call found in this kernel.

    Args:
        answer: The one of `irscope.values.kernel.process`.
    """
    old = [each for each in stored.report.findings if isinstance(each.facts, KernelCheckFacts) and each.facts.stage == stored.stage]  # fmt: skip
    new = []
    for problem in (described(stored, each) for each in answer["problems"]):
        if (place := stored.place(problem["line"])) is not None:
            facts = KernelCheckFacts(
                problem["kind"], stored.kernel.name, stored.stage, problem["line"], problem["statement"],
                tuple(problem["nodes"]), tuple(problem["program"]), problem["argument"], problem["index"],
            )  # fmt: skip
            new.append(finding_of(facts, problem["message"], stored.kernel.compile, place.file, place.line))
    store.put_checked(stored.report.run, stored.stage, checked_text(answer), old, new)
