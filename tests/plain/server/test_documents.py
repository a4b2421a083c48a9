"""URIs of documents, both ways."""

from __future__ import annotations

import pytest
from irscope_server.base.stage_uris import NoDocument, parts_of, uri_of_stage


@pytest.mark.parametrize(
    ("stage", "language", "uri"),
    [
        ("0/0/forward-graph", "python", "irscope:/r-1/0/0/forward-graph.py"),
        ("0/0/kernel/cpp_fused_relu_0", "cpp", "irscope:/r-1/0/0/kernel/cpp_fused_relu_0.cpp"),
        ("0/0/bytecode", "python-bytecode", "irscope:/r-1/0/0/bytecode.pyc.txt"),
        ("0/0/guards", "irscope-guards", "irscope:/r-1/0/0/guards.guards.txt"),
        ("0/0/kernel/k", "triton", "irscope:/r-1/0/0/kernel/k.py"),
        ("0/0/kernel/k/ttir", "mlir", "irscope:/r-1/0/0/kernel/k/ttir.mlir"),
        ("0/0/kernel/k/llir", "llvm", "irscope:/r-1/0/0/kernel/k/llir.ll"),
        ("0/0/kernel/k/ptx", "ptx", "irscope:/r-1/0/0/kernel/k/ptx.ptx"),
        ("0/0/kernel/k/sass", "sass", "irscope:/r-1/0/0/kernel/k/sass.sass"),
        ("0/0/kernel/k/assembly", "asm", "irscope:/r-1/0/0/kernel/k/assembly.s"),
        ("!0/0/0/a b#?%é", "python", "irscope:/r-1/%210/0/0/a%20b%23%3F%25%C3%A9.py"),
    ],
)
def test_there_and_back(stage: str, language: str, uri: str) -> None:
    assert uri_of_stage("r-1", stage, language) == uri
    run, stages = parts_of(uri)
    assert run == "r-1" and stages[0] == stage


def test_other_spellings_of_the_same_uri() -> None:
    assert parts_of("irscope:///r-1/0/0/x.py")[1] == ("0/0/x",)
    assert parts_of("irscope:/r-1/0%2F0/x.py")[1] == ("0/0/x",)


def test_a_stage_whose_name_looks_like_an_extension() -> None:
    assert parts_of("irscope:/r/0/0/x.pyc.txt")[1] == ("0/0/x", "0/0/x.pyc")


@pytest.mark.parametrize("uri", ["file:///r/0/0/x.py", "irscope:/", "irscope:/r", "irscope:/r/stage-without-extension"])
def test_what_names_no_stage(uri: str) -> None:
    with pytest.raises(NoDocument):
        parts_of(uri)
