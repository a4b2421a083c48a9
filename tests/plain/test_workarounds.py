"""A break in a library, removed from the user's file: the copy of the function, and what it is as a patch of the library."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest
from irscope.fixing.places import in_library
from irscope.fixing.texts import applied, edits_between
from irscope.fixing.workarounds import about_one_function, as_patches, module_of, workarounds
from irscope.protocol import Finding, Fix, Position, Range, Related, RelatedRole, Severity

FILE = "/env/lib/python3.11/site-packages/deciding/rules.py"
LIBRARY = '''\
"""About rules."""
import torch
from torch import nn


def other(x):
    return x


class Rule(nn.Module):
    """A rule."""

    first = 1

    def forward(self, x: Odd, y: int = 1, *, z=odd(), **more: Unpack[Odd]) -> Odd:
        """What it does."""

        # why
        if x.sum() > 0:
            return x + 1
        return x

    @staticmethod
    def apart(x):
        return int(x)

    @functools.wraps
    def wrapped(self, x):
        return int(x)

    def up(self, x):
        return super().up(int(x))

    def hidden(self, x):
        return self.__x[int(x)]

    def long(self, x):
        return """
        """, int(x)

    @property
    def size(self):
        return int(x)

    @size.setter
    def size(self, x):
        self.y = int(x)
'''
USER = "import torch\nfrom deciding import Rule\n\nrule = torch.compile(Rule())\nrule(torch.ones(3))\n"


def finding(line: int) -> Finding:
    at = Range(Position(line, 0), Position(line, 4))
    return Finding("graph-break", "GB0170", Severity.WARNING, "", "", (), None, FILE, at, 1, (), ())


Propose = Callable[[Finding, str], list[Fix]]


def replacing(old: str, new: str) -> Propose:
    def propose(there: Finding, text: str) -> list[Fix]:
        assert (there.file, old in text) == (FILE, True)
        return [Fix("Change it", "It costs.", edits_between(text, text.replace(old, new)))]

    return propose


def made(there: Finding, user: str, library: str, propose: Propose) -> list[Fix]:
    """The workarounds where the rules propose that."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("irscope.fixing.workarounds.proposals", propose)
        return list(workarounds(there, user, library))


def line_of(text: str) -> int:
    return next(number for number, line in enumerate(LIBRARY.split("\n"), 1) if text in line)


def changed(at: str, old: str, new: str, user: str = USER) -> str:
    fixes = made(finding(line_of(at)), user, LIBRARY, replacing(old, new))
    return applied(user, fixes[0].edits) if fixes else ""


def test_a_copy_takes_the_place_of_a_method() -> None:
    text = changed(
        "if x.sum()", "        if x.sum() > 0:\n            return x + 1\n        return x\n", "        return y\n"
    )
    assert text == (
        "import torch\nfrom deciding import Rule\nfrom deciding import rules\n\n\n"
        "def forward_without_break(self, x, y=1, *, z=None, **more):\n    # why\n    return y\n\n\n"
        "rules.Rule.forward.__code__ = forward_without_break.__code__\n"
        "\nrule = torch.compile(Rule())\nrule(torch.ones(3))\n"
    )
    patched = as_patches(USER, text, {FILE: LIBRARY})
    assert patched == {
        FILE: LIBRARY.replace(
            "        if x.sum() > 0:\n            return x + 1\n        return x\n", "        return y\n"
        )
    }


def test_what_wraps_a_function_stays() -> None:
    assert "\nrules.Rule.apart.__code__ = " in changed("def apart", "int(x)", "x.long()")
    assert "import inspect\n" in (text := changed("def wrapped", "int(x)", "x.long()"))
    assert "\ninspect.unwrap(rules.Rule.wrapped).__code__ = wrapped_without_break.__code__\n" in text
    assert as_patches(USER, text, {FILE: LIBRARY})[FILE].count("x.long()") == 1
    text = changed("def size(self)", "int(x)", "x.long()")
    assert "\nrules.Rule.size.fget.__code__ = size_without_break.__code__\n" in text
    assert "    def size(self):\n        return x.long()\n" in as_patches(USER, text, {FILE: LIBRARY})[FILE]


def test_strings_of_several_lines_stay_as_they_are() -> None:
    old, new = '        """, int(x)', '        """, x.long()'
    text = changed("def long", old, new)
    assert f'def long_without_break(self, x):\n    return """\n{new}\n' in text
    assert as_patches(USER, text, {FILE: LIBRARY}) == {FILE: LIBRARY.replace(old, new)}


@pytest.mark.parametrize("at", ["def up", "def hidden", "def size(self, x)", "first = 1"])
def test_what_cannot_be_replaced(at: str) -> None:
    there = finding(line_of(at) + 1)
    old = LIBRARY.split("\n")[line_of(at)]
    assert not made(there, USER, LIBRARY, replacing(old, old + "; new()"))


def test_a_change_that_is_no_code_has_no_copy() -> None:
    assert changed("if x.sum()", "    def forward", "    @new\n    def forward") == ""
    assert changed("if x.sum()", "x + 1", "x + 1  # new") == ""


def test_a_change_outside_of_the_function_has_no_copy() -> None:
    assert changed("if x.sum()", "import torch\n", "import torch\nimport functools\n") == ""


def test_a_function_that_is_called_has_a_copy() -> None:
    library = LIBRARY.replace("if x.sum()", "if other(x).sum()")
    propose = replacing("def other(x):\n    return x", "def other(x):\n    return abs(x)")
    (fix,) = made(finding(line_of("if x.sum()")), USER, library, propose)
    assert "\nrules.other.__code__ = other_without_break.__code__\n" in applied(USER, fix.edits)


