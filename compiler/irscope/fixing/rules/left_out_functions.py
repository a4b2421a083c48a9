"""What cannot be traced runs as plain Python, which costs most: a helper is left out of the graph, or a function that
runs as plain Python already stays so, without a trial to trace it."""

from __future__ import annotations

from collections.abc import Iterator

from irscope.fixing.model import Example, Proposal, Rule
from irscope.fixing.rules.helpers import HALVED, helper_at
from irscope.fixing.source import Source
from irscope.protocol import BreakFacts, Finding, FixMethod

_CUT = "The graph is cut at each call of it: two graphs more, and the helper runs as plain Python."
_STAYS = "It runs as plain Python, as now, without a trial to trace it. What it calls is compiled by itself."


def _propose(source: Source, finding: Finding) -> Iterator[Proposal]:
    helper, function = helper_at(source, finding.range), source.function_at(finding.range)
    if helper is not None:
        decorator = source.before(helper, f"@{source.torch}.compiler.disable")
        yield Proposal(FixMethod.HELPER_TO_PYTHON, _CUT, source.changed({}, [decorator]), last=True)
    is_plain = isinstance(finding.facts, BreakFacts) and finding.facts.leaves_function_to_python
    if is_plain and not function.decorator_list:
        decorator = source.before(function, f"@{source.torch}.compiler.disable(recursive=False)")
        yield Proposal(FixMethod.FUNCTION_TO_PYTHON, _STAYS, source.changed({}, [decorator]), last=True)


_EXAMPLES = (
    Example(HALVED, HALVED.replace("def ", "@torch.compiler.disable\ndef ", 1), is_script=True),
    Example.script("""
        + @torch.compiler.disable(recursive=False)
          def f(x):
              for _ in range(2):
                  torch._dynamo.graph_break()
                  x = x + 1
              return x

          torch.compile(f, backend="eager")(torch.ones(4))
    """),
)
RULE = Rule("left out functions", ("graph-break",), _propose, examples=_EXAMPLES)
