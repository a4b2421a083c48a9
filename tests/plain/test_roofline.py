"""What kernels and nodes cost, on data made by hand."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from facts import a_compile, an_outcome
from irscope.cli.main import main
from irscope.ir.nodes import facts_of
from irscope.ir.roofline import TARGETS, Peaks, kernel_costs, node_costs
from irscope.protocol import Lane, StageRef
from irscope.store.store import Store

GRAPH = {
    "graph": 0,
    "nodes": {
        "name": ["x", "w", "mm", "relu", "view"],
        "op": ["placeholder", "placeholder", "call_function", "call_function", "call_function"],
        "target": [0, 1, 2, 3, 4],
        "inputs": [[], [], [0, 1], [2], [3]],
        "value": [0, 0, 0, 0, 0],
        "flops": [None, None, 2_000_000, None, None],
        "stack": [-1] * 5, "module": [-1] * 5, "aten": [-1] * 5, "seq": [None] * 5, "from": [[]] * 5,
    },
    "views": [4], "backward": [], "targets": ["x", "w", "aten.mm.default", "aten.relu.default", "aten.view.default"],
    "values": [["tensor", "torch.bfloat16", [100, 100], [100, 1], "cuda:0", 20_000]],
    "frames": [], "stacks": [], "modules": [], "sources": [], "symbols": {}, "subgraphs": {},
}  # fmt: skip
CALLS = [
    {"kernel": "extern_kernels.mm", "handle": 1, "nodes": ["op0"], "origins": ["mm"], "reads": 40_000, "writes": 20_000,
     "flops": 2_000_000},
    {"kernel": "triton_relu_0", "handle": 2, "nodes": ["op1"], "origins": ["relu"], "reads": 20_000, "writes": 20_000,
     "flops": None},
    {"kernel": "triton_relu_0", "handle": 2, "nodes": ["op1"], "origins": ["relu"], "reads": 20_000, "writes": 20_000,
     "flops": None},
    {"kernel": "triton_relu_0", "handle": 3, "nodes": ["op2"], "origins": ["relu"], "reads": None, "writes": 20_000,
     "flops": None},
]  # fmt: skip
SLOW = Peaks("slow", 1e6, {"float32": 1e6, "bfloat16": 1e9})


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(str(tmp_path / "runs.db")) as store:
        run = store.create_run("/model.py", [], Lane.DEEP, "digest")
        store.put_compile(run, a_compile())
        stages: list[tuple[str, Any]] = [("post-grad-graph", GRAPH), ("output-code", {"calls": CALLS})]
        for position, (name, data) in enumerate(stages):
            store.put_stage(run, "0/0", StageRef(f"0/0/{name}", name, "python", 0), "", position, data)
        store.set_outcome(run, an_outcome())
        yield store


def test_kernels(store: Store) -> None:
    mm, relu = kernel_costs(store, store.report(store.find_run()), SLOW)
    assert (mm.name, mm.calls, mm.read, mm.written, mm.flops, mm.dtype) == (
        "extern_kernels.mm", 1, 40_000, 20_000, 2_000_000, "bfloat16",
    )  # fmt: skip
    assert mm.intensity == pytest.approx(2_000_000 / 60_000)
    assert mm.memory_seconds == pytest.approx(0.06) and mm.compute_seconds == pytest.approx(0.002)
    assert mm.seconds == pytest.approx(0.06) and mm.bound == "memory"
    # Two calls; the loops of one are told twice, and of the other the size of an input is not known.
    assert (relu.calls, relu.read, relu.written, relu.flops, relu.intensity, relu.bound) == (
        2,
        None,
        40_000,
        None,
        None,
        "",
    )


def test_what_bounds_it(store: Store) -> None:
    report = store.report(store.find_run())
    fast_memory = Peaks("", 1e12, {"float32": 1.0, "bfloat16": 1e6})
    mm, _ = kernel_costs(store, report, fast_memory)
    assert mm.bound == "compute" and mm.seconds == pytest.approx(2.0)
    (mm, *_) = kernel_costs(store, report, Peaks("", 1e12, {"float32": 1e3}))  # no number for its dtype
    assert mm.compute_seconds == pytest.approx(2000.0)
    assert kernel_costs(store, report)[0].bound == ""


def test_nodes(store: Store) -> None:
    report = store.report(store.find_run())
    stage = report.compiles[0].stages[0]
    mm, relu = node_costs(store, report, stage)  # a view moves nothing
    assert (mm.name, mm.read, mm.written, mm.flops) == ("mm", 40_000, 20_000, 2_000_000)
    assert (relu.name, relu.read, relu.flops) == ("relu", 20_000, None)
    with pytest.raises(LookupError, match="No node costs"):
        node_costs(store, report, report.compiles[0].stages[1])


def test_the_gpu_of_the_run_is_the_target_if_none_is_named(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    run = store.find_run()
    show = ["show", "--store", store.path, "--costs"]
    assert store.device_of(run) == "" and main(show) == 0
    assert "Lower bound" not in capsys.readouterr().out
    store.put_facts(run, {"device": "NVIDIA H100 PCIe"})  # its memory is slower than that of the SXM module
    assert main(show) == 0 and "Lower bound" not in capsys.readouterr().out
    store.put_facts(run, {"device": "NVIDIA H100 80GB HBM3"})
    assert main(show) == 0 and "Lower bound on NVIDIA H100 SXM" in capsys.readouterr().out
    assert main([*show, "--target", "a100"]) == 0 and "Lower bound on NVIDIA A100" in capsys.readouterr().out


def test_the_command(store: Store, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "200")
    assert main(["show", "--store", store.path, "--costs", "--target", "h100"]) == 0
    title, head, mm, relu = capsys.readouterr().out.splitlines()
    assert title == "Lower bound on NVIDIA H100 SXM, from its data sheet"
    assert head.split()[-4:] == ["lower", "bound", "bound", "by"]
    assert mm.split() == [
        "extern_kernels.mm", "0/0/output-code", "1", "bfloat16", "40", "kB", "20", "kB", "2", "MFLOP", "33.3",
        f"{60_000 / TARGETS['h100'].bandwidth * 1e9:.1f}", "ns", "memory",
    ]  # fmt: skip
    assert relu.split()[0] == "triton_relu_0"
    assert main(["show", "--store", store.path, "--costs", "--stage", "post-grad-graph", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["name"], row["bound"]) for row in rows] == [("mm", ""), ("relu", "")]
    assert main(["show", "--store", store.path, "--costs", "--compile", "1/0"]) == 2


@pytest.mark.parametrize(
    ("target", "inputs", "size", "read"),
    [
        # 6 rows of 64 floats are taken from a table of 30,000, at 6 places of 8 bytes.
        ("aten.embedding.default", [0, 1], 6 * 64 * 4, 6 * 64 * 4 + 6 * 8),
        ("torch.nn.functional.embedding", [1, 0], 6 * 64 * 4, 6 * 64 * 4 + 6 * 8),
        ("aten.index.Tensor", [0, 1], 6 * 64 * 4, 6 * 64 * 4 + 6 * 8),
        # As large as the result may be: a table is read once.
        ("aten.index_select.default", [0, 1], 40_000 * 64 * 4, 30_000 * 64 * 4 + 6 * 8),
        ("aten.embedding.default", [0, 1], None, None),
        ("aten.add.Tensor", [0, 1], 6 * 64 * 4, 30_000 * 64 * 4 + 6 * 8),
    ],
)
def test_of_a_table_the_rows_that_are_taken_count(
    target: str, inputs: list[int], size: int | None, read: int | None
) -> None:
    nodes: dict[str, Any] = {
        **cast("dict[str, Any]", GRAPH["nodes"]),
        "name": ["table", "ids", "rows"], "op": ["placeholder", "placeholder", "call_function"], "target": [0, 1, 2],
        "inputs": [[], [], inputs], "value": [0, 1, 2], "flops": [None] * 3,
    }  # fmt: skip
    values = [
        ["tensor", "torch.float32", [30_000, 64], [64, 1], "cpu", 30_000 * 64 * 4],
        ["tensor", "torch.int64", [6], [1], "cpu", 6 * 8],
        ["tensor", "torch.float32", [6, 64], [64, 1], "cpu", size],
    ]
    data = {**GRAPH, "nodes": nodes, "values": values, "targets": ["table", "ids", target], "views": []}
    (rows,) = [node for node in facts_of(data) if node.name == "rows"]
    assert (rows.read, rows.written) == (read, size)
