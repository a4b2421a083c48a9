"""Functions of two installations, and code of kernels, as causes of differences between versions.

The refusals have the form of those that torch 2.11 and 2.13 write; their texts, and the functions of the two
installations, are made for these tests.
"""

from __future__ import annotations

import json
import sys
import types
from collections.abc import Iterator
from pathlib import Path

import pytest
from irscope.comparing.versions.code import Installation, function_changes
from irscope.comparing.versions.differences import Difference
from irscope.comparing.versions.environments import LOWERING, EnvironmentChange, Facts
from irscope.comparing.versions.kernel_code import CodePair, changed_words, code_differences, plain_code
from irscope.driver.search import Candidate
from irscope.driver.version_candidates import Functions, read_refusals
from irscope.internals import older_code
from irscope.protocol import Compile, CompileOutcome

BUILTIN = "torch._dynamo.variables.builtin:BuiltinVariable"
OLD = {
    "_dynamo/variables/builtin.py": """\
class BuiltinVariable:
    def call_function(self, args):
        return self._make_handler(args)

    @staticmethod
    def _make_handler(args):
        def refuse():
            unimplemented(gb_type="Failed to trace builtin operator")
        return refuse()
""",
    "_inductor/lowering.py": "def cat(x):\n    return x\n\ndef pad(x):\n    return x\n",
    "_inductor/codegen/cpp.py": "class Group:\n    def write(self):\n        return 'threads(2)'\n",
}
NEW = {
    "_dynamo/variables/builtin.py": """\
class BuiltinVariable:
    def call_function(self, args):
        return self._make_handler(args)

    @staticmethod
    def _make_handler(args):
        return getattr(args[0], "call_" + args[1])

    def call_hash(self, arg):
        return hash(arg)

    def call_tuple(self, arg):
        return tuple(arg)
""",
    "_inductor/lowering.py": "def cat(x):\n    return [x]\n\ndef pad(x):\n    return [x]\n",
    "_inductor/codegen/cpp.py": "class Group:\n    def write(self):\n        return 'dynamic'\n",
}


@pytest.fixture
def script(tmp_path: Path) -> str:
    path = tmp_path / "net.py"
    path.write_text("def f(x):\n    return x + (hash('a') > 0)\n", encoding="utf-8")
    return str(path)


@pytest.fixture
def functions(tmp_path: Path, script: str) -> Functions:
    for version, files in (("old", OLD), ("new", NEW)):
        for name, text in files.items():
            path = tmp_path / version / "torch" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    lowered = {"aten.cat": "torch._inductor.lowering:cat", "aten.pad": "torch._inductor.lowering:pad"}
    facts = [
        Facts(torch=torch, folder=str(tmp_path / version / "torch"), lowered_by=lowered)
        for version, torch in (("old", "2.11"), ("new", "2.13"))
    ]
    running = [f"{BUILTIN}._make_handler.<locals>.refuse", f"{BUILTIN}._make_handler", f"{BUILTIN}.call_function"]
    told = {"gb_type": "Failed to trace builtin operator", "functions": running, "places": [f"{script}:2"]}
    (tmp_path / "refusals.jsonl").write_text(f"{json.dumps(told)}\nnot JSON\n[]\n", encoding="utf-8")
    refusals = read_refusals(str(tmp_path))
    assert [one.gb_type for one in refusals] == [told["gb_type"]], "what cannot be read is left out"
    return Functions(facts[0], facts[1], (refusals, []))


def gone(script: str, line: int = 2) -> list[Difference]:
    return [Difference("finding", "gone: graph-break GB0059: a break", script, line)]


def names(candidates: list[Candidate]) -> list[str]:
    return [change.name.rpartition(".")[2] for change, _ in candidates]


def test_a_break_of_one_side_leads_to_what_was_running(functions: Functions, script: str) -> None:
    ((change, flip),) = functions.of_breaks(gone(script))
    assert change.words == "the function torch._dynamo.variables.builtin.BuiltinVariable._make_handler has other code"
    assert "Failed to trace builtin operator" in flip.code[f"{BUILTIN}._make_handler"] and not flip.in_both
    assert functions.of_breaks(gone(script, line=1)) == [], "another line"


def test_a_method_that_is_new_leads_to_the_name_in_the_line(functions: Functions, script: str) -> None:
    ((change, flip),) = functions.gained(gone(script))
    assert change.words.endswith("BuiltinVariable.call_hash is new") and flip.code == {f"{BUILTIN}.call_hash": ""}


def test_a_break_without_a_confirmed_cause_has_evidence(functions: Functions, script: str) -> None:
    (cause,) = functions.told([*gone(script), Difference("compile", "gone: compile of f", script, 2)])
    assert (
        not cause.confirmed
        and cause.explains == tuple(gone(script))
        and cause.changes[0].words == "torch was 2.11, now 2.13"
    )
    assert cause.how == (
        f"torch 2.11 gives up in {BUILTIN.replace(':', '.')}._make_handler.<locals>.refuse "
        "(Failed to trace builtin operator), torch 2.13 does not"
    )
    new = [Difference("finding", "new: graph-break GB0059: a break", script, 2)]
    assert functions.told(new) == [], "the newer run raised nothing"


def test_a_lowering_leads_to_the_function_that_does_it(functions: Functions) -> None:
    changes = [EnvironmentChange(LOWERING, name, "1", "2") for name in ("aten.cat", "aten.pad", "aten.mm")]
    assert names(functions.of_lowerings(changes, lambda name: name != "aten.pad")) == ["cat"]


