"""MLIR's dump before each pass, read into the passes that changed the module."""

from __future__ import annotations

from irscope.ir.line_tables import mlir_lines
from irscope.ir.mlir import normal, snapshots_in, steps_of
from triton_kernels import AXPY, EXAMPLES, strangers

BEFORE, AFTER = AXPY.text("ttir-unoptimized"), AXPY.text("ttir")
# As triton 3.7 prints them.
INLINE = "// -----// IR Dump Before Inliner (inline) ('builtin.module' operation) //----- //\n"
NESTED = "// -----// IR Dump Before Canonicalizer (canonicalize) ('tt.func' operation: @axpy_kernel) //----- //\n"
COMBINE = "// -----// IR Dump Before TritonCombineOps (triton-combine) ('builtin.module' operation) //----- //\n"
CSE = "// -----// IR Dump Before CSE (cse) ('builtin.module' operation) //----- //\n"
PIPELINER = "// -----// SoftwarePipeliner internal IR Dump After: LowerLoops\nmodule {}\n"


def renumbered(text: str) -> str:
    """The same module as another printing may show it: other numbers of locations, other names of values."""
    return text.replace("#loc", "#loc9").replace("%offsets", "%o")


DUMP = (
    INLINE + BEFORE + "\n\n" + NESTED + BEFORE + NESTED + AFTER + COMBINE + AFTER + PIPELINER + CSE + renumbered(AFTER)
)


def test_passes_and_what_they_changed() -> None:
    end = AFTER.replace("tt.return", "tt.return // changed")
    steps = steps_of(DUMP, "ttir", end, 5)
    assert [(step.number, step.argument, step.changed) for step in steps] == [
        (5, "inline", True),
        (6, "triton-combine", False),
        (7, "cse", True),
    ]
    assert [step.name for step in steps] == ["Inliner", "TritonCombineOps", "CSE"]
    assert steps[0].text == AFTER
    assert [step.text for step in steps[1:]] == ["", end]
    assert strangers(steps[0].text, mlir_lines(steps[0].text, AXPY.place), AXPY, "ttir") == []


def test_heads_of_triton_3_9() -> None:
    dump = DUMP
    for name, options in (
        ("inline", "{default-pipeline=canonicalize max-iterations=4 }"),
        ("canonicalize", "{a=b}"),
        ("triton-combine", ""),
        ("cse", ""),
    ):
        dump = dump.replace(f" ({name})", f": {name}{options}").replace("Inliner:", "InlinerPass:")
    assert "(inline)" not in dump
    steps = steps_of(dump, "ttir", "", 1)
    assert [(step.number, step.argument, step.changed, step.text) for step in steps] == [
        (step.number, step.argument, step.changed, step.text) for step in steps_of(DUMP, "ttir", "", 1)
    ]


def test_an_unknown_end_is_no_change() -> None:
    assert [step.changed for step in steps_of(DUMP, "llir", "", 1)] == [True, False, False]


def test_what_passes_print_within_themselves_is_left_out() -> None:
    assert [snapshot.argument for snapshot in snapshots_in(DUMP)] == ["inline", "triton-combine", "cse"]
    assert all("SoftwarePipeliner" not in snapshot.text for snapshot in snapshots_in(DUMP))
    assert snapshots_in("") == snapshots_in("some warning\n") == []


def test_normal_form_keeps_all_but_names_and_places() -> None:
    for example in EXAMPLES:
        for kind in ("ttir-unoptimized", "ttir", "ttgir"):
            text = example.text(kind)
            assert "loc" not in normal(text).replace("ttg.block", "").replace("#block", "")
            assert normal(text).count("tt.load") == text.count("tt.load")
            assert normal(renumbered(text)) == normal(text)
            assert normal(text.replace("tt.load", "tt.lead")) != normal(text)
    assert normal(BEFORE) != normal(AFTER)
