"""The names of functions, as they are shown."""

from pathlib import Path

import pytest
from irscope.protocol import Compile, CompileOutcome, from_json, to_json
from irscope.usercode.source import qualified_name_at
from irscope.vocabulary.function_names import function_title, plain_name, qualified_name

RESUMED = "torch_dynamo_resume_in_forward_at_94"

SOURCE = """\
class Block:
    def __init__(self):
        self.act = lambda x: x

    @staticmethod
    def forward(x):
        def inner():
            return [i for i in x]
        return inner()


def forward(x):
    return x
"""


@pytest.mark.parametrize(
    ("function", "qualified", "title"),
    [
        ("forward", "", "forward"),
        ("forward", "Block.forward", "Block.forward"),
        (RESUMED, "", "forward, after line 94"),
        (RESUMED, "Block.forward", "Block.forward, after line 94"),
        ("torch_dynamo_resume_in_", "", "torch_dynamo_resume_in_"),
    ],
)
def test_titles(function: str, qualified: str, title: str) -> None:
    assert function_title(function, qualified) == title


def test_plain_names() -> None:
    assert plain_name(RESUMED) == "forward"
    assert plain_name("torch_dynamo_resume_in_torch_dynamo_resume_in_f_at_8_at_9") == "f"
    assert qualified_name("main.<locals>.Block.forward") == "main.Block.forward"


def test_a_compile_of_an_older_store_has_a_name() -> None:
    compile = Compile("1/0", RESUMED, "m.py", 94, CompileOutcome.COMPILED, 0, 1, 0.1)
    stored = to_json(compile)
    del stored["qualified"]
    assert (from_json(Compile, stored).title, compile.function_name) == ("forward, after line 94", "forward")


@pytest.mark.parametrize(
    ("name", "line", "qualified"),
    [
        ("forward", 5, "Block.forward"),  # its decorator
        ("forward", 9, "Block.forward"),
        ("inner", 8, "Block.forward.inner"),
        ("<listcomp>", 8, "Block.forward.inner.<listcomp>"),
        ("<lambda>", 3, "Block.__init__.<lambda>"),
        ("forward", 13, "forward"),
        ("forward", 2, "forward"),  # none of this name is there
        ("<module>", 1, "<module>"),
    ],
)
def test_names_from_the_syntax_tree(tmp_path: Path, name: str, line: int, qualified: str) -> None:
    file = tmp_path / "model.py"
    file.write_text(SOURCE)
    assert qualified_name_at(str(file), name, line) == qualified
