"""What nodes of a graph are called and coloured as, in the panel and in pictures."""

from __future__ import annotations

import pytest
from irscope.vocabulary.graph_looks import family_of, input_name, title_of


@pytest.mark.parametrize(
    ("operation", "title", "family"),
    [
        ("aten.addmm", "addmm", "matmul, convolution"),
        ("aten.add.Tensor", "add", "pointwise and others"),
        ("torch._C._nn.linear", "linear", "matmul, convolution"),
        ("aten._softmax", "_softmax", "normalization, reduction"),
        ("operator.getitem", "getitem", "view, layout"),
        ("flash_attention", "flash_attention", "attention"),
        ("aten.embedding", "embedding", "indexing, random"),
        ("aten.t", "t", "view, layout"),
        ("aten.tanh", "tanh", "pointwise and others"),
    ],
)
def test_titles_and_families_of_operations(operation: str, title: str, family: str) -> None:
    found = family_of("call", "n", operation)
    assert (title_of(operation), found and found.name) == (title, family)


def test_families_of_what_is_not_an_operation() -> None:
    kinds = [("placeholder", "x"), ("placeholder", "l_self_parameters_w_"), ("get_attr", "c"), ("output", "output")]
    found = [family_of(kind, name, "") for kind, name in kinds]
    assert [each and each.name for each in found] == ["input", "parameter, constant", "parameter, constant", None]
    assert input_name("l_self_modules_0_parameters_weight_") == "weight"
