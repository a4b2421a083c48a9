"""What the server takes to answer for a large graph.

    python benchmarks/graph_columns.py [NODES]

The graph is an unrolled transformer, printed as PyTorch prints it, with the data that a deep run stores beside it.
With ``--stage RUN STAGE --store FILE`` it is a stage of a real run instead.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from irscope.protocol import Compile, CompileOutcome, Lane, Outcome, OutcomeKind, StageRef
from irscope.store.store import Store
from irscope_server.base.archive import Archive
from irscope_server.base.params import GraphParams, StageParams
from irscope_server.graph.requests import GraphCache, graph, graph_kernels

# Of one layer: name, operation, inputs (`x` is what comes in, `w…` a weight), module.
LAYER = [
    ("norm_var", "var_mean.correction", "x", "norm1"),
    ("norm_sub", "sub.Tensor", "x norm_var", "norm1"),
    ("norm_mul", "mul.Tensor", "norm_sub w1", "norm1"),
    ("norm_add", "add.Tensor", "norm_mul", "norm1"),
    *(
        step
        for part in "qkv"
        for step in (
            (f"{part}_t", "permute.default", f"w{part}", f"attention.{part}_proj"),
            (f"{part}_view", "reshape.default", "norm_add", f"attention.{part}_proj"),
            (f"{part}_mm", "mm.default", f"{part}_view {part}_t", f"attention.{part}_proj"),
            (f"{part}_out", "reshape.default", f"{part}_mm", f"attention.{part}_proj"),
            (f"{part}_heads", "permute.default", f"{part}_out", "attention"),
        )
    ),
    ("k_swap", "permute.default", "k_heads", "attention"),
    ("scores", "bmm.default", "q_heads k_swap", "attention"),
    ("scaled", "div.Tensor", "scores", "attention"),
    ("most", "amax.default", "scaled", "attention"),
    ("shifted", "sub.Tensor", "scaled most", "attention"),
    ("raised", "exp.default", "shifted", "attention"),
    ("total", "sum.dim_IntList", "raised", "attention"),
    ("weights", "div.Tensor", "raised total", "attention"),
    ("mixed", "bmm.default", "weights v_heads", "attention"),
    ("merged", "reshape.default", "mixed", "attention"),
    ("o_t", "permute.default", "wo", "attention.o_proj"),
    ("o_mm", "mm.default", "merged o_t", "attention.o_proj"),
    ("kept", "add.Tensor", "x o_mm", ""),
    ("norm2_var", "var_mean.correction", "kept", "norm2"),
    ("norm2_mul", "mul.Tensor", "kept norm2_var", "norm2"),
    ("up_t", "permute.default", "wup", "mlp.up"),
    ("up_mm", "mm.default", "norm2_mul up_t", "mlp.up"),
    ("gelu", "mul.Tensor", "up_mm", "mlp.act"),
    ("down_t", "permute.default", "wdown", "mlp.down"),
    ("down_mm", "mm.default", "gelu down_t", "mlp.down"),
    ("y", "add.Tensor", "kept down_mm", ""),
]
WEIGHTS = ["w1", "wq", "wk", "wv", "wo", "wup", "wdown"]
TYPE = "f32[8, 128, 512][65536, 512, 1]cpu"


def unrolled(count: int) -> tuple[str, dict[str, Any]]:
    """The text of a graph with about so many nodes, and its data."""
    layers = max(1, count // (len(LAYER) + len(WEIGHTS)))
    weights = [f"{name}_{layer}" for layer in range(layers) for name in WEIGHTS]
    head = ", ".join(f'{name}: "f32[512, 512][512, 1]cpu"' for name in ["x_0", *weights])
    lines = ["class GraphModule(torch.nn.Module):", f"    def forward(self, {head}):"]
    names, targets, modules, inputs = ["x_0", *weights], [], [], []
    for layer in range(layers):
        lines.append(f"         # File: /w/model.py:{10 + layer % 40} in forward, code: x = self.layers[{layer}](x)")
        for name, op, used, module in LAYER:
            mine = f"x_{layer + 1}" if name == "y" else f"{name}_{layer}"
            arguments = [f"{word}_{layer}" for word in used.split()]
            lines.append(f'        {mine}: "{TYPE}" = torch.ops.aten.{op}({", ".join(arguments)})')
            names.append(mine)
            targets.append(op)
            modules.append(f"G['model'].layers.{layer}{'.' if module else ''}{module}")
            inputs.append(arguments)
    lines.append(f"        return (x_{layers},)")
    names.append("output")
    number = {name: at for at, name in enumerate(names)}
    ahead = len(weights) + 1
    kinds = sorted({f"aten.{op}" for op in targets})
    paths = sorted(set(modules))
    kind_at, path_at = {op: at for at, op in enumerate(kinds)}, {path: at for at, path in enumerate(paths)}
    rest = len(targets)
    nodes = {
        "name": names,
        "op": ["placeholder"] * ahead + ["call_function"] * rest + ["output"],
        "target": [0] * ahead + [kind_at[f"aten.{op}"] for op in targets] + [0],
        "inputs": [[]] * ahead + [[number[word] for word in words] for words in inputs] + [[number[f"x_{layers}"]]],
        "value": [0] * (ahead + rest) + [-1],
        "flops": [None] * ahead + [268435456 if op == "mm.default" else None for op in targets] + [None],
        "stack": [-1] * ahead + [0] * rest + [-1],
        "module": [-1] * ahead + [path_at[path] for path in modules] + [-1],
        "aten": [-1] * (ahead + rest + 1),
        "seq": [None] * (ahead + rest + 1),
        "from": [[]] * (ahead + rest + 1),
    }
    data = {
        "graph": 0,
        "nodes": nodes,
        "views": [],
        "backward": [],
        "targets": kinds,
        "values": [["tensor", "torch.float32", [8, 128, 512], [65536, 512, 1], "cpu", 2097152]],
        "frames": [["/w/model.py", 10, "forward"]],
        "stacks": [[0]],
        "modules": [[path, "Module"] for path in paths],
        "sources": [],
        "symbols": {},
    }
    return "\n".join(lines) + "\n", data


async def answer(store: str, run: str, stage: str) -> tuple[str, str, float, float]:
    server: Any = SimpleNamespace(archive=Archive(store), graphs=GraphCache(), uri_of=lambda path: f"file://{path}")
    await server.archive.report(run)
    begun = time.perf_counter()
    body = await graph(server, GraphParams(run, stage))
    first = time.perf_counter() - begun
    begun = time.perf_counter()
    kernels = await graph_kernels(server, StageParams(run, stage))
    return body.json, kernels.json, first, time.perf_counter() - begun


STAGE = "0/0/post-grad-graph"


def put_unrolled(path: str, count: int) -> str:
    """Puts such a graph into a store, as a run that has ended; returns the run's id."""
    text, data = unrolled(count)
    with Store(path) as store:
        run = store.create_run("/w/model.py", (), Lane.DEEP, "")
        compile = Compile("0/0", "forward", "/w/model.py", 1, CompileOutcome.COMPILED, 0, count, 1.0)
        store.put_compile(run, compile)
        store.put_stage(run, "0/0", StageRef(STAGE, "post-grad-graph", "python", 0), text, 0)
        store.put_stage_data(run, STAGE, data)
        store.set_outcome(run, Outcome(OutcomeKind.COMPLETED, 0, "", 1.0))
        store.tidy(run)  # as it is done when a run has ended
    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("nodes", type=int, nargs="?", default=50_000)
    parser.add_argument(
        "--make", metavar="FILE", help="only make a store that has the graph, and print its run and stage"
    )
    parser.add_argument("--store", metavar="FILE")
    parser.add_argument("--stage", nargs=2, metavar=("RUN", "STAGE"))
    options = parser.parse_args()
    if options.make:
        print(put_unrolled(options.make, options.nodes), STAGE)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = options.store or str(Path(folder) / "runs.db")
        run, stage = options.stage or (put_unrolled(path, options.nodes), STAGE)
        body, _, seconds, more = asyncio.run(answer(path, run, stage))
    begun = time.perf_counter()
    json.loads(body)
    ratio = seconds / (time.perf_counter() - begun)
    print(f"irscope/graph: {seconds:.2f} s ({ratio:.1f} times what its {len(body) / 1e6:.1f} MB take json.loads)")
    print(f"irscope/graphKernels: {more:.2f} s")


if __name__ == "__main__":
    main()
