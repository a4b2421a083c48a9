"""What a run compiled, and how that went, in words."""

from __future__ import annotations

from collections import Counter

from irscope.findings.kinds import graph_break, recompilation
from irscope.protocol import Report
from irscope.vocabulary import units

_MOST_COMPILES = 3
_COUNTED = {kind.id: kind.label.lower() for kind in (graph_break.KIND, recompilation.KIND)}


def compiles_text(report: Report) -> str:
    """``0/0 LlamaForCausalLM (20 kernels), 1/0 step``; of those with kernels only, if there are any; empty without any."""
    calls = Counter(kernel.compile for kernel in report.kernels if not kernel.is_generated)
    generated = Counter(kernel.compile for kernel in report.kernels if kernel.is_generated)
    compiles = [compile for compile in report.compiles if compile.id in generated or compile.id in calls]
    compiles = compiles or list(report.compiles)
    shown = [
        f"{compile.id} {compile.title} ({units.kernels(generated[compile.id], calls[compile.id])})"
        if compile.id in generated or compile.id in calls
        else f"{compile.id} {compile.title}"
        for compile in compiles[:_MOST_COMPILES]
    ]
    if len(compiles) > _MOST_COMPILES:
        shown.append(f"and {units.count(len(compiles) - _MOST_COMPILES, 'more compile', 'more compiles')}")
    return ", ".join(shown)


def summary(report: Report) -> str:
    """``Compiled 0/0 LlamaForCausalLM (20 kernels): no graph break, no recompilation, 1 other finding.``; empty if nothing was
    compiled."""
    if not report.compiles:
        return ""
    found = Counter(finding.kind if finding.kind in _COUNTED else "" for finding in report.findings)
    counts = [units.count(found[kind], name) if found[kind] else f"no {name}" for kind, name in _COUNTED.items()]
    counts += [units.count(found[""], "other finding")] if found[""] else []
    return f"Compiled {compiles_text(report)}: {', '.join(counts)}."
