"""Known issues of PyTorch: found by messages as the issues quote them."""

from __future__ import annotations

import pytest
from irscope.findings.known_issues import ISSUES, issue_in, issue_of

QUOTED = [
    ("AssertionError: <built-in function getitem> is not an OpOverload", "", 197376),
    ("KeyError: 'buf1'", "try_outer_loop_fusion_with_local_buf", 196570),
    ("IndexError: tuple index out of range", "pointless_cumsum_replacement", 193265),
    ("TypeError: A Boolean argument can only be used in Eq and Ne; all other relationals expect real", "", 188231),
    ("ValueError: The argument 'False' is not comparable.", "", 188230),
    ("LoweringException: AssertionError: \n  target: aten.cummin.default", "_validate_dim", 188224),
    ("LoweringException: AssertionError: \n  target: aten.scatter.src", "scatter_reduce_", 188213),
    ("TypeError: cannot determine truth value of Relational", "get_stride_order", 185510),
    ("AssertionError: ", "indexer", 185405),
    ("AssertionError: ", "simplify_and_reorder", 181624),
    ("AssertionError: ({y0: 192, y1: 0, y2: 96}, {y0: 3, y1: 2, y2: 96})", "", 181302),
    ("AssertionError: ((8, 7, 7), (56, 7))", "", 180980),
    ("AssertionError: -991967080329279/1000000000000000", "", 163876),
    (
        "ImportError: cannot import name 'triton_key' from 'triton.compiler.compiler' (/env/triton/compiler/compiler.py)",
        "",
        123042,
    ),
    ("RuntimeError: Triton Error [CUDA]: device kernel image is invalid", "", 119054),
]


@pytest.mark.parametrize(("text", "function", "number"), QUOTED)
def test_a_quoted_message_has_its_issue(text: str, function: str, number: int) -> None:
    issue = issue_in(text, {"compile_fx", function})
    assert issue is not None and issue.number == number
    assert issue.link == f"https://github.com/pytorch/pytorch/issues/{number}"


def test_each_issue_is_quoted() -> None:
    assert [issue.number for issue in ISSUES] == [number for _, _, number in QUOTED]


@pytest.mark.parametrize(
    "text", ["KeyError: 'buf1'", "KeyError: 'weight'", "AssertionError: mine", "IndexError: tuple index out of range"]
)
def test_an_error_alone_is_no_issue(text: str) -> None:
    assert issue_in(text, {"compile_fx"}) is None


def test_the_exception_that_began_it_counts() -> None:
    def _validate_dim() -> None:
        raise AssertionError

    with pytest.raises(RuntimeError) as caught:
        try:
            _validate_dim()
        except AssertionError as error:
            raise RuntimeError("backend='inductor' raised") from error
    issue = issue_of(caught.value)
    assert issue is not None and issue.number == 188224
    assert issue_of(AssertionError("mine")) is None
