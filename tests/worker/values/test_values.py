"""Value runs: what nodes compute, and where compiled code computes something else."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from irscope.protocol import ValuesRequest
from irscope.store.store import Store
from irscope.values.check.comparing import NOT_DETERMINISTIC
from irscope.values.run.client import ValueProcess, ValueProcessError
from irscope.values.run.reading import StoredValues, divergences, stored_values
from irscope.worker.client import Worker
from support import Ran, run_captured, run_cli, run_plain_forked, write

MODELS = Path(__file__).with_name("small_models.py")
WRONG = {"mlp": "erf", "conv": "relu", "attention": "tanh", "bert": "rsqrt", "gpt2": "tanh", "llama": "rsqrt"}
STEPS = {
    "mlp@gelu": "inference",
    "gated+@silu_backward": "backward",
    "bert@gelu": "inference",
    "gpt2@native_layer_norm": "inference",
    "llama+@silu_backward": "backward",
}
HEALTHY = ["mlp", "dropout", "inplace", "conv", "bert+", "gpt2+", "llama", "mlp:bfloat16"]
NIGHTLY = frozenset({
    "bert", "gpt2", "llama",  # wrong: attention is left
    "bert@gelu", "gpt2@native_layer_norm",  # mlp@gelu is left, in an inference graph as well
    "llama+@silu_backward",  # gated+ is left, with the same operation in a training graph
    "bert+", "gpt2+", "mlp:bfloat16",  # healthy: dropout is left, which is trained too
})  # fmt: skip
"""What only the nightly run does: models of a sort of which another one is left."""

SCRIPT = """\
import torch

torch.manual_seed(0)
weight = torch.randn(8, 4, requires_grad=True)

@torch.compile
def f(x):
    y = x @ weight
    y = torch.nn.functional.dropout(y.erf())  # @wrong
    return torch.softmax(y, -1)

for _ in range(2):
    out = f(torch.randn(3, 8))
    out.square().sum().backward()
print(out, weight.grad, torch.rand(2))
"""
# Imported at the start of every Python process, as what is wrong in torch itself would be.
WRONG_ERF = """\
import importlib.abc, importlib.util, sys

