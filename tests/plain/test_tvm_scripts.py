"""TVMScript, LLVM IR and assembly as TVM 0.27 writes them, shortened."""

from __future__ import annotations

import pytest
from irscope.capture.operation_graphs import Tensor
from irscope.capture.rewrites import sources_of
from irscope.pipeline_captures.tvm.building import assembly_functions, llvm_functions, owner_of
from irscope.pipeline_captures.tvm.scripts import Relax, RelaxReader

_START = """\
# from tvm.script import ir as I

@I.ir_module
class Module:
"""
_MAIN = """\
    @R.function
    def main(x: R.Tensor(("n", 8), dtype="float32"), w: R.Tensor((8, 16), dtype="float32")) -> R.Tuple(R.Any):
        R.func_attr({"num_input": 1})
        cls = Module
"""
_TIR = """\
    @T.prim_func(private=True, s_tir=True)
    def NAME(x: T.Buffer((T.int64(2), T.int64(8)), "float32"), y: T.Buffer((T.int64(2), T.int64(16)), "float32")):
        T.func_attr({"op_pattern": 4})
        for i in T.grid(T.int64(2)):
            y[i] = x[i]

"""
IMPORTED = f"""{_START}{_MAIN}
        with R.dataflow():
            mm: R.Tensor((2, 16), dtype="float32") = R.matmul(x, w, out_dtype="float32")
            relu: R.Tensor((2, 16), dtype="float32") = R.nn.relu(mm)
            add: R.Tensor((2, 16), dtype="float32") = R.add(relu, metadata["ir.GenericConst"][0])
            mul: R.Tensor((2, 16), dtype="float32") = R.multiply(add, R.const(2.0, "float32"))
            split: R.Tuple(R.Tensor((2, 8), dtype="float32"), R.Tensor((2, 8), dtype="float32")) = R.split(mul, axis=1)
            getitem: R.Tensor((2, 8), dtype="float32") = split[1]
            gv: R.Tuple(R.Tensor((2, 16), dtype="float32"), R.Tensor((2, 8), dtype="float32")) = (add, getitem)
            R.output(gv)
        return gv

# Metadata omitted. Use show_meta=True in script() method to show it.
"""
FUSED = f"""{_START}{_TIR.replace("NAME", "matmul")}{_TIR.replace("NAME", "relu")}{_TIR.replace("NAME", "split")}
    @R.function(private=True)
    def fused_matmul_relu(x: R.Tensor(("n", 8), dtype="float32"), w: R.Tensor((8, 16), dtype="float32")) -> R.Any:
        R.func_attr({{"Primitive": True}})
        cls = Module
        with R.dataflow():
            mm = R.call_tir(cls.matmul, (x, w), out_ty=R.Tensor((2, 16), dtype="float32"))
            gv = R.call_tir(cls.relu, (mm,), out_ty=R.Tensor((2, 16), dtype="float32"))
            R.output(gv)
        return gv

{_MAIN}
        with R.dataflow():
            lv: R.Tensor((2, 16), dtype="float32") = cls.fused_matmul_relu(x, w)
            add: R.Tensor((2, 16), dtype="float32") = R.add(lv, metadata["ir.GenericConst"][0])
            gv: R.Tuple(R.Tensor((2, 16), dtype="float32")) = (add,)
            R.output(gv)
        return gv
"""
CALLED = f"""{_START}{_TIR.replace("NAME", "fused")}{_TIR.replace("NAME", "split")}{_MAIN}
        lv = R.call_tir(cls.fused, (x, w), out_ty=R.Tensor((2, 16), dtype="float32"))
        two = R.call_tir(cls.split, (lv,), out_ty=[R.Tensor((2, 8), dtype="float32"), R.Tensor((2, 8), dtype="float32")])
        item: R.Tensor((2, 8), dtype="float32") = two[1]
        gv: R.Tuple(R.Tensor((2, 8), dtype="float32")) = (item,)
        return gv
"""
IN_MEMORY = f"""{_START}{_TIR.replace("NAME", "fused")}{_TIR.replace("NAME", "split")}{_MAIN}
        storage: R.Any = R.memory.alloc_storage(R.shape([128]), 0, R.str("global"), R.dtype("float32"))
        alloc: R.Tensor((2, 16), dtype="float32") = R.memory.alloc_tensor(storage, 0, R.shape([2, 16]), R.dtype("float32"))
        cls.fused(x, w, alloc)
        lv: R.Tensor((2, 16), dtype="float32") = alloc
        alloc1: R.Tensor((2, 8), dtype="float32") = R.builtin.alloc_tensor(R.shape([2, 8]), R.dtype("float32"))
        alloc2: R.Tensor((2, 8), dtype="float32") = R.builtin.alloc_tensor(R.shape([2, 8]), R.dtype("float32"))
        cls.split(lv, alloc1, alloc2)
        R.memory.kill_tensor(alloc)
        two: R.Tuple(R.Tensor((2, 8), dtype="float32"), R.Tensor((2, 8), dtype="float32")) = (alloc1, alloc2)
        item: R.Tensor((2, 8), dtype="float32") = two[1]
        gv: R.Tuple(R.Tensor((2, 8), dtype="float32")) = (item,)
        return gv
"""


