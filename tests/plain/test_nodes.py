"""The facts of nodes as a reader gets them from a stage's data and text, without torch."""

from __future__ import annotations

from typing import Any

from irscope.ir.nodes import Frame, Source, dtypes_of, facts_of, lines_of
from irscope.ir.roofline import dtype_of

TEXT = """\
class GraphModule(torch.nn.Module):
    def forward(self, primals_1: "f32[s0, 8][8, 1]cpu", primals_2: "f32[8, 8][8, 1]cpu"):
        # File: model.py:7 in forward, code: h = x @ self.weight.t()
        permute: "f32[8, 8][1, 8]cpu" = torch.ops.aten.permute.default(primals_2, [1, 0]);  primals_2 = None
        mm: "f32[s0, 8][8, 1]cpu" = torch.ops.aten.mm.default(primals_1, permute);  primals_1 = permute = None
        return (mm,)
"""


def data() -> dict[str, Any]:
    return {
        "graph": 4,
        "nodes": {
            "name": ["primals_1", "primals_2", "permute", "mm", "output"],
            "op": ["placeholder", "placeholder", "call_function", "call_function", "output"],
            "target": [0, 1, 2, 3, 4],
            "inputs": [[], [], [1], [0, 2], [3]],
            "value": [0, 1, 2, 0, -1],
            "flops": [None, None, None, 512, None],
            "stack": [-1, -1, 0, 0, -1],
            "module": [-1, -1, 0, 0, -1],
            "aten": [-1, -1, 5, 3, -1],
            "seq": [1, 1, 12, 13, None],
            "from": [[], [], [0], [0, 1], []],
        },
        "views": [2],
        "backward": [3],
        "targets": ["primals_1", "primals_2", "aten.permute.default", "aten.mm.default", "output", "aten.t.default"],
        "values": [
            ["tensor", "float32", ["s0", 8], [8, 1], "cpu", 128],
            ["tensor", "float32", [8, 8], [8, 1], "cpu", 256],
            ["tensor", "float32", [8, 8], [1, 8], "cpu", 256],
        ],
        "frames": [["model.py", 20, "<module>"], ["model.py", 7, "forward"]],
        "stacks": [[0, 1]],
        "modules": [["L['self'].layer", "Linear"]],
        "sources": [["h", "trace", "create", 1, []], ["permute_3", "pattern_matcher", "replace", 2, [0]]],
        "symbols": {"s0": 4},
    }


def test_a_matmul() -> None:
    primals_1, _, permute, mm, output = facts_of(data(), TEXT)
    assert [node.line for node in (primals_1, permute, mm, output)] == [2, 4, 5, 6]
    assert (mm.inputs, mm.users, permute.users) == (("primals_1", "permute"), ("output",), ("mm",))
    assert mm.value.sizes == ("s0", 8)
    assert (mm.flops, mm.read, mm.written, mm.intensity) == (512, 128 + 256, 128, 1.0)
    assert mm.stack == (Frame("model.py", 20, "<module>"), Frame("model.py", 7, "forward"))
    assert (mm.module, mm.original_aten, mm.seq_nr, mm.is_backward) == (
        ("L['self'].layer", "Linear"), "aten.mm.default", 13, True,
    )  # fmt: skip
    h = Source("h", "trace", "create", 1, ())
    assert mm.sources == (h, Source("permute_3", "pattern_matcher", "replace", 2, (h,)))


def test_a_view_touches_no_memory() -> None:
    permute = facts_of(data(), TEXT)[2]
    assert (permute.is_view, permute.read, permute.written, permute.intensity) == (True, 0, 0, None)


def test_a_size_without_a_hint_makes_bytes_unknown() -> None:
    unknown = data()
    unknown["values"][0][5] = None
    mm = facts_of(unknown, TEXT)[3]
    assert (mm.read, mm.written, mm.intensity) == (None, None, None)


def test_a_list_of_tensors_and_a_symbol() -> None:
    several = data()
    several["values"] += [["symbol", "s0*2", 8], ["list", [0, 1, 3]]]
    several["nodes"]["value"][3] = 4
    mm = facts_of(several, TEXT)[3]
    assert (mm.value.kind, mm.value.bytes) == ("list", 128 + 256)
    assert mm.value.parts[2].text == "s0*2"


def test_dtypes_alone() -> None:
    several = data()
    several["values"] += [["list", [0, 0]], ["symbol", "s0", 8]]
    several["nodes"]["value"][2:4] = [len(several["values"]) - 2, len(several["values"]) - 1]
    found = dtypes_of(several)
    assert found == {node.name: dtype_of(node) for node in facts_of(several)}
    assert found["permute"] == "float32" and found["mm"] == ""
    assert dtypes_of(None) == dtypes_of({"nodes_of": 1}) == {}


def test_data_of_other_stages_has_no_nodes() -> None:
    assert facts_of(None) == facts_of({"nodes_of": 1}) == ()


def test_lines_of_a_signature_in_several_lines() -> None:
    text = """\
class inner_f(torch.nn.Module):
    def forward(
        self,
        primals,
        tangents,
    ):
        primals_1: "f32[8, 8][8, 1]cpu"  # ParamAOTInput(target='weight')
        tangents_1: "f32[][]cpu"

        primals_1, tangents_1, = fx_pytree.tree_flatten_spec([primals, tangents], self._in_spec)
        l_x_ = L_x_
        split = torch.ops.aten.split.Tensor(primals_1, 4)
        return pytree.tree_unflatten([split], self._out_spec)
"""
    lines = lines_of(text)
    assert [lines[name] for name in ("primals_1", "tangents_1", "l_x_", "split", "output")] == [7, 8, 11, 12, 13]