class Wrong(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name != "torch._inductor.lowering":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        execute = spec.loader.exec_module
        def exec_module(module):
            execute(module)
            import torch
            erf = torch.ops.aten.erf.default
            right = module.lowerings[erf]
            module.lowerings[erf] = lambda x: module.mul(right(x), 1.01)
        spec.loader.exec_module = exec_module
        return spec

sys.meta_path.insert(0, Wrong())
"""
WRONG_PASS = """\
import torch._inductor.config

def scale_erf(graph):
    for node in graph.find_nodes(op="call_function", target=torch.ops.aten.erf.default):
        with graph.inserting_after(node):
            scaled = graph.call_function(torch.ops.aten.mul.Tensor, (node, 1.001))
        scaled.meta.update(node.meta)
        node.replace_all_uses_with(scaled, delete_user_cb=lambda user: user is not scaled)

torch._inductor.config.post_grad_custom_post_pass = scale_erf
"""


def compared(ran: Ran) -> list[dict[str, Any]]:
    with Store(ran.store) as store:
        return [data for _, data in divergences(store, ran.report)]


def kept(ran: Ran) -> list[StoredValues]:
    with Store(ran.store) as store:
        return stored_values(store, ran.report)


def in_two_runs(models: Iterable[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What runs together for each change, and what at night."""
    every = list(models)
    return tuple(each for each in every if each not in NIGHTLY), tuple(each for each in every if each in NIGHTLY)


def each_of(runs: tuple[tuple[str, ...], ...], marks: Mapping[str, pytest.MarkDecorator] | None = None) -> list[Any]:
    """Parameters: the models that run together, and each of them."""
    return [
        pytest.param(run, model, id=model, marks=[*nightly(run), *filter(None, [(marks or {}).get(model)])])
        for run in runs
        for model in run
    ]


def nightly(run: tuple[str, ...]) -> list[pytest.MarkDecorator]:
    return [pytest.mark.nightly] if NIGHTLY.issuperset(run) else []


def place_of(model: str, runs: tuple[tuple[str, ...], ...]) -> int:
    """Which one of its run a model is."""
    return next(run.index(model) for run in runs if model in run)


WRONG_RUNS, STEP_RUNS, HEALTHY_RUNS = in_two_runs(WRONG), in_two_runs(STEPS), in_two_runs(HEALTHY)


@pytest.fixture(scope="module")
def seeded(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, shared_worker: Worker | None
) -> Ran:
    folder = tmp_path_factory.mktemp("seeded")
    words = [f"{model}={WRONG[model]}" for model in request.param]
    wanted = ValuesRequest(statistics=False, divergence=True)
    return run_captured(MODELS, folder / "runs.db", "deep", words, worker=shared_worker, values=wanted)


@pytest.mark.parametrize(("seeded", "model"), each_of(WRONG_RUNS), indirect=["seeded"], scope="module")
def test_a_wrong_lowering_is_found_at_its_node(seeded: Ran, model: str) -> None:
    data = compared(seeded)[place_of(model, WRONG_RUNS)]
    found = data["found"]
    assert found is not None, data["notes"]
    assert (found["how"], found["target"], found["alone"]) == ("lowering", f"aten.{WRONG[model]}.default", True)
    assert found["node"].startswith(WRONG[model])
    assert found["kernel"].startswith("cpp_fused_")
    assert found["local"]["ratio"] > 1
    assert found["file"] == str(MODELS)
    assert data["reproducer"] is not None


@pytest.mark.parametrize("seeded", [WRONG_RUNS[0]], indirect=True, scope="module")
def test_a_divergence_is_a_finding_at_the_users_line(seeded: Ran) -> None:
    assert seeded.report.outcome.exit_code == 0
    assert seeded.report.capture_gaps == ()
    findings = seeded.findings("divergence")
    assert {finding.code for finding in findings} == {"divergence-lowering"}
    assert {finding.file for finding in findings} == {str(MODELS)}


@pytest.fixture(scope="module")
def decomposed(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, shared_worker: Worker | None
) -> Ran:
    folder = tmp_path_factory.mktemp("decomposed")
    wanted = ValuesRequest(statistics=False, divergence=True)
    return run_captured(MODELS, folder / "runs.db", "deep", request.param, worker=shared_worker, values=wanted)


# Where there is nothing wrong there is nothing to find.
NO_SILU_BACKWARD = pytest.mark.since_torch("2.11", "SiLU's backward is never that operation, but written out at once")


@pytest.mark.parametrize(
    ("decomposed", "model"),
    each_of(STEP_RUNS, {each: NO_SILU_BACKWARD for each in STEPS if "silu" in each}),
    indirect=["decomposed"],
    scope="module",  # else each model would have a run to itself
)
def test_a_wrong_decomposition_is_found_at_the_step_and_the_node(decomposed: Ran, model: str) -> None:
    """Nothing behind it differs: the graph that Inductor gets is wrong already."""
    forwards = [each for each in compared(decomposed) if "backward" not in each["stage"]]
    data = forwards[place_of(model, STEP_RUNS)]
    found = data["found"]
    assert found is not None, data["notes"]
    assert (found["how"], found["pass"]) == ("step", f"dynamo graph → {STEPS[model]} graph")
    assert found["stage"].endswith("/dynamo-graph")
    assert model.partition("@")[2].removesuffix("_backward").removeprefix("native_") in found["target"]
    assert found["file"] == str(MODELS)
    assert data["reproducer"] is not None
    assert all(node["local"]["ratio"] <= 1 for node in data["nodes"])


class Healthy(NamedTuple):
    ran: Ran
    models: tuple[str, ...]


@pytest.fixture(
    scope="module",
    params=[pytest.param(run, id="-".join(run), marks=nightly(run)) for run in HEALTHY_RUNS],
)
def healthy(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, shared_worker: Worker | None
) -> Healthy:
    folder = tmp_path_factory.mktemp("healthy")
    wanted = ValuesRequest(divergence=True)
    ran = run_captured(MODELS, folder / "runs.db", "deep", request.param, worker=shared_worker, values=wanted)
    return Healthy(ran, request.param)


def test_healthy_models_do_not_diverge(healthy: Healthy) -> None:
    data = compared(healthy.ran)
    trained = [each for each in healthy.models if each.endswith("+") or each == "dropout"]
    assert len(data) == len(healthy.models) + len(trained)  # each with a backward
    assert [each["found"] for each in data] == [None] * len(data)
    assert all(each["nodes"] and each["notes"] == [] for each in data)
    ratios = [node["local"]["ratio"] for each in data for node in each["nodes"]]
    assert 0 < max(ratios) < 0.5
    assert healthy.ran.report.capture_gaps == ()


def test_a_value_run_computes_and_prints_what_the_script_does(healthy: Healthy) -> None:
    assert healthy.ran.stdout == run_plain_forked(MODELS, healthy.models).stdout


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory, shared_worker: Worker | None) -> Ran:
    folder = tmp_path_factory.mktemp("training")
    script = write(folder, SCRIPT)
    wanted = ValuesRequest(call=2, divergence=True)
    return run_captured(script, folder / "runs.db", "deep", worker=shared_worker, values=wanted)