def rows(graph: Relax) -> list[tuple[str, str, tuple[str, ...]]]:
    return [(one.name, one.target, one.inputs) for one in graph.operations]


def test_the_module_as_imported() -> None:
    graph = RelaxReader().read(IMPORTED)
    assert rows(graph) == [
        ("x", "x", ()),
        ("w", "w", ()),
        ("mm", "relax.matmul", ("x", "w")),
        ("relu", "relax.nn.relu", ("mm",)),
        ("constant", "constant", ()),
        ("add", "relax.add", ("relu", "constant")),
        ("mul", "relax.multiply", ("add",)),
        ("split", "relax.split", ("mul",)),
        ("getitem", "operator.getitem", ("split",)),
        ("output", "output", ("add", "getitem")),
    ]
    by_name = {one.name: one for one in graph.operations}
    assert by_name["x"].value == Tensor("float32", ("'n'", 8))
    assert by_name["mm"].written == ("x", "w", "out_dtype='float32'")
    assert by_name["mul"].written == ("add", "2.0")
    assert by_name["getitem"].written == ("split", "1")
    assert graph.left_out == ()


def test_what_a_fused_function_computes_comes_before_its_call_and_is_linked() -> None:
    reader = RelaxReader()
    before, after = reader.read(IMPORTED), reader.read(FUSED)
    assert rows(after)[2:] == [
        ("mm", "tir.matmul", ("x", "w")),
        ("gv", "tir.relu", ("mm",)),
        ("lv", "relax.fused_matmul_relu", ("gv",)),
        ("constant", "constant", ()),
        ("add", "relax.add", ("lv", "constant")),
        ("output", "output", ("add",)),
    ]
    sources = sources_of(before.operations, after.operations)
    assert (sources["mm"], sources["lv"], sources["add"]) == (("mm",), ("relu",), ("add",))
    assert after.called == {"matmul": ("mm",), "relu": ("gv",)}


def test_what_is_written_into_memory_keeps_the_name_of_the_result() -> None:
    reader = RelaxReader()
    before, after = reader.read(CALLED), reader.read(IN_MEMORY)
    calls = [row for row in rows(after) if not row[1].startswith("relax.")]
    assert calls[2:] == [
        ("lv", "tir.fused", ("x", "w", "alloc")),
        ("two", "tir.split", ("lv", "alloc1", "alloc2")),
        ("two_1", "operator.getitem", ("two",)),
        ("two_2", "operator.getitem", ("two",)),
        ("output", "output", ("two_2",)),
    ]
    assert ("kill_tensor", "relax.memory.kill_tensor", ("lv",)) in rows(after)
    sources = sources_of(before.operations, after.operations)
    assert sources["alloc"] == sources["lv"] == ("lv",)
    assert after.called == {"fused": ("lv",), "split": ("two",)}


def test_what_functions_of_tir_compute_is_not_parsed() -> None:
    tir = _TIR.replace("NAME", "fused")
    long = (
        tir.replace("(x: ", "(\n        x: ")
        .replace("):\n", ",\n    ):\n# a comment\n")
        .replace("y[i] = x[i]", "y[i] = = x[i]")
    )
    assert long.count("= =") == 1
    assert RelaxReader().read(CALLED.replace(tir, long)) == RelaxReader().read(CALLED)


def test_branches_are_told_and_other_texts_are_refused() -> None:
    branch = f"{_START}{_MAIN}        if x:\n            y = x\n        else:\n            y = w\n        return x\n"
    assert RelaxReader().read(branch).left_out == ("if",)
    for text in ("class Module:\n    pass\n", "def (", "x = " + "(" * 500):
        with pytest.raises(ValueError, match="not a module of TVM"):
            RelaxReader().read(text)


def test_the_texts_of_each_function() -> None:
    names = {"add": "", "add1": ""}
    llvm = (
        "; ModuleID = 'TVMMod'\ndefine dllexport i32 @__tvm_ffi_add1(ptr %a) {\nentry:\n  ret i32 0\n}\n\n"
        "define internal fastcc void @add1_compute_(ptr %a) {\n  ret void\n}\n\n"
        'define i32 @"__tvm_ffi_add"(ptr %a) {\n  ret i32 1\n}\n\ndeclare float @expf(float)\n'
    )
    found = llvm_functions(llvm, names)
    assert found["add"] == 'define i32 @"__tvm_ffi_add"(ptr %a) {\n  ret i32 1\n}\n'
    assert found["add1"].count("define ") == 2
    assembly = (
        '\t.file\t"TVMMod"\n__tvm_ffi_add:\n.Lfunc_begin0:\n\tretq\n.Lfunc_end0:\n\t.size\t__tvm_ffi_add, 1\n'
        "__tvm_set_raised:\n\tretq\n\t.size\t__tvm_set_raised, 1\nadd1_compute_:\n\tnop\n\t.size\tadd1_compute_, 1\n"
    )
    found = assembly_functions(assembly, names)
    assert found["add"] == "__tvm_ffi_add:\n.Lfunc_begin0:\n\tretq\n.Lfunc_end0:\n\t.size\t__tvm_ffi_add, 1\n"
    assert set(found) == {"add", "add1"}
    assert owner_of("__tvm_ffi_other", names) == ""
