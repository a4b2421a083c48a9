"""Inputs that the user gives to a value run: what they can be called, and what is said of those that do not fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from irscope.internals.dynamo_frames import TRACED_FUNCTION, arguments_traced
from irscope.protocol import GIVEN, ValuesRequest
from irscope.store.store import Store
from irscope.values.run.inputs import GivenInputs, Input, WrongInputs, inputs_of
from irscope.values.run.interpreting import KeptGraph
from irscope.values.run.reading import StoredValues, stored_values
from irscope.worker.client import Worker
from support import Ran, run_captured, run_cli_forked, write

SCRIPT = """\
import torch

torch.manual_seed(0)
layer = torch.nn.Linear(3, 2)

@torch.compile
def f(first, second, scale=2.0):
    return layer(second) * scale + first[:, :2]  # the second is used first

out = f(torch.zeros(4, 3), torch.ones(4, 3))
out.sum().backward()
print(out.sum().item())
"""
NAMED = """\
import torch

print("this is no output of the script")

def inputs():
    return {"second": torch.full((4, 3), 7.0)}
"""
POSITIONAL = "import torch\ninputs = torch.full((4, 3), 5.0), torch.full((4, 3), 7.0)\n"


def inputs_seen(ran: Ran) -> list[tuple[str, float]]:
    """Of the forward graph: the placeholders of the shape of the function's arguments, with what they hold."""
    with Store(ran.store) as store:
        kept: StoredValues = next(each for each in stored_values(store, ran.report) if "forward" in each.stage)
    values = [(name, kept.value(name)) for name in kept.names() if name.startswith("primals")]
    return [(name, value["max"]) for name, value in values if value is not None and value.get("shape") == [4, 3]]


def run_with(folder: Path, given: Path | None, worker: Worker | None) -> Ran:
    wanted = ValuesRequest(inputs="" if given is None else str(given))
    return run_captured(write(folder, SCRIPT), folder / "runs.db", "deep", worker=worker, values=wanted)


def test_a_python_file_gives_inputs_by_name_or_in_the_order_of_the_arguments(
    tmp_path: Path, shared_worker: Worker | None
) -> None:
    plain = run_with(tmp_path, None, shared_worker)
    named = run_with(tmp_path, write(tmp_path, NAMED, "named.py"), shared_worker)
    ordered = run_with(tmp_path, write(tmp_path, POSITIONAL, "positional.py"), shared_worker)
    assert [value for _, value in inputs_seen(plain)] == [1.0, 0.0]  # as the graph has them: the second first
    assert [value for _, value in inputs_seen(named)] == [7.0, 0.0]
    assert [value for _, value in inputs_seen(ordered)] == [7.0, 5.0]
    assert named.stdout == ordered.stdout == plain.stdout
    assert named.report.capture_gaps == ordered.report.capture_gaps == ()


def test_a_file_of_torch_save_gives_inputs(tmp_path: Path, shared_worker: Worker | None) -> None:
    given = tmp_path / "given.pt"
    torch.save({"l_second_": torch.full((4, 3), 7.0)}, given)
    ran = run_with(tmp_path, given, shared_worker)
    assert [value for _, value in inputs_seen(ran)] == [7.0, 0.0]
    assert ran.report.capture_gaps == ()


def test_inputs_that_do_not_fit_are_told_and_the_script_runs_on(tmp_path: Path) -> None:
    script, given = write(tmp_path, SCRIPT), write(tmp_path, "inputs = {'third': 1}", "wrong.py")
    done = run_cli_forked("diverge", script, "--inputs", given)
    assert done.returncode == 3  # and not 0: nothing was compared
    assert "unknown input 'third'; the graph's inputs are" in done.stderr
    assert "second (l_second_, primals_" in done.stderr
    assert done.stdout.startswith("-") or done.stdout[0].isdigit()


