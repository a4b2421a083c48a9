"""Notebooks as something that Python runs: names of cells, and IPython's syntax as comments."""

from __future__ import annotations

import ast
import json

import pytest
from irscope.usercode.notebooks import cell_name, cell_number, joined, notebook_of, python_of_cell, read_cells


def test_names() -> None:
    name = cell_name("/home/me/try #1.ipynb", 3)
    assert notebook_of(name) == "/home/me/try #1.ipynb" and cell_number(name) == 3
    assert notebook_of("/home/me/x.py") is None and notebook_of("/home/me/try.ipynb") is None


@pytest.mark.parametrize(
    ("cell", "python"),
    [
        ("x = 1\ny = x", "x = 1\ny = x"),
        ("%matplotlib inline\nx = 1", "# %matplotlib inline\nx = 1"),
        ("!pip install a\nx = 1", "# !pip install a\nx = 1"),
        ("files = !ls\nenv = %env A", "files = None  # !ls\nenv = None  # %env A"),
        ("for i in y:\n    !ls", "for i in y:\n    pass  # !ls"),
        ("%time y = f(x)", "if 1: y = f(x)"),
        ("%timeit -n 10 -r 3 f(x)", "if              1: f(x)"),
        ("%%time\ny = f(x)", "# %%time\ny = f(x)"),
        ("\n%%capture out\n%cd a\ny = 1", "\n# %%capture out\n# %cd a\ny = 1"),
        ("%%bash\nls\n\necho", "# %%bash\n# ls\n\n# echo"),
        ("%%writefile a.py\nx = 1", "# %%writefile a.py\n# x = 1"),
        ("nn.Linear?\nprint??", "# nn.Linear?\n# print??"),
        ("z = (a\n% b)\n%who", "z = (a\n% b)\n# %who"),
        ('s = """\n%d\n!x\n""" % 3\n%who', 's = """\n%d\n!x\n""" % 3\n# %who'),
        ("a = 7 \\\n% 3\n%who", "a = 7 \\\n% 3\n# %who"),
        ("await f()\n%who", "await f()\n# %who"),
        ("a != 3", "a != 3"),
    ],
)
def test_what_is_no_python_is_a_comment(cell: str, python: str) -> None:
    assert python_of_cell(cell) == python
    compile(python, "cell", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    assert len(python.split("\n")) == len(cell.split("\n")), "no line moves"


def test_a_timed_statement_keeps_its_columns() -> None:
    for cell in ("%time y = f(x)", "%timeit -n 10 f(x)"):
        assert python_of_cell(cell).index("f(x)") == cell.index("f(x)")


def test_a_syntax_error_stays() -> None:
    assert python_of_cell("x = = 1") == "x = = 1"


def notebook(*sources: object, language: str = "python") -> str:
    cells = [{"cell_type": "code", "source": source} for source in sources]
    cells.insert(1, {"cell_type": "markdown", "source": "# words"})
    return json.dumps({"cells": cells, "metadata": {"kernelspec": {"language": language}}, "nbformat": 4})


def test_cells_are_read() -> None:
    assert read_cells(notebook("x = 1", ["y = 2\n", "z = 3"])) == ["x = 1", "y = 2\nz = 3"]
    old = {"worksheets": [{"cells": [{"cell_type": "code", "input": ["x"]}]}], "nbformat": 3}
    assert read_cells(json.dumps(old)) == ["x"]


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", "1", '{"cells": 3}', '{"cells": [{"cell_type": "code", "source": 3}]}']
)
def test_what_is_no_notebook(text: str) -> None:
    with pytest.raises(ValueError, match="not a Jupyter notebook"):
        read_cells(text)


def test_a_notebook_of_another_language() -> None:
    with pytest.raises(ValueError, match="notebook of julia"):
        read_cells(notebook("x = 1", language="julia"))


def test_the_whole_text_tells_the_order_of_the_cells() -> None:
    one, two = (cell_name("/a.ipynb", 1), "x"), (cell_name("/a.ipynb", 2), "y")
    assert joined([one, two]) == "# %% cell-1\nx\n# %% cell-2\ny"
    assert joined([one, two]) != joined([two, one])
