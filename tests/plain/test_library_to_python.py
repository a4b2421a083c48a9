"""Functions of a library that the user's file leaves to Python: which ones, and the text that is made."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import Any

import pytest
from irscope.cli.fixing import _measured_lines
from irscope.driver.fixing.trying import Trying
from irscope.driver.trials.gains import MeasuredGain, Side, Spread
from irscope.driver.trials.proving import Proof, Status
from irscope.fixing.library_to_python import plain_functions
from irscope.fixing.texts import applied
from irscope.protocol import Compile, CompileOutcome, Finding, Position, Range, Related, RelatedRole, Severity

RULES, HELP = (
    "/env/lib/python3.11/site-packages/deciding/rules.py",
    "/env/lib/python3.11/site-packages/deciding/help.py",
)
LIBRARY = {
    RULES: """\
class Rule:
    @helped
    def forward(self, x):
        return self.inner(x)

    def inner(self, x):
        return int(x)

    @property
    def size(self):
        return int(self.x)
""",
    HELP: """\
def helped(function):
    def wrapper(*args):
        return function(*args)
    return wrapper


CODE = 1
""",
}
USER = "import torch\nfrom deciding import Rule\n\nrule = torch.compile(Rule())\nrule(torch.ones(3))\n"
HELPER = '''\
import inspect
from torch._dynamo.eval_frame import skip_code
{}

def leave_to_python(function):
    """Lets a function and what is defined in it run as plain Python; what they call is compiled."""
    codes = [inspect.unwrap(function).__code__]
    for code in codes:
        skip_code(code)
        codes += [one for one in code.co_consts if inspect.iscode(one)]


'''


def finding(*places: tuple[str, int], kind: str = "graph-break", line: int = 5) -> Finding:
    def where(line: int) -> Range:
        return Range(Position(line, 0), Position(line, 4))

    roles = (RelatedRole.CAUSE, *[RelatedRole.CALLER] * len(places))
    related = tuple(Related(file, where(at), "", role) for (file, at), role in zip(places, roles, strict=False))
    return Finding(kind, "GB0170", Severity.WARNING, "", "", (), None, "user.py", where(line), 1, ("1/1",), related)


def changed(one: Finding, text: str = USER, compiles: tuple[Compile, ...] = ()) -> list[str]:
    return [applied(text, fix.edits) for fix in plain_functions(one, text, compiles, LIBRARY.__getitem__)]


def test_every_function_on_the_way_to_a_break() -> None:
    one = finding((RULES, 7), (HELP, 3), (RULES, 4), (RULES, 4))
    (made,) = changed(one)
    head, tail = USER.split("\n\n", 1)
    imports = "from deciding import rules\nfrom deciding import help\n"
    calls = "leave_to_python(rules.Rule.inner)\nleave_to_python(help.helped)\nleave_to_python(rules.Rule.forward)\n"
    assert made == f"{head}\n{HELPER.format(imports)}{calls}\n{tail}"
    (fix,) = plain_functions(one, USER, (), LIBRARY.__getitem__)
    assert fix.caveat.startswith(
        "These run as plain Python: `Rule.inner`, `helped`, `Rule.forward`. Their own operations"
    )


def test_what_was_compiled_again() -> None:
    again = Compile("1/1", "size", RULES, 9, CompileOutcome.COMPILED, 0, 1, 0.1)
    others = dataclasses.replace(again, id="1/0", line=3), dataclasses.replace(again, file="user.py")
    (made,) = changed(finding(kind="recompilation"), compiles=(again, *others))
    assert made.count("leave_to_python(") == 2
    assert "leave_to_python(rules.Rule.size.fget)\n" in made
    assert not changed(finding(kind="specialization"), compiles=(again,))


@pytest.mark.parametrize(
    ("places", "text", "line"),
    [
        ([], USER, 5),  # not in a library
        ([("/env/lib/python3.11/site-packages/torch/nn/functional.py", 2)], USER, 5),
        ([(HELP, 7)], USER, 5),  # code of a module, which runs once
        ([(RULES, 7)], "torch.ones(3)\n", 1),  # nowhere after an import
    ],
)
def test_where_it_is_not_offered(places: list[tuple[str, int]], text: str, line: int) -> None:
    assert not changed(finding(*places, line=line), text)


def test_a_function_of_the_users_would_break_at_the_call() -> None:
    own = Compile("1/1", "f", "user.py", 3, CompileOutcome.GRAPH_BREAK, 0, 1, 0.1)
    assert not changed(finding((RULES, 7)), compiles=(own,))
    assert changed(finding((RULES, 7)), compiles=(dataclasses.replace(own, file=RULES),))
    assert changed(finding((RULES, 7)), compiles=(dataclasses.replace(own, id="1/0"),))


def test_two_of_them_share_what_they_need() -> None:
    (first,) = plain_functions(finding((RULES, 7)), USER, (), LIBRARY.__getitem__)
    (second,) = plain_functions(finding((RULES, 4)), USER, (), LIBRARY.__getitem__)
    together = applied(USER, [*first.edits, *(one for one in second.edits if one not in first.edits)])
    (after,) = changed(finding((RULES, 4)), applied(USER, first.edits))
    assert "leave_to_python(rules.Rule.inner)\nleave_to_python(rules.Rule.forward)\n" in after
    assert left_to_python(together) == left_to_python(after) == ["<lambda>", "forward", "inner"]
    for made in (together, after):
        assert made.count("def leave_to_python") == made.count("import rules") == 1


def left_to_python(made: str) -> list[str]:
    """The codes that a changed text skips, sorted, with the library in its imports replaced."""
    code = made.split("\nrule =")[0]
    for line in (
        "from torch._dynamo.eval_frame import skip_code",
        "from deciding import Rule",
        "from deciding import rules",
        "import torch",
    ):
        code = code.replace(f"{line}\n", "")
    asked: list[str] = []

    class Rule:
        def inner(self) -> Any:
            return lambda: 1

        def forward(self) -> int:
            return 2

    names: dict[str, Any] = {"rules": type("rules", (), {"Rule": Rule})}
    exec(
        code, names | {"skip_code": lambda code: asked.append(code.co_name)}
    )  # the helper is defined before its first call
    return sorted(asked)


def test_names_that_the_text_has_already() -> None:
    text = USER.replace("rule =", "rules =")
    (made,) = changed(finding((RULES, 7)), text)
    assert "from deciding import rules as rules_2\n" in made
    assert "leave_to_python(rules_2.Rule.inner)\n" in made
    other = RULES.replace("/deciding/", "/other/")
    (made,) = [
        applied(USER, fix.edits)
        for fix in plain_functions(
            finding((RULES, 7), (other, 7)), USER, (), {**LIBRARY, other: LIBRARY[RULES]}.__getitem__
        )
    ]
    assert "from other import rules as other_rules\n" in made
    assert "leave_to_python(rules.Rule.inner)\nleave_to_python(other_rules.Rule.inner)\n" in made


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (3.0, 4.0, "It is slower with the change."),
        (1.5, 4.0, "The two overlap: no difference is shown."),
        (0.5, 0.9, "in turns."),
    ],
)
def test_what_is_slower_is_said(low: float, high: float, words: str) -> None:
    old, new = (Side(1, 1, 1.0, spread) for spread in (Spread(1.5, 1.0, 2.0), Spread(low, low, high)))
    assert list(_measured_lines(MeasuredGain(old, new)))[-1].endswith(words)


@pytest.mark.parametrize(
    ("first", "words"), [("The finding is still there.", "Rule.size.fget"), ("The results differ.", "")]
)
def test_one_finding_may_be_of_several_functions(first: str, words: str) -> None:
    """Where it is still there, for another function, that one is left to Python, too."""
    one = dataclasses.replace(finding(kind="recompilation"), code="recompile-value")
    again = Compile("1/1", "inner", RULES, 6, CompileOutcome.COMPILED, 0, 1, 0.1)
    is_there = "still" in first
    proofs = [Proof(Status.DISPROVEN, first, () if is_there else (one,)), Proof(Status.VERIFIED, "", (one,))]
    left = SimpleNamespace(findings=(one,) if is_there else (), compiles=(dataclasses.replace(again, line=9),))
    prover: Any = SimpleNamespace(
        original=SimpleNamespace(findings=(one,), compiles=(again,)),
        text_of=lambda path: USER if path == "user.py" else LIBRARY[path],
        prove=lambda texts, finding: (proofs.pop(0), left),
    )
    (tried,) = Trying(prover, 10, with_rules=False).finding(one).candidates
    assert tried.proof.status is (Status.VERIFIED if words else Status.DISPROVEN)
    made = applied(USER, tried.fix.edits)
    assert "leave_to_python(rules.Rule.inner)\n" in made
    assert (made.count("leave_to_python(rules.Rule.size.fget)\n"), "`Rule.size`" in tried.fix.caveat) == (
        (1, True) if words else (0, False)
    )
