"""What TorchScript's passes make of names and lines, read from its texts alone."""

from __future__ import annotations

from irscope.ir.torchscript import parse_script
from irscope.pipeline_captures.torchscript.executor import BACKWARD, OPTIMIZED, PROFILED, graphs_in
from irscope.pipeline_captures.torchscript.loops import lines_of
from irscope.pipeline_captures.torchscript.printing import Memory, PrintedGraph, printed

BEFORE = """\
graph(%x.1 : Tensor,
      %w : Tensor):
  %2 : Tensor = aten::sin(%x.1) # /model.py:3:8
  %3 : Tensor = aten::linear(%2, %w) # /model.py:4:8
  %4 : Tensor = aten::dropout(%3) # /model.py:5:8
  %5 : Tensor = aten::cos(%4) # /model.py:6:8
  return (%5)
"""
FORMULAS = """\
graph(%x.1 : Tensor,
      %w : Tensor):
  %2 : Tensor = aten::sin(%x.1) # /model.py:3:8
  %10 : Tensor = aten::matmul(%2, %w) # <string>:20:4
  %11 : int[] = aten::size(%2) # <string>:21:4
  %12 : float = aten::sub() # <string>:30:4
  %13 : Tensor = aten::native_dropout(%10, %12) # <string>:31:4
  %5 : Tensor = aten::cos(%13) # /model.py:6:8
  return (%5)
"""
COPY = BEFORE.replace("%2 ", "%7 ").replace("(%2,", "(%7,").replace("%3 ", "%2 ").replace("(%3)", "(%2)")


def memory() -> Memory:
    return Memory(lambda file: file == "/model.py", lambda file, line: "")


def lines(graph: PrintedGraph) -> dict[str, int]:
    return {name: frames[0][1] for name, frames in graph.frames.items() if frames}


def test_operations_of_a_formula_have_the_line_of_what_it_replaces() -> None:
    shared = memory()
    before = printed(parse_script(BEFORE), shared)
    assert lines(before) == {"sin": 3, "linear": 4, "dropout": 5, "cos": 6}
    after = printed(parse_script(FORMULAS), shared, before)
    assert lines(after) == {"sin": 3, "matmul": 4, "size": 4, "sub": 5, "native_dropout": 5, "cos": 6}


def test_a_second_copy_of_a_formula_has_the_lines_of_the_first() -> None:
    shared = memory()
    before = printed(parse_script(BEFORE), shared)
    formulas = printed(parse_script(FORMULAS), shared, before)
    row = "  %10 : Tensor = aten::matmul(%2, %w) # <string>:20:4\n"
    twice = FORMULAS.replace(row, row + row.replace("%10", "%30").replace("%2,", "%w,"))
    assert lines(printed(parse_script(twice), shared, formulas))["matmul_1"] == 4


def test_values_that_a_copy_numbers_again_keep_their_names() -> None:
    """The number of the one operation is now that of another."""
    shared = memory()
    before = printed(parse_script(BEFORE), shared)
    after = printed(parse_script(COPY), shared, before)
    assert after.is_like(before)


def logged(title: str, graph: str, level: str = "DEBUG") -> str:
    rows = [title, *graph.rstrip("\n").split("\n")]
    return "".join(f"[{level} profiling_graph_executor_impl.cpp:1] {row}\n" for row in rows)


def test_an_executor_that_another_one_runs_has_its_own_graphs() -> None:
    running = "[DEBUG profiling_graph_executor_impl.cpp:623] Running ProfilingGraphExecutorImpl "
    log = "".join(
        (
            f"{running}0xa\n",
            logged("After CheckInplace", BEFORE),
            logged("Backward graph:", BEFORE.replace("%w", "%2")),
            f"{running}0xb\n",
            logged("Profiled Graph: ", BEFORE, "DUMP"),
            logged("Optimized Graph: ", BEFORE.replace("%x.1", "%x.7"), "DUMP"),
        )
    )
    found = list(graphs_in(log))
    assert [(one.title, one.executor) for one in found] == [
        ("CheckInplace", "0xa"), (BACKWARD, "0xa"), (PROFILED, "0xb"), (OPTIMIZED, "0xa"),
    ]  # fmt: skip
    assert [one.takes(("x.1", "w")) for one in found] == [True, False, True, True]


GROUP = """\
graph(%y : Tensor, %x : Tensor):
  %1 : Tensor = aten::mul(%x, %y)
  %2 : Tensor = aten::relu(%1)
  %3 : Tensor = aten::mul(%1, %1)
  return (%2, %3)
"""
LOOPS = """\
{
  for (int64_t i = 0ll; i < 8ll; i++) {
    aten_mul_1[i] = (tx[i]) * (ty[i]) * (tx[i]) * (ty[i]);
    aten_relu[i] = (tx[i]) * (ty[i]);
    other[i] = 0;
  }
}
"""


def test_a_store_computes_all_that_has_no_buffer_before_it() -> None:
    names = {"1": "product", "2": "relu", "3": "square"}
    block = parse_script(GROUP).main
    assert lines_of(LOOPS, block, names) == [(3, "product"), (3, "square"), (4, "product"), (4, "relu")]
    stored = LOOPS.replace("other[i] = 0", "aten_mul[i] = 0")
    assert lines_of(stored, block, names) == [(3, "square"), (4, "relu"), (5, "product")]