def test_each_node_has_its_statistics_and_its_elements(training: Ran) -> None:
    forward, backward = kept(training)
    assert (forward.stage, backward.stage) == ("0/0/forward-graph", "0/0/backward-graph")
    assert forward.data["call"] == 2
    softmax = forward.value("div")
    assert softmax is not None
    assert (softmax["dtype"], softmax["shape"], softmax["nan"]) == ("float32", [3, 4], 0)
    assert abs(softmax["mean"] - 0.25) < 1e-6
    elements = forward.elements(softmax, 0, 12)
    assert abs(sum(elements) - 3) < 1e-5
    assert max(elements) == softmax["max"]
    printed = training.stdout.partition("grad_fn")[0]  # the result of the last call, which was looked at
    assert f"{elements[0]:.4f}" in printed
    assert backward.value("tangents_1") is not None


def test_random_numbers_are_those_of_the_compiled_code(training: Ran) -> None:
    """The backward gets the mask that the forward's kernel drew; the forward's graph, run by itself, has the same."""
    forward, backward = kept(training)
    name = next(name for name in backward.names() if name.startswith("gt"))
    masks = [each.elements(each.value(name) or {}, 0, 12) for each in (forward, backward)]
    assert masks[0] == masks[1]
    assert 0 < sum(masks[0]) < 12


def test_a_wrong_pass_is_named(tmp_path: Path, shared_worker: Worker | None) -> None:
    script = write(tmp_path, WRONG_PASS + SCRIPT)
    wanted = ValuesRequest(statistics=False, divergence=True)
    ran = run_captured(script, tmp_path / "runs.db", "deep", worker=shared_worker, values=wanted)
    found = compared(ran)[0]["found"]
    assert (found["how"], found["pass"]) == ("pass", "post_grad_custom_post_pass(scale_erf)")
    assert found["target"] == "aten.mul.Tensor"
    assert found["line"] == next(n for n, line in enumerate(script.read_text().split("\n"), 1) if "@wrong" in line)
    assert [finding.code for finding in ran.findings("divergence")] == ["divergence-pass"]


ERF = """\
import torch

torch.compile(lambda x: x.erf().cos())(torch.randn(3, 8))
"""


