"""What is read from the texts of JAX and XLA, as they were recorded for ``torch.relu(x @ w) + 1`` (jax 0.10.2)."""

from __future__ import annotations

from pathlib import Path

import pytest
from irscope.ir.graphs import parse_graph
from irscope.ir.hlo import clean_hlo, parse_hlo
from irscope.ir.nodes import facts_of
from irscope.pipeline_captures.openxla.dump import Dump
from irscope.pipeline_captures.openxla.lowering import node_of, scope_of
from irscope.pipeline_captures.openxla.printing import Memory, Origin, PrintedHlo, printed
from irscope.pipeline_captures.openxla.texts import jaxpr_lines, stablehlo_lines
from irscope.protocol import Origin as Line

JAXPR = """\
{ lambda ; a:f32[2,3] b:f32[3,4]. let
    c:f32[2,4] = dot_general[                                         # [mm~net.py:5]
      dimension_numbers=(([1], [0]), ([], []))
    ] a b
    d:f32[2,4] = custom_jvp_call[                                     # [relu~net.py:6]
      call_jaxpr={ lambda ; e:f32[2,4]. let
          f:f32[2,4] = max e 0.0:f32[]                                # []
        in (f,) }
    ] c
    g:f32[2,4] = add d 1.0:f32[]                                      # [add~net.py:6]
  in (g,) }
"""

STABLEHLO = """\
#loc = loc(unknown)
#loc1 = loc("x")
module @jit_scale attributes {mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2x3xf32> loc("x"), %arg1: tensor<3x4xf32> loc("w")) -> (tensor<2x4xf32> {jax.result_info = "result[0]"}) {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32> loc(#loc5)
    %1 = call @relu(%0) : (tensor<2x4xf32>) -> tensor<2x4xf32> loc(#loc6)
    %2 = stablehlo.add %1, %1 : tensor<2x4xf32> loc(#loc7)
    return %2 : tensor<2x4xf32> loc(#loc)
  } loc(#loc)
  func.func private @relu(%arg0: tensor<2x4xf32> loc(unknown)) -> tensor<2x4xf32> {
    %0 = stablehlo.maximum %arg0, %arg0 : tensor<2x4xf32> loc(#loc4)
    return %0 : tensor<2x4xf32> loc(#loc)
  } loc(#loc)
} loc(#loc)
#loc2 = loc("/site-packages/torchax/ops/jaten.py":913:9 to :31)
#loc4 = loc("max")
#loc5 = loc("jit(scale)/mm~net.py:5/dot_general"(#loc2))
#loc6 = loc("jit(scale)/relu~net.py:6/jit(relu)"(#loc2))
#loc7 = loc("jit(scale)/add~net.py:6/add"(#loc2))
"""

BEFORE = """\
HloModule jit_scale, entry_computation_layout={(f32[2,3]{1,0}, f32[3,4]{1,0})->f32[2,4]{1,0}}

FileNames
1 "/site-packages/torchax/ops/jaten.py"

StackFrames
1 {file_location_id=1 parent_frame_id=1}


%relu.1 (Arg_0.1: f32[2,4]) -> f32[2,4] {
  %Arg_0.1 = f32[2,4]{1,0} parameter(0)
  %constant.4 = f32[] constant(0)
  %max.2 = f32[2,4]{1,0} broadcast(%constant.4), dimensions={}, metadata={op_name="max"}
  ROOT %max.3 = f32[2,4]{1,0} maximum(%Arg_0.1, %max.2), metadata={op_name="max"}
}

ENTRY %main.4 (x.1: f32[2,3], w.1: f32[3,4]) -> f32[2,4] {
  %constant.1 = f32[] constant(1)
  %add.3 = f32[2,4]{1,0} broadcast(%constant.1), dimensions={}, metadata={op_name="jit(scale)/add~net.py:6/add" stack_frame_id=1}
  %w.1 = f32[3,4]{1,0} parameter(1), metadata={op_name="w"}
  %x.1 = f32[2,3]{1,0} parameter(0), metadata={op_name="x"}
  %dot_general.1 = f32[2,4]{1,0} dot(%x.1, %w.1), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="jit(scale)/mm~net.py:5/dot_general" stack_frame_id=1}
  %call.1 = f32[2,4]{1,0} call(%dot_general.1), to_apply=%relu.1, metadata={op_name="jit(scale)/relu~net.py:6/jit(relu)" stack_frame_id=1}
  ROOT %add.4 = f32[2,4]{1,0} add(%call.1, %add.3), metadata={op_name="jit(scale)/add~net.py:6/add" stack_frame_id=1}
}
"""