def test_an_import_that_a_module_does_not_have_is_in_the_copy() -> None:
    def propose(there: Finding, text: str) -> list[Fix]:
        new = text.replace("import torch\n", "import math\nimport torch\n").replace("x + 1", "math.tau")
        return [Fix("", "", edits_between(text, new))]

    (fix,) = made(finding(line_of("if x.sum()")), USER, LIBRARY, propose)
    text = applied(USER, fix.edits)
    assert "more):\n    import math\n    # why\n    if x.sum() > 0:\n        return math.tau\n" in text
    assert "        import math\n        # why\n" in as_patches(USER, text, {FILE: LIBRARY})[FILE]


def test_a_second_copy_has_another_name() -> None:
    once = changed("if x.sum()", "x + 1", "x + 2")
    twice = changed("if x.sum()", "x + 1", "x + 3", once)
    assert "def forward_without_break_2(" in twice and twice.count("from deciding import rules\n") == 1


DRAWING = LIBRARY.replace("import torch\n", "import numpy as np\nimport torch\n").replace(
    "class Rule", "def drawn(n: int) -> np.ndarray:\n    m = np.zeros(n)\n    m[0] = np.random.rand()\n    return m\n\n\nclass Rule"
).replace("if x.sum()", "if (x + drawn(3)).sum()")  # fmt: skip
OPERATOR = """\
@torch.library.custom_op("draws::drawn", mutates_args=())
def drawn_in_graph(n: int) -> torch.Tensor:
    return torch.from_numpy(drawn_with_numpy(n))


# why
drawn_in_graph.register_effect(torch.why)


@drawn_in_graph.register_fake
def _(n):
    return torch.empty(n)


"""


def drawing(there: Finding, text: str) -> list[Fix]:
    """An operator for what is drawn; of the other line, a change of it."""
    if there.code == "GB0170":
        return [Fix("Change it", "It costs.", edits_between(text, text.replace("return x + 1", "return x + 2")))]
    assert "np.random" in text.split("\n")[there.range.start.line - 1]
    stub = f"{OPERATOR}def drawn(n):\n    return torch.ops.draws.drawn(n)\n"
    old = text[text.index("def drawn") : text.index("return m\n") + 9]
    new = text.replace(old, f"{old.replace('def drawn(', 'def drawn_with_numpy(')}\n\n{stub}")
    return [Fix("Draw it", "", edits_between(text, new))]


def test_an_operator_goes_with_the_copy() -> None:
    """While the library draws other numbers in compiled code, no other fix of it can be proven."""
    line = next(n for n, one in enumerate(DRAWING.split("\n"), 1) if "drawn(3)" in one)
    alone, both = made(finding(line), USER, DRAWING, drawing)
    assert (
        both.title
        == "Change it, in a copy of the function of rules.py; then Draw it, in a copy of the function of rules.py"
    )
    assert "def drawn" not in applied(USER, alone.edits)
    text = applied(USER, both.edits)
    helper = "def drawn_with_numpy(n: int) -> np.ndarray:\n    m = np.zeros(n)\n    m[0] = np.random.rand()\n    return m\n\n\n"
    stub = "def drawn_without_break(n):\n    return torch.ops.draws.drawn(n)\n\n\n"
    assert (
        f"import numpy as np\n\n\n{helper}{OPERATOR}{stub}rules.drawn.__code__ = drawn_without_break.__code__\n" in text
    )
    assert "    return x + 2\n" in text
    patched = as_patches(USER, text, {FILE: DRAWING})[FILE]
    assert f"{helper}{OPERATOR}def drawn(n: int) -> np.ndarray:\n    return torch.ops.draws.drawn(n)\n" in patched
    assert patched.count("return x + 2") == patched.count("def drawn_with_numpy") == 1


def test_an_operator_that_reads_more_of_the_library_has_no_copy() -> None:
    line = next(n for n, one in enumerate(DRAWING.split("\n"), 1) if "drawn(3)" in one)
    library = DRAWING.replace("np.zeros(n)", "np.zeros(n + LONGEST)")
    assert [fix.title.count("; then") for fix in made(finding(line), USER, library, drawing)] == [0]


def test_only_what_matters_is_read() -> None:
    small = about_one_function(LIBRARY, line_of("if x.sum()"))
    assert len(small.split("\n")) == len(LIBRARY.split("\n"))
    kept = [line for line in small.split("\n") if line]
    assert kept[:4] == [
        "import torch",
        "from torch import nn",
        "class Rule(nn.Module):",
        "    def forward(self, x: Odd, y: int = 1, *, z=odd(), **more: Unpack[Odd]) -> Odd:",
    ]
    assert kept[-1] == "        return x"
    assert about_one_function("def f(:", 1) == about_one_function(LIBRARY, 2) == ""


def test_a_finding_of_the_user_is_in_no_library_unless_its_cause_is() -> None:
    there = finding(3)
    own = dataclasses.replace(there, file="user.py", range=Range(Position(5, 0), Position(5, 18)))
    cause = Related(FILE, there.range, "", RelatedRole.CAUSE)
    assert in_library(own) is None
    assert in_library(dataclasses.replace(own, related=(cause,))) == there


def test_the_name_of_a_module() -> None:
    assert module_of(FILE) == "deciding.rules"
    assert module_of("/env/lib/site-packages/deciding/__init__.py") == "deciding"
