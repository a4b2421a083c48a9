"""Notebooks under capture: their cells run in order, and what is found names the cell and its line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from irscope.protocol import EntryKind, OutcomeKind
from irscope.usercode.notebooks import cell_name
from support import Ran, run_cli, run_cli_forked, run_forked

CELLS = (
    "from __future__ import annotations\n%matplotlib inline\nimport torch, os, sys",
    "%%bash\nexit 3",
    "@torch.compile\ndef f(x: Later):\n    y = x.sin()\n    print('in the middle')\n    return y.cos()",
    "import asyncio\nsize = await asyncio.sleep(0, 4)\nfiles = !ls",
    "%time y = f(torch.ones(size))\nget_ipython().run_line_magic('pip', 'install x')\ndisplay(y.shape)",
    "def g(x: Later):\n    return x\nprint(__name__, '__file__' in globals(), os.getcwd(), sys.argv, files, g.__annotations__)",
)


def notebook(folder: Path, *cells: str) -> Path:
    path = folder / "my notebook.ipynb"
    data = {"cells": [{"cell_type": "code", "source": cell} for cell in cells], "metadata": {}, "nbformat": 4}
    path.write_text(json.dumps(data))
    return path


def run(path: Path, lane: str = "fast") -> Ran:
    return run_forked(path, path.parent / "runs.db", lane, entry=EntryKind.NOTEBOOK)


def test_cells_run_in_order_in_one_process(tmp_path: Path) -> None:
    path = notebook(tmp_path, *CELLS)
    before = path.read_bytes()
    ran = run(path)
    assert ran.report.outcome.kind is OutcomeKind.COMPLETED, ran.stderr
    assert ran.stdout.splitlines() == [
        "in the middle",
        "torch.Size([4])",
        f"__main__ False {tmp_path} {[str(path)]} None {{'x': 'Later'}}",
    ]
    (found,) = ran.findings("graph-break")
    assert (found.file, found.range.start.line, found.range.start.column) == (cell_name(str(path), 3), 4, 4)
    assert [(one.file, one.range.start.line) for one in found.related] == [(cell_name(str(path), 5), 1)]
    assert {compile.file for compile in ran.report.compiles} == {cell_name(str(path), 3)}
    assert ran.report.script == str(path) and path.read_bytes() == before


TWO_RETURNS = """\
%%time
@torch.compile(backend='eager')
def two(x, flag):
    y = x + 1
    if flag:
        return y.sum().item()
    y = y * 2
    return y.sum().item()

two(torch.ones(2), FLAG)
"""


def test_a_finding_is_at_the_return_that_ran_though_others_have_its_text(tmp_path: Path) -> None:
    """The same function in each of three cells, which take one return or the other; and two functions of one line."""
    on_one_line = (
        "a, b = [torch.compile(f, backend='eager') for f in (lambda x: x.sum().item(), lambda x: x.sum().item())]"
    )
    flags = ("True", "False", "True")
    cells = ["import torch", *(TWO_RETURNS.replace("FLAG", flag) for flag in flags), f"{on_one_line}\nb(torch.ones(2))"]
    path = notebook(tmp_path, *cells)
    found = [(one.file, one.range.start.line, one.range.start.column) for one in run(path).findings("graph-break")]
    lines = {cell_name(str(path), number): (6 if flag == "True" else 8) for number, flag in enumerate(flags, 2)}
    columns = {6: 15, 8: 11}
    last = (cell_name(str(path), 5), 1, on_one_line.rindex("x.sum()"))
    assert found == [*((cell, line, columns[line]) for cell, line in lines.items()), last]


FRONT_END = (
    "import ipywidgets as widgets\nfrom IPython.display import display, clear_output, HTML\nfrom IPython import get_ipython",
    "try:\n    import ipympl\n    found = True\nexcept ImportError:\n    found = False",
    "slider = widgets.IntSlider(min=0, max=3)\nslider.observe(print, names='value')\n"
    "@widgets.interact(x=(0, 3))\ndef shown(x):\n    return x",
    "class Panel(widgets.VBox):\n    def __init__(self):\n        super().__init__([slider], layout=None)\n\nPanel().children",
    "class Broken:\n    def __repr__(self):\n        raise ValueError('no')",
    "handle = display(HTML('<b>'), Broken(), display_id=True)\nhandle.update(1)\nclear_output(wait=True)",
    "print(shown(2), found, 'IPKernelApp' in get_ipython().config, bool(get_ipython()))",
    "import not_there",
)


def test_what_only_a_front_end_has_is_left_out_and_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the environment's own packages: none of these is installed in the tests' one."""
    ran = run(notebook(tmp_path, *FRONT_END))
    displayed, *rest = ran.stdout.splitlines()
    assert displayed.startswith("<") and "IPython" not in displayed
    assert rest == ["<Broken, whose repr() raised ValueError: no>", "2 False False False"], ran.stderr
    gaps = {gap.what for gap in ran.report.capture_gaps}
    assert gaps == {f"what the cells do with {name}: it is left out" for name in ("ipywidgets", "IPython")}
    assert ran.report.outcome.message.startswith("ModuleNotFoundError: No module named 'not_there'")


def test_the_first_cell_that_fails_is_the_last(tmp_path: Path) -> None:
    path = notebook(tmp_path, "x = 1", "def h():\n    return 1 / 0\n\nh()", "print('not reached')")
    ran = run(path)
    assert ran.report.outcome.kind is OutcomeKind.SCRIPT_ERROR
    assert ran.report.outcome.message == f"ZeroDivisionError: division by zero ({cell_name(str(path), 2)}:2)"
    assert ran.stdout == ""
    assert f'File "{cell_name(str(path), 2)}", line 4, in <module>\n    h()' in ran.stderr
    assert "irscope" not in ran.stderr.replace(str(tmp_path), "")


def test_a_syntax_error_names_its_cell(tmp_path: Path) -> None:
    path = notebook(tmp_path, "x = 1", "y = = 2")
    assert run(path).report.outcome.message.endswith(f"({cell_name(str(path), 2)}:1)")


def test_kernels_come_from_lines_of_cells(tmp_path: Path) -> None:
    path = notebook(tmp_path, CELLS[0], CELLS[2].replace("    print('in the middle')\n", ""), "f(torch.ones(4))")
    (kernel,) = run(path, "deep").kernels("cpp")
    assert {origin.file for origin in kernel.origins} == {cell_name(str(path), 2)}
    assert {origin.line for origin in kernel.origins} <= {3, 4}


def test_the_command_line_shows_the_line_of_the_cell(tmp_path: Path) -> None:
    path = notebook(tmp_path, *CELLS)
    done = run_cli_forked("run", path, "--lane", "fast", "--store", tmp_path / "runs.db")
    assert done.returncode == 0, done.stderr
    assert "my notebook.ipynb#cell-3:4:5  graph-break GB0059" in done.stdout
    assert "4 │     print('in the middle')" in done.stdout
    again = run_cli_forked("show", "--store", tmp_path / "runs.db")
    assert "4 │     print('in the middle')" in again.stdout


@pytest.mark.parametrize("text", ["not json", "{}"])
def test_what_is_no_notebook_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "x.ipynb"
    path.write_text(text)
    done = run_cli("run", path, "--store", tmp_path / "runs.db")
    assert done.returncode == 3
    assert f"{path} cannot be run: it is not a Jupyter notebook." in done.stdout