AFTER = """\
HloModule jit_scale, is_scheduled=true

%fused_computation (param_0: f32[2,4]) -> f32[2,4] {
  %param_0 = f32[2,4]{1,0} parameter(0)
  %constant.7 = f32[] constant(0)
  %max.6 = f32[2,4]{1,0} broadcast(%constant.7), dimensions={}, metadata={op_name="jit(scale)/relu~net.py:6/jit(relu)/max"}
  %max.4 = f32[2,4]{1,0} maximum(%param_0, %max.6), metadata={op_name="jit(scale)/relu~net.py:6/jit(relu)/max"}
  %constant.8 = f32[] constant(1)
  %add.6 = f32[2,4]{1,0} broadcast(%constant.8), dimensions={}, metadata={op_name="jit(scale)/add~net.py:6/add"}
  ROOT %add.5 = f32[2,4]{1,0} add(%max.4, %add.6), metadata={op_name="jit(scale)/add~net.py:6/add"}
}

ENTRY %main.4 (x.1: f32[2,3], w.1: f32[3,4]) -> f32[2,4] {
  %x.1 = f32[2,3]{1,0} parameter(0), metadata={op_name="x"}
  %w.1 = f32[3,4]{1,0} parameter(1), metadata={op_name="w"}
  %dot_general.1 = f32[2,4]{1,0} dot(%x.1, %w.1), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="jit(scale)/mm~net.py:5/dot_general"}, backend_config={"outer_dimension_partitions":[]}
  ROOT %max_add_fusion = f32[2,4]{1,0} fusion(%dot_general.1), kind=kLoop, calls=%fused_computation, metadata={op_name="jit(scale)/add~net.py:6/add"}
}
"""

FRAMES = {"mm": 5, "relu": 6, "add": 6}


def memory() -> Memory:
    return Memory(
        origins={name: Origin((("/home/net.py", line, "scale"),)) for name, line in FRAMES.items()},
        node_of=lambda op_name: op_name if op_name in ("x", "w") else node_of(op_name),
        number=2,
        program=1,
    )


def both() -> tuple[PrintedHlo, PrintedHlo]:
    shared = memory()
    return printed(parse_hlo(BEFORE), shared, is_first=True), printed(parse_hlo(AFTER), shared)


def test_a_scope_names_the_node_and_the_line() -> None:
    assert scope_of("relu_1", Line("/home/me/my net@2.py", 7)) == "relu_1~my_net_2.py:7"
    assert node_of("jit(forward)/relu_1~my_net_2.py:7/jit(relu)/max") == "relu_1"
    assert [node_of(one) for one in ("", "max", "p_weight", "jit(forward)/while/body")] == [""] * 4


def test_a_jaxpr_has_the_node_of_each_line() -> None:
    text, lines = jaxpr_lines(JAXPR, node_of)
    assert "#" not in text
    assert [line for line, node in lines if node == "relu"] == [5, 6, 7, 8, 9]
    assert dict(lines) == {2: "mm", 3: "mm", 4: "mm", **dict.fromkeys(range(5, 10), "relu"), 10: "add"}


def test_stablehlo_has_the_lines_of_the_jaxpr_that_it_came_from() -> None:
    _, above = jaxpr_lines(JAXPR, node_of)
    text, lines, of_scope = stablehlo_lines(STABLEHLO, above, node_of)
    assert "loc(" not in text
    rows = text.split("\n")
    found = {rows[line - 1].split(" = ")[1].split()[0]: {one for at, one in lines if at == line} for line, _ in lines}
    assert found == {
        "stablehlo.dot_general": {"2", "3", "4"},
        "call": {"5", "6", "7", "8", "9"},
        "stablehlo.add": {"10"},
        "stablehlo.maximum": {"5", "6", "7", "8", "9"},  # of a function that the relu calls
    }
    [line] = of_scope["jit(scale)/mm~net.py:5/dot_general"]
    assert "dot_general" in rows[int(line) - 1]


def test_hlo_is_read_with_its_computations() -> None:
    module = parse_hlo(AFTER)
    assert (module.entry, list(module.computations)) == ("main.4", ["fused_computation", "main.4"])
    *_, dot, fusion = module.computations["main.4"]
    assert (dot.opcode, dot.operands, dot.op_name) == ("dot", ("x.1", "w.1"), "jit(scale)/mm~net.py:5/dot_general")
    assert dict(dot.attributes)["lhs_contracting_dims"] == "{1}"
    assert (fusion.called, fusion.is_root, fusion.attributes) == (("fused_computation",), True, (("kind", "kLoop"),))
    assert [(one.type, one.sizes, one.layout) for one in dot.arrays] == [("f32", (2, 4), (1, 0))]


