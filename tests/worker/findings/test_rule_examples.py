"""The examples of the rules: each leads from irscope's own finding in the one text to the other."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from irscope.fixing.model import Example, Rule
from irscope.fixing.proposals import all_rules
from irscope.fixing.source import Source
from support import run_forked, write

HEAD = '@torch.compile(backend="eager")\ndef f(x):\n'
EXAMPLES = [
    pytest.param(rule, example, id=f"{rule.name} {number}")
    for rule in all_rules()
    for number, example in enumerate(rule.examples, 1)
]


def script(example: Example, code: str) -> str:
    """The whole text of a script with the code of an example."""
    code = textwrap.dedent(code).strip("\n")
    if example.is_script:
        return f"{code}\n"
    above = textwrap.dedent(example.above).strip("\n")
    head = f"import torch\n{above}\n\n{HEAD}" if above else f"import torch\n\n{HEAD}"
    return f"{head}{textwrap.indent(code, '    ')}\n\n{example.calls}\n"


def proposed(rule: Rule, text: str, folder: Path) -> set[str]:
    """What a rule makes of a script, for each finding of its run that the rule fits."""
    ran = run_forked(write(folder, text), folder / "runs.db")
    asked = [finding for finding in ran.report.findings if rule.fits(finding)]
    assert asked, [(finding.kind, finding.code, finding.message) for finding in ran.report.findings] or ran.stderr
    proposals = [proposal for finding in asked for proposal in rule.propose(Source(text), finding)]
    return {proposal.text for proposal in proposals}


@pytest.mark.parametrize(("rule", "example"), EXAMPLES)
def test_an_example(rule: Rule, example: Example, tmp_path: Path) -> None:
    after = script(example, example.after)
    compile(after, "after", "exec")
    texts = proposed(rule, script(example, example.before), tmp_path)
    assert after in texts, "\n---\n".join(texts)


@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.name)
def test_a_rule_has_two_examples(rule: Rule) -> None:
    assert len(rule.examples) >= 2
