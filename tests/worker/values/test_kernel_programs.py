"""A Triton kernel by Triton's interpreter: what it computes, and what its checks find.  One process runs all of them."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from irscope.driver import kernel_checks
from irscope.store.store import Store
from irscope.values.kernel.asking import StoredKernel
from irscope.values.kernel.blocks import value_text
from irscope.values.kernel.running import run_kernels
from irscope.values.kernel.text import output_text, problem_text
from kernel_runs import KERNEL, NAME, line_of, with_a_kernel
from support import triton_importable

Answers = dict[str, dict[str, Any]]
_LOAD = "tl.load(in_ptr0 + (r0_1 + 6*x0), r0_mask & xmask, other=0.0)"
BUGS: dict[str, tuple[str, ...]] = {
    "as it is": (),
    "a mask too wide": ("xmask = xindex < xnumel", "xmask = xindex < xnumel + 2"),
    "a wrong stride": (_LOAD, _LOAD.replace("6*x0", "7*x0")),
    "a race": ("tl.store(out_ptr0 + (x0), ", "tl.store(out_ptr0 + (x0 // 4), "),
    "a lost other": (", other=0.0", "", "tmp6 = tl.where(r0_mask & xmask, tmp4, 0)", "tmp6 = tmp4"),
    "an overflow": ("tl.sum(tmp6, 1)", "tl.sum(tmp6 * 1e30 * 1e30, 1)"),
    "read what was not written": (_LOAD, _LOAD.replace("in_ptr0", "out_ptr0").replace("r0_1 + 6*x0", "r0_1 * 0 + x0")),
    "assembly": ("tl_math.log(tmp2)", "tl.inline_asm_elementwise('ex2 $0, $1;', '=f,f', [tmp2], tl.float32, True, 1)"),
    "a library function": ("tl_math.log(tmp2)", "libdevice.no_such(tmp2)"),
    "a library function that there is": ("tl_math.log(tmp2)", "libdevice.log(tmp2)"),
    "rounded": (
        "tmp3 = tl_math.log(tmp2)",
        "tmp3 = (tl_math.log(tmp2).to(tl.bfloat16) + tl_math.log(tmp2).to(tl.bfloat16)).to(tl.float32) / 2",
    ),
    "no kernel": ("tl_math.log(tmp2)", "tmp2.handle.data.tofile('x')"),
}


def with_bug(*parts: str) -> str:
    """The kernel with parts of its text replaced, in pairs."""
    text = KERNEL
    for old, new in zip(parts[::2], parts[1::2], strict=True):
        assert old in text
        text = text.replace(old, new)
    return text


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> StoredKernel:
    folder = tmp_path_factory.mktemp("kernel")
    with_a_kernel(folder / "runs.db", folder)
    store = Store(str(folder / "runs.db"))
    return StoredKernel(store, store.report(store.find_run(None)), NAME)


@pytest.fixture(scope="module")
def answers(kernel: StoredKernel) -> Iterator[Answers]:
    request = {**kernel.request(), "blocks": {"XBLOCK": 4}, "step": True}
    with triton_importable():
        texts = [{**request, "text": with_bug(*bug)} for bug in BUGS.values()]
        one = {**request, "program": [1], "elements": True}
        wanted = [
            {"argument": "out_ptr0", "index": 4}, {"argument": "in_ptr0", "index": 29},
            {"line": line_of("tmp3 ="), "condition": "(tmp2 > 0).any() and xoffset.max > 0"}, {"line": line_of("tmp6 ="), "condition": "no_such"},
        ]  # fmt: skip
        found = run_kernels(sys.executable, [*texts, one, {**request, "find": wanted, "elements": True}])
    yield dict(zip([*BUGS, "one program", "found"], found, strict=True))


def test_a_kernel_agrees_with_its_graph(answers: Answers) -> None:
    answer = answers["as it is"]
    assert (answer["grid"], answer["programs"]["run"], answer["failed"], answer["problems"]) == ([2, 1, 1], 2, "", [])
    [output] = answer["outputs"]
    assert (output["node"], output["elements"], output["measure"]["differs"]) == ("sum_1", 5, False)
    assert output_text(output).startswith("out_ptr0 (buf0 = sum_1): agrees with eager mode")
    assert [(each["buffer"], each["value"]) for each in answer["inputs"]] == [("arg0_1", "made"), ("buf0", "empty")]


@pytest.mark.parametrize(
    ("bug", "kind", "statement", "told"),
    [
        ("a mask too wide", "out-of-bounds-read", "tl.load", "program (1) reads outside of in_ptr0: element 30"),
        ("a mask too wide", "out-of-bounds-write", "tl.store", "program (1) writes outside of out_ptr0: element 5"),
        ("a wrong stride", "out-of-bounds-read", "tl.load", "program (1) reads outside of in_ptr0: element 30"),
        ("a race", "race", "tl.store", "program (0) writes several values to one address: out_ptr0[0]"),
        ("a lost other", "non-finite", "tmp7 = ", "program (0) makes the first value that is not finite: tmp7"),
        ("an overflow", "non-finite", "tmp7 = ", "program (0) makes the first value that is not finite: tmp7"),
        (
            "read what was not written",
            "never-written",
            "tl.load",
            "program (0) reads memory that nothing wrote: out_ptr0[0]",
        ),
    ],
)
def test_a_bug_is_found_at_its_statement(answers: Answers, bug: str, kind: str, statement: str, told: str) -> None:
    found = {each["kind"]: each for each in answers[bug]["problems"]}
    assert found[kind]["line"] == line_of(statement)
    assert problem_text(found[kind]).startswith(told)


def test_a_value_that_is_masked_out_is_undefined(answers: Answers) -> None:
    """The guard of the reduction alone keeps the lanes out that have no value."""
    assert answers["as it is"]["problems"] == [] and answers["a lost other"]["problems"] != []


def test_what_cannot_be_interpreted_is_named(answers: Answers) -> None:
    where = f"line {line_of('tmp3 =')}: "
    assert (
        answers["assembly"]["failed"] == f"Program (0, 0, 0), {where}Inline assembly cannot be interpreted: ex2 $0, $1;"
    )
    assert answers["a library function"]["failed"].endswith(
        f"{where}libdevice.no_such has no equivalent in the interpreter."
    )
    assert answers["no kernel"] == {
        "error": f"Line {line_of('tmp3 =')} of the kernel uses .tofile, which no block has."
    }
    assert answers["a library function that there is"]["outputs"][0]["measure"]["differs"] is False


def test_bfloat16_is_computed_and_rounded(answers: Answers) -> None:
    """Triton's interpreter adds the bit patterns: the result would be far off."""
    measure = answers["rounded"]["outputs"][0]["measure"]
    assert 1e-4 < measure["to_eager"] < 0.05


