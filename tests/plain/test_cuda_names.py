"""Where a program names CUDA."""

from __future__ import annotations

import ast

import pytest
from irscope.usercode.cuda_names import OnCpu, names_cuda


@pytest.mark.parametrize(
    ("written", "wanted"),
    [
        ("x.to('cuda')", "x.to('cpu')"),
        ("x.to('cuda:1')", "x.to('cpu')"),
        ("x.to(f'cuda:{rank}')", "x.to('cpu')"),
        ("device = 'cuda' if ok else 'cpu'", "device = 'cpu' if ok else 'cpu'"),
        ("f(device='cuda')", "f(device='cpu')"),
        ("print('cuda is here', f'cuda:{a}{b}', b'cuda')", "print('cuda is here', f'cuda:{a}{b}', b'cuda')"),
        ("torch.cuda.is_available()", "torch.cuda.is_available()"),
    ],
)
def test_devices_are_renamed_and_nothing_else_is(written: str, wanted: str) -> None:
    tree, change = ast.parse("\n" + written), OnCpu()
    assert ast.unparse(change.visit(tree)) == wanted
    assert change.lines == ([2] if written != wanted else [])


def test_a_call_that_moves_names_it_too() -> None:
    change = OnCpu()
    assert ast.unparse(change.visit(ast.parse("model.cuda().half()\nx.cuda"))) == "model.cuda().half()\nx.cuda"
    assert change.lines == [1]


def test_names_of_devices() -> None:
    assert all(map(names_cuda, ("cuda", "cuda:0", "cuda:12")))
    assert not any(map(names_cuda, ("cuda_", "cudagraphs", "xcuda", "", 1, None)))