INPUTS = (
    Input(("x", "l_x_", "arg1_1"), (0,)), Input(("weight", "l_weight_", "arg0_1")), Input(("n", "l_n_", "arg2_1"), (1,)),
)  # fmt: skip
OWN = [torch.zeros(2, 3), torch.ones(3), 5]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("inputs = 1", "`inputs` gives int, and must be a tuple of tensors or a dict by names of inputs"),
        ("x = 1", "it defines no `inputs`: a function without arguments, a tuple or a dict"),
        ("def inputs():\n    return 1 / 0", "it raised ZeroDivisionError (line 2): division by zero"),
        ("import sys\nsys.exit(3)", "it raised SystemExit (line 2): 3"),
        ("def inputs(:", "it raised SyntaxError (line 1): invalid syntax"),
        ("inputs = lambda x: x", "it raised TypeError: <lambda>() missing 1 required positional argument: 'x'"),
        ("inputs = {'y': 1}", "unknown input 'y'; the graph's inputs are x (l_x_, arg1_1), weight (l_weight_, arg0_1), n"),
        ("import torch\ninputs = torch.ones(2, 3)", "it gives 1 inputs, and the compiled function gets 2: x, n; n would be missing"),
        ("inputs = 1, 2, 3", "it gives 3 inputs, and the compiled function gets 2: x, n"),
        ("inputs = {'x': 1}", "x must be a tensor, not int"),
        ("import torch\ninputs = {'l_x_': torch.ones(3, 2)}", "x has the shape [3, 2], and the graph was compiled for [2, 3]"),
        ("import torch\ninputs = {'x': torch.ones(2, 3).half()}", "x has the dtype torch.float16, and the graph was compiled for torch.float32"),
        ("import torch\ninputs = {'x': torch.ones(2, 3, device='meta')}", "x has the device meta, and the graph was compiled for cpu"),
        ("inputs = {'n': 6}", "n is 5 at this call, and a different number would need another compile"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_named(tmp_path: Path, text: str, said: str) -> None:
    given = GivenInputs(str(write(tmp_path, text, "given.py")))
    with pytest.raises(WrongInputs) as failure:
        given.put_into(INPUTS, OWN)
    assert str(failure.value).startswith(said)


def test_a_file_of_torch_save_is_never_unpickled(tmp_path: Path) -> None:
    class Bad:
        def __reduce__(self) -> Any:
            return Path.touch, (tmp_path / "touched",)

    torch.save({"x": Bad()}, tmp_path / "bad.pt")
    with pytest.raises(WrongInputs, match="it cannot be loaded: UnpicklingError"):
        GivenInputs(str(tmp_path / "bad.pt")).put_into(INPUTS, OWN)
    assert not (tmp_path / "touched").exists()


def test_a_backward_takes_what_it_has_by_name(tmp_path: Path) -> None:
    given = GivenInputs(
        str(write(tmp_path, "import torch\ninputs = {'x': torch.full((2, 3), 4.0), 'other': 1}", "given.py"))
    )
    assert given.put_into(INPUTS, OWN, backward=True)[0].max() == 4


@pytest.mark.parametrize("missing", ["grapharg", "desc"])
def test_inputs_that_pytorch_does_not_describe_are_not_mixed_up(missing: str) -> None:
    def graph(key: str) -> KeptGraph:
        made = torch.fx.Graph()
        made.placeholder("x").meta[key if key != missing else "renamed"] = None
        made.output(())
        return KeptGraph(torch.fx.GraphModule(torch.nn.Module(), made))

    with pytest.raises(WrongInputs, match=f"the inputs cannot be matched: nodes have no '{missing}'"):
        inputs_of(graph("desc"), graph("grapharg"), ("x",))


def test_arguments_that_the_stack_does_not_tell_are_a_gap(tmp_path: Path, shared_worker: Worker | None) -> None:
    assert arguments_traced() is None
    misfit = "import dataclasses, irscope.internals.dynamo_frames as frames\n"
    misfit += "frames.TRACED_FUNCTION = dataclasses.replace(frames.TRACED_FUNCTION, function='renamed')\n"
    script = write(tmp_path, misfit + SCRIPT)
    wanted = ValuesRequest(inputs=str(write(tmp_path, POSITIONAL, "given.py")))
    ran = run_captured(script, tmp_path / "runs.db", "deep", worker=shared_worker, values=wanted)
    look, given = ran.report.capture_gaps
    assert (
        look.what == TRACED_FUNCTION.what and "renamed of torch/_dynamo/output_graph.py is not on the stack" in look.why
    )
    assert given.what == GIVEN and "the arguments cannot be matched with the graph's inputs" in given.why


def test_an_expanded_input_takes_what_repeats_in_the_same_way(tmp_path: Path) -> None:
    own = torch.zeros(1, 4).expand(3, 4)
    given = GivenInputs(str(write(tmp_path, "import torch\ninputs = torch.arange(4.0).expand(3, 4).contiguous()\n")))
    [found] = given.put_into([Input(("x",), (0,))], [own])
    assert torch.equal(found, torch.arange(4.0).expand(3, 4)) and found.stride() == own.stride()
    other = GivenInputs(str(write(tmp_path, "import torch\ninputs = torch.arange(12.0).reshape(3, 4)\n", "other.py")))
    with pytest.raises(WrongInputs, match="x is expanded at this call"):
        other.put_into([Input(("x",), (0,))], [own])