def test_the_statements_of_one_program(answers: Answers, kernel: StoredKernel) -> None:
    answer = answers["one program"]
    assert (answer["programs"]["run"], answer["recorded"]) == (1, [1, 0, 0])
    by_line = {each["line"]: each["values"] for each in answer["statements"]}
    assert list(by_line) == list(range(line_of("    xnumel = 5"), line_of("tl.store") + 1))
    block = by_line[line_of("tmp0 =")]["tmp0"]
    assert value_text(block).startswith("fp32[4, 8] from ") and value_text(block).endswith("26 of 32 masked out")
    assert sum(block["live"]) == 6 and len(block["elements"]) == 32
    [output] = answer["outputs"]
    assert (output["elements"], output["of"], output["measure"]["differs"]) == (1, 5, False)


def test_who_writes_an_element_and_where_a_condition_is_met(answers: Answers) -> None:
    """In all programs, which are four rows each."""
    found = {(each["kind"], tuple(each["program"]), each["line"], each["times"]) for each in answers["found"]["found"]}
    read, met, written = line_of("tl.load("), line_of("tmp3 ="), line_of("tl.store(")
    assert found == {("read", (1, 0, 0), read, 0), ("condition", (1, 0, 0), met, 0), ("write", (1, 0, 0), written, 0)}
    assert answers["found"]["recorded"] == [1, 0, 0]
    memory = {each["parameter"]: each["elements"] for each in answers["found"]["memory"]}
    assert len(memory["in_ptr0"]) == 30 and len(memory["out_ptr0"]) == 5


def test_what_a_check_finds_is_a_finding_of_the_run(answers: Answers, kernel: StoredKernel, tmp_path: Path) -> None:
    """At the user's line; what an earlier check of the kernel found is replaced, and the kernel says that it was checked."""
    with_a_kernel(tmp_path / "runs.db", tmp_path)
    with Store(str(tmp_path / "runs.db")) as store:
        for bug, codes, told in (
            ("a mask too wide", {"kernel-out-of-bounds-read", "kernel-out-of-bounds-write"}, "2 problems"),
            ("a race", {"kernel-race"}, "1 problem"),
            ("as it is", set(), "0 problems"),
        ):
            report = store.report(store.find_run(None))
            stored, answer = StoredKernel(store, report, NAME), copy.deepcopy(answers[bug])
            kernel_checks.keep(store, stored, answer)
            report = store.report(report.run)
            assert {each.code for each in report.findings} >= codes
            assert {each.code for each in report.findings} <= codes | {"kernel-left-unwritten"}
            assert {each.range.start.line for each in report.findings} <= {5, 6}
            assert told in report.kernels[0].checked or bug == "a race"


def test_a_line_has_its_node_and_the_users_line(kernel: StoredKernel) -> None:
    found: Callable[[str], Any] = lambda part: kernel.line(line_of(part))  # noqa: E731
    assert found("tmp3 =").nodes == ("log",) and found("tmp7 =").nodes == ("sum_1",)
    assert [each.line for each in found("tmp3 =").origins] == [5]
