"""The examples of the rules: each leads from irscope's own finding in the one text to the other.

The scripts of all examples run one after the other in one run: `test_markers` has that what is found in a script does not
depend on what ran before it.
"""

from __future__ import annotations

import textwrap

import pytest
from irscope.fixing.model import Example, Rule
from irscope.fixing.proposals import all_rules
from irscope.fixing.source import Source
from irscope.protocol import Finding
from script_runs import run_all
from support import write

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


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Finding]]:
    """Text of a script → what was found in it."""
    folder = tmp_path_factory.mktemp("examples")
    texts = dict.fromkeys(script(example, example.before) for rule in all_rules() for example in rule.examples)
    paths = {write(folder, text, f"{number}/script.py"): text for number, text in enumerate(texts, 1)}
    findings = run_all(folder, "examples", [*paths], may_fail=True).report.findings
    return {text: [one for one in findings if one.file == str(path)] for path, text in paths.items()}


@pytest.mark.parametrize(("rule", "example"), EXAMPLES)
def test_an_example(rule: Rule, example: Example, found: dict[str, list[Finding]]) -> None:
    """What the rule makes of the script, for each finding that it fits."""
    before, after = script(example, example.before), script(example, example.after)
    compile(after, "after", "exec")
    asked = [finding for finding in found[before] if rule.fits(finding)]
    assert asked, [(finding.kind, finding.code, finding.message) for finding in found[before]]
    proposals = [proposal for finding in asked for proposal in rule.propose(Source(before), finding)]
    texts = {proposal.text for proposal in proposals}
    assert after in texts, "\n---\n".join(texts)


@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.name)
def test_a_rule_has_two_examples(rule: Rule) -> None:
    assert len(rule.examples) >= 2