def test_words_of_kernels_lead_to_what_writes_them(functions: Functions) -> None:
    assert names(functions.that_write({"threads"})) == ["write"] and functions.that_write({"other"}) == []
    assert functions.that_write(set()) == []


def test_names_that_are_no_functions_of_torch_are_not_looked_for(tmp_path: Path) -> None:
    (tmp_path / "secret.py").write_text("def f(): pass\n", encoding="utf-8")
    here = Installation(str(tmp_path / "torch"))
    for name in ("torch...secret:f", "secret:f", "torch.x:../f", "torch.x", "os:system", ""):
        assert here.text(name) == "" and not function_changes(here, here, [name])


# --- the code of kernels ----------------------------------------------------------------------------------------------


def pair(compile: str, before: str, after: str) -> CodePair:
    made = Compile(compile, "f", "net.py", 3, CompileOutcome.COMPILED, 0, 1, 0.1)
    return CodePair(f"cpp_fused_{compile}", made, before, after)


def test_lines_that_all_kernels_gain_are_one_difference_and_hide_no_other() -> None:
    pairs = [
        pair("0/0", "{\na = b;\n}", "{\nint error{0};\na = b;\n}"),
        pair("1/0", "{\na = c;\n}", "{\nint error{0};\na = d;\n}"),
    ]
    everywhere, one = code_differences(pairs)
    assert everywhere == Difference("code", "all 2 kernels are now with `int error{0};`")
    assert (one.what, one.compile, one.line) == ("other code in 1 kernel: cpp_fused_1/0", "1/0", 3)
    assert [found.what for found in code_differences(pairs[1:])] == [one.what], "one kernel says nothing about all"
    assert list(code_differences([pair("0/0", "x", "x"), pair("1/0", "y", "y")])) == []


def test_numbered_names_are_no_words_of_a_change() -> None:
    pairs = [pair("0/0", "auto tmp12 = value; num_threads(2)", "auto tmp345 = value; error_flag")]
    assert changed_words(pairs) == {"num_threads", "error_flag"}


def test_comments_and_headers_are_not_compared() -> None:
    assert plain_code("#include <a.h>\nint x; \n\n# a comment\n") == "int x;"


# --- functions of another version -------------------------------------------------------------------------------------

SOURCE = """\
class Base:
    def size(self):
        return 1

class Net(Base):
    def size(self):
        return 2

    def gained(self):
        return 3

lowerings = {"cat": "new"}

def unimplemented(text):
    raise ValueError(text)

def register(function):
    lowerings["cat"] = function
    return function

def cat():
    return "new"
"""


@pytest.fixture
def module() -> Iterator[types.ModuleType]:
    made = types.ModuleType("torch.made_here")
    exec(SOURCE, vars(made))
    sys.modules[made.__name__] = made
    yield made
    del sys.modules[made.__name__]


def replaced(module: types.ModuleType, path: str, text: str) -> list[object]:
    """What the module has with the text in place, and again without it."""
    (hook,) = older_code.hooks({f"{module.__name__}:{path}": text})
    undo = hook.apply(module)
    seen = [module.Net().size(), hasattr(module.Net, "gained"), module.cat(), module.lowerings["cat"] is module.cat]
    undo()
    assert (module.Net().size(), module.cat(), module.lowerings) == (2, "new", {"cat": "new"})
    assert hasattr(module.Net, "gained")
    return seen


def test_a_method_of_another_version_takes_the_place_of_one(module: types.ModuleType) -> None:
    text = "def size(self: Optional[int]) -> Missing:\n    return super().size() + 40"
    assert replaced(module, "Net.size", text) == [41, True, "new", False]


def test_a_function_is_registered_as_its_decorators_do(module: types.ModuleType) -> None:
    assert replaced(module, "cat", "@register\ndef cat():\n    return 'old'") == [2, True, "old", True]


def test_a_method_is_taken_away(module: types.ModuleType) -> None:
    assert replaced(module, "Net.gained", "") == [2, False, "new", False]
    assert replaced(module, "Net.size", "")[0] == 1, "that of the base class"


@pytest.mark.parametrize(
    ("path", "text", "error"),
    [
        ("Net.size", "def size(self):\n    return gone(self)", "this version has no gone"),
        ("Net.missing", "", "has no method"),
        ("cat", "", "has no method"),
        ("Other.size", "def size(self): pass", "has no attribute"),
    ],
)
def test_what_does_not_fit_changes_nothing(module: types.ModuleType, path: str, text: str, error: str) -> None:
    before = dict(vars(module))
    with pytest.raises((NameError, AttributeError), match=error):
        replaced(module, path, text)
    assert vars(module) == before and module.Net().size() == 2


def test_a_name_of_torch_2_9_is_that_of_later_versions(module: types.ModuleType) -> None:
    (hook,) = older_code.hooks({f"{module.__name__}:cat": "def cat():\n    unimplemented_v2('no')"})
    undo = hook.apply(module)
    with pytest.raises(ValueError, match="no"):
        module.cat()
    undo()


def test_only_functions_of_torch_can_be_replaced() -> None:
    with pytest.raises(ValueError, match="not a function of PyTorch"):
        older_code.hooks({"os:system": "def system(): pass"})


def test_an_installation_that_lacks_a_package_has_no_functions_in_it(tmp_path: Path) -> None:
    assert Installation(str(tmp_path)).functions_with({"any"}, "torch._dynamo.variables") == []