@pytest.mark.nightly  # a test of the debugger runs one, too
def test_the_reproducer_fails_on_its_own(tmp_path: Path) -> None:
    write(tmp_path, WRONG_ERF, "site/sitecustomize.py")
    script, reproducer = write(tmp_path, ERF), tmp_path / "reproducer.py"
    wrong = {"PYTHONPATH": str(tmp_path / "site")}
    done = run_cli("diverge", script, "--json", "--reproducer", reproducer, env=wrong)
    assert done.returncode == 1, done.stderr
    answer = json.loads(done.stdout)
    assert answer["reproducer"]["proven"] is True
    assert answer["compared"][0]["found"]["node"] == "erf"
    text = reproducer.read_text()
    assert "torch.ops.aten.erf.default" in text
    assert text.count("torch.ops.") == 1
    right = run_plain_forked(reproducer)
    assert (right.returncode, right.stdout) == (0, "Compiled code and eager mode agree.\n")


@pytest.fixture(scope="module")
def value_process() -> Iterator[ValueProcess]:
    process = ValueProcess(sys.executable)
    yield process
    process.close()


def test_expressions_are_evaluated_over_values(training: Ran, value_process: ValueProcess) -> None:
    forward = kept(training)[0]
    value, text = value_process.evaluate("div.sum(-1)", forward)
    assert value["shape"] == [3]
    assert all(abs(each - 1) < 1e-5 for each in value["elements"])
    assert text.startswith("tensor([1.0000")
    assert value_process.evaluate("(value[0, :2] > 0).sum()", forward, here="div")[1] == "2"
    assert value_process.evaluate("torch.cat([div, div]).shape[0] + len(div)", forward)[1] == "9"
    assert value_process.evaluate("div.max(-1).values.dtype == torch.float32", forward)[1] == "True"


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true')", "div.__class__", "div.numpy()", "div.add_(1)", "div.apply_(len)", "nothing + 1",
        "torch.load('x')", "torch.save(div, 'x')", "div.sum(out=div)", "[each for each in div]", "div[5, 5]", "1 +", "()" * 600,
        "lambda: 1", "div.data_ptr()", "torch.ops.aten", "'a' * 10**12",
    ],
)  # fmt: skip
def test_nothing_else_is_evaluated(training: Ran, text: str, value_process: ValueProcess) -> None:
    with pytest.raises(ValueProcessError):
        value_process.evaluate(text, kept(training)[0])
    assert value_process.evaluate("div.dim()", kept(training)[0])[1] == "2"


COUNTS = """\
import torch

calls = 0

@torch.library.custom_op("tests::jitter", mutates_args=())
def jitter(x: torch.Tensor) -> torch.Tensor:
    global calls
    calls += COUNTED
    return x + calls

jitter.register_fake(torch.empty_like)
torch.compile(lambda x: jitter(x))(torch.ones(4))
"""


@pytest.mark.parametrize(("counted", "notes"), [(1, [NOT_DETERMINISTIC]), (0, [])])
def test_code_that_is_not_deterministic_has_a_note(
    counted: int, notes: list[str], tmp_path: Path, shared_worker: Worker | None
) -> None:
    script = write(tmp_path, COUNTS.replace("COUNTED", str(counted)))
    ran = run_captured(
        script, tmp_path / "runs.db", "deep", worker=shared_worker, values=ValuesRequest(divergence=True)
    )
    assert [data["notes"] for data in compared(ran)] == [notes]


MODES = """\
import torch

f = torch.compile(lambda x: (x @ x).relu())
with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16):
    print(f(torch.ones(4, 4)).sum(), dict(torch._dynamo.utils.counters["inductor"]))
"""


def test_modes_of_the_script_see_nothing_of_it(tmp_path: Path, shared_worker: Worker | None) -> None:
    script = write(tmp_path, MODES)
    wanted = ValuesRequest(divergence=True)
    ran = run_captured(script, tmp_path / "runs.db", "deep", worker=shared_worker, values=wanted)
    assert compared(ran)[0]["found"] is None
    assert ran.report.capture_gaps == ()
    assert ran.stdout == run_captured(script, tmp_path / "runs.db", "deep", worker=shared_worker).stdout
