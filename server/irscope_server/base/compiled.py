"""What a run compiled, and how that went, in words."""

from __future__ import annotations

from collections import Counter

from irscope.findings.standing import NEXT, sentence, standing_of
from irscope.protocol import Report, library_calls
from irscope.vocabulary import units

_MOST_COMPILES = 3


def compiles_text(report: Report) -> str:
    """``0/0 LlamaForCausalLM (20 kernels), 1/0 step``; of those with kernels only, if there are any; empty without any."""
    calls = library_calls(report.kernels)
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


def standing_sentence(report: Report) -> str:
    """How the run went and what is next."""
    return sentence(standing_of(report), report.outcome.message, NEXT)
