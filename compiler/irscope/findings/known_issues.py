"""Failures inside PyTorch that people have reported: what an error looks like, and the issue.

Each message is as its issue quotes it.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Collection

from irscope.vocabulary.records import dataclass


@dataclass(frozen=True)
class KnownIssue:
    """An issue of PyTorch's.

    Args:
        number: The number of the issue.
        error: What the type and the text of the exception that began it match, from the start.
        function: A function of PyTorch's that the exception passed through; empty if the text alone says enough.
        seen: The versions of torch that the issue names, or that failed when its script was run; empty if none is
            known.
    """

    number: int
    error: str
    function: str = ""
    seen: str = ""

    @property
    def link(self) -> str:
        """The page of the issue."""
        return f"https://github.com/pytorch/pytorch/issues/{self.number}"


ISSUES = (
    KnownIssue(197376, r"AssertionError: <built-in function getitem> is not an OpOverload", seen="2.13 and 2.14"),
    KnownIssue(196570, r"KeyError: 'buf\d+'$", "try_outer_loop_fusion_with_local_buf", "2.13 and 2.14"),
    KnownIssue(193265, r"IndexError: tuple index out of range", "pointless_cumsum_replacement", "2.12 to 2.14"),
    KnownIssue(188231, r"TypeError: A Boolean argument can only be used in Eq and Ne", seen="2.13"),
    KnownIssue(188230, r"ValueError: The argument '(?:True|False)' is not comparable", seen="2.13"),
    KnownIssue(188224, r"AssertionError", "_validate_dim", "2.13 and 2.14"),
    KnownIssue(188213, r"AssertionError", "scatter_reduce_", "2.13"),
    KnownIssue(185510, r"TypeError: cannot determine truth value of Relational", "get_stride_order"),
    KnownIssue(185405, r"AssertionError", "indexer", "2.13"),
    KnownIssue(181624, r"AssertionError:?$", "simplify_and_reorder"),
    KnownIssue(181302, r"AssertionError: \(\{y0: \d+, y1: "),
    KnownIssue(180980, r"AssertionError: \(\(\d+(?:, \d+)*\), \(\d+(?:, \d+)*\)\)$"),
    KnownIssue(163876, r"AssertionError: -\d+/\d+$"),
    KnownIssue(123042, r"ImportError: cannot import name 'triton_key' from 'triton\.compiler\.compiler'", seen="2.4"),
    KnownIssue(119054, r"RuntimeError: Triton Error \[CUDA\]: device kernel image is invalid"),
)


def issue_of(error: BaseException) -> KnownIssue | None:
    """The issue that an exception is about, by the exception that it comes from; None if none is known."""
    first = first_of(error)
    functions = {frame.f_code.co_name for frame, _ in traceback.walk_tb(first.__traceback__)}
    return issue_in(f"{type(first).__name__}: {str(first).strip()}", functions)


def issue_in(text: str, functions: Collection[str]) -> KnownIssue | None:
    """The issue of an exception, by its type and text and the functions that it passed through."""
    line = text.removeprefix("LoweringException: ").split("\n")[0].strip()
    return next((issue for issue in ISSUES if re.match(issue.error, line) and issue.function in ("", *functions)), None)


def first_of(error: BaseException) -> BaseException:
    """The exception that an exception wraps or comes from."""
    seen: set[int] = set()
    while id(error) not in seen and (inner := getattr(error, "inner_exception", None) or error.__cause__) is not None:
        seen.add(id(error))
        error = inner
    return error
