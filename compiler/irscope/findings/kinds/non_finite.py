"""Non-finite: the first NaN or infinity of a run, with the node that made it.

Found only where each step is watched (`irscope watch`); `irscope.values.watch` tells how.
"""

from __future__ import annotations

from collections.abc import Iterator

from irscope.protocol import Finding, Position, Range, Severity
from irscope.protocol.facts import NonFiniteFacts
from irscope.usercode.source import line_text
from irscope.vocabulary.findings import VALUE_RUNS_ONLY, FindingKind

KIND = FindingKind(
    id="non-finite",
    label="Non-finite number",
    short=("non-finite number", "non-finite numbers"),
    lanes=VALUE_RUNS_ONLY,
    severity=Severity.ERROR,
    stops_debugger=True,
    facts=NonFiniteFacts,
    order=119,
)


def finding_of(facts: NonFiniteFacts, what: str, compile: str, file: str, line: int, more: tuple[str, ...]) -> Finding:
    """The finding of a number that is not finite, at the user's line.

    Args:
        what: What became of what: ``log made -inf of an operand from 0 to 2.1``.
        more: Sentences on how it is known.
    """
    text = line_text(file, line)
    start = len(text) - len(text.lstrip())
    rank = f", rank {facts.rank}" if facts.rank else ""
    message = f"Step {facts.step}{rank}: {what}."
    return Finding(
        kind=KIND.id,
        code=f"non-finite-{facts.culprit}",
        severity=KIND.severity,
        message=message,
        explanation=" ".join((message, _WHO[facts.culprit], *_more(facts), *more)),
        hints=_HINTS[facts.culprit],
        link=None,
        file=file,
        range=Range(Position(line, start), Position(line, max(len(text.rstrip()), start + 1))),
        count=1,
        compiles=(compile,) if compile else (),
        facts=facts,
    )


def _more(facts: NonFiniteFacts) -> Iterator[str]:
    if facts.node:
        kernel = f", in the kernel {facts.kernel}" if facts.kernel else ""
        yield f"The node is {facts.node} of {facts.stage}{kernel}."
    if facts.library_file:
        yield f"The line in the library: {facts.library_file}:{facts.library_line}."
    if facts.replayed_from:
        bits = ", and the parameters became the same, bit for bit" if facts.is_same_bits else ""
        yield f"The steps from {facts.replayed_from} on were run again{bits}."


_WHO = {
    "model": "Eager mode does the same from the same state: it is the model, not the compiler.",
    "compiler": "Eager mode makes finite numbers from the same state: it is the compiler.",
    "data": "The input had it when the script passed it on.",
    "optimizer": "The gradients of the step were finite, and the optimizer made this of them.",
    "loss": "What the compiled graphs gave was finite: it is from code outside of them.",
}
_HINTS = {
    "model": ("Keep the operand in the range of the operation: clamp it, add an epsilon, or compute it in float32.",),
    "compiler": (
        "`irscope diverge SCRIPT --reproducer FILE` writes a script for a bug report, if it does so at one call.",
    ),
    "data": ("Look at this batch: torch.isfinite(x).all() before the call says the same.",),
    "optimizer": ("Lower the learning rate, or clip the gradients (torch.nn.utils.clip_grad_norm_).",),
    "loss": ("Move the loss into the compiled function, and its operations are named, too.",),
}