@pytest.mark.parametrize(
    ("row", "shape", "operands"),
    [
        ("%t.1 = (f32[2]{0}, /*index=1*/s32[]) tuple(%a.1, %b)", "(f32[2]{0}, s32[])", ("a.1", "b")),
        ("%c = f32[2,2]{1,0} constant({ { 1, 2 }, { 3, 4 } })", "f32[2,2]{1,0}", ()),
        ("ROOT %w = (s64[], f32[2]{0}) while(%t), condition=%cond.1, body=%body.2", "(s64[], f32[2]{0})", ("t",)),
    ],
)
def test_shapes_of_several_arrays_and_literals(row: str, shape: str, operands: tuple[str, ...]) -> None:
    [one] = parse_hlo(f"ENTRY %main (p: f32[2]) -> f32[2] {{\n  {row}\n}}\n").instructions()
    assert (one.shape, one.operands) == (shape, operands)
    assert one.called == (("cond.1", "body.2") if one.opcode == "while" else ())


def test_what_is_not_hlo_has_no_entry() -> None:
    for text in ("", "HloModule x\n", "ENTRY\n", "}\n" * 10):
        with pytest.raises(ValueError, match="no HLO module"):
            parse_hlo(text)


def test_the_tables_of_stack_frames_are_left_out() -> None:
    text = clean_hlo(BEFORE)
    assert "FileNames" not in text and "stack_frame_id" not in text and "jaten.py" not in text
    assert list(parse_hlo(text).computations) == list(parse_hlo(BEFORE).computations)


def test_a_printed_module_is_a_graph_with_the_users_lines() -> None:
    before, after = both()
    graph = parse_graph(before.text)
    assert [node.name for node in graph.nodes][:2] == ["x_1", "w_1"]
    assert [(node.name, node.inputs) for node in graph.nodes if node.op == "call"] == [
        ("constant_1", ()),
        ("add_3", ("constant_1",)),
        ("dot_general_1", ("x_1", "w_1")),
        ("constant_4", ()),
        ("max_2", ("constant_4",)),
        ("max_3", ("dot_general_1", "max_2")),
        ("call_1", ("max_3",)),
        ("add_4", ("call_1", "add_3")),
    ]
    facts = {one.name: one for one in facts_of(after.data, after.text)}
    assert {name: one.stack[-1].line for name, one in facts.items() if one.stack} == {
        "dot_general_1": 5,
        **dict.fromkeys(("constant_7", "max_6", "max_4", "constant_8", "add_6", "add_5", "max_add_fusion"), 6),
    }
    assert (facts["max_add_fusion"].inputs, facts["max_4"].inputs) == (("add_5",), ("dot_general_1", "max_6"))
    value = facts["dot_general_1"].value
    assert (value.dtype, value.sizes, value.bytes) == ("float32", (2, 4), 32)


def test_a_node_after_the_passes_came_from_those_of_the_same_operation() -> None:
    _, after = both()
    facts = {one.name: one for one in facts_of(after.data)}
    assert [(one.name, one.graph) for one in facts["add_5"].sources] == [("add_4", 2)]
    assert [(one.name, one.graph) for one in facts["add_6"].sources] == [("add_3", 2)]
    # The relu was a function of its own, whose instructions have no scope: the same operation tells.
    assert [(one.name, one.graph) for one in facts["max_4"].sources] == [("max_3", 2)]


def test_a_dump_gives_passes_and_kernels(tmp_path: Path) -> None:
    files = {
        "0000.p.after_pipeline-start.before_algsimp.txt": BEFORE,
        "0001.simplification.after_algsimp.before_simplify-sorts.txt": AFTER,
        "0002.copy-insertion.after_adding_special-case_copies.txt": AFTER,
        "cpu_after_optimizations.txt": AFTER,
        "cpu_after_optimizations-buffer-assignment.txt": "BufferAssignment:\n",
        "max_add_fusion.1_kernel_module.ir-no-opt.ll": "define ptr @max_add_fusion.1(ptr %0) {\n}\n",
        "max_add_fusion.1_kernel_module.ir-with-opt.ll": "define noalias ptr @max_add_fusion.1(ptr %0) {\n}\n",
        "__compute_module_transpose.ir-no-opt.ll": 'define ptr @"transpose"(ptr %0) {\n}\n',
        "obj-file.__compute_module_transpose.o": "",
    }
    for name, text in files.items():
        (tmp_path / f"module_0010.jit_scale.{name}").write_text(text, encoding="utf-8")
    dump = Dump(tmp_path)
    assert [one.passed for one in dump.passes()] == ["algsimp", "adding_special-case_copies"]
    assert dump.text(".cpu_after_optimizations.txt") == AFTER
    assert dump.text("-buffer-assignment.txt") == "BufferAssignment:\n"
    found = {one.name: one for one in dump.kernels()}
    assert {name: one.functions for name, one in found.items()} == {
        "max_add_fusion.1": ("max_add_fusion.1",),
        "transpose": ("transpose",),
    }
    assert found["max_add_fusion.1"].optimized.startswith("define noalias")
    assert [one.object is not None for one in found.values()].count(True) == 1
