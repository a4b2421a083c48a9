"""In which module a node of a graph is drawn."""

from __future__ import annotations

import pytest
from irscope.ir.modules import Path, PlacedNodes, called_module, has_both_ways, homes, split_module

Described = tuple[str, str, str, str]
"""Name, kind (``call``: the user's own; ``made``: by a pass), module or nothing, and what it uses."""


def placed(*nodes: Described, backward: str = "", dtype: str = "f32") -> PlacedNodes:
    number = {name: at for at, (name, *_) in enumerate(nodes)}
    return PlacedNodes(
        [name for name, *_ in nodes],
        ["call" if kind == "made" else kind for _, kind, *_ in nodes],
        [dtype] * len(nodes),
        [tuple(module.split(".")) if module else None for _, _, module, _ in nodes],
        [kind == "made" for _, kind, *_ in nodes],
        [name in backward.split() for name, *_ in nodes],
        [(number[used], at) for at, (*_, inputs) in enumerate(nodes) for used in inputs.split()],
    )


def home_of(nodes: PlacedNodes) -> dict[str, str | None]:
    found = homes(nodes)
    return {
        name: None if home is None else ".".join(home)
        for name, home, own in zip(nodes.names, found, nodes.modules, strict=True)
        if own is None
    }


BLOCK: tuple[Described, ...] = (
    ("x", "placeholder", "", ""),
    ("norm1", "call", "self.norm1", "x"),
    ("attn", "call", "self.attn.out", "norm1"),
    ("add", "call", "", "x attn"),
    ("norm2", "call", "self.norm2", "add"),
    ("moe", "call", "self.moe", "norm2"),
    ("last", "call", "", "add moe"),
    ("output", "output", "", "last"),
)


def test_an_operation_of_no_module_between_two_of_one_module_is_drawn_in_it() -> None:
    """Drawn outside, `self` would be both above and below it, and `norm2` would seem not to depend on `attn`."""
    assert home_of(placed(*BLOCK)) == {"x": None, "add": "self", "last": None, "output": None}


def test_a_chain_of_them_is_drawn_there_as_a_whole() -> None:
    nodes = placed(
        ("a", "call", "net.0", ""),
        ("one", "call", "", "a"),
        ("two", "call", "", "one"),
        ("b", "call", "net.1.inner", "two"),
    )
    assert home_of(nodes) == {"one": "net", "two": "net"}


def test_between_different_models_it_is_drawn_outside() -> None:
    nodes = placed(("a", "call", "one", ""), ("mine", "call", "", "a"), ("b", "call", "other", "mine"))
    assert home_of(nodes) == {"mine": None}


def test_the_innermost_module_counts_that_is_before_and_after() -> None:
    """Some of what it uses is deeper in another module, which is not after it."""
    nodes = placed(
        ("a", "call", "net.enc.0.deep.deeper", ""),
        ("b", "call", "net.dec.x", ""),
        ("mine", "call", "", "a b"),
        ("c", "call", "net.dec.y", "mine"),
    )
    assert home_of(nodes) == {"mine": "net.dec"}


def test_what_a_pass_made_is_drawn_with_its_neighbours() -> None:
    nodes = placed(
        ("a", "call", "net.0", ""),
        ("after", "made", "", "a"),
        ("b", "call", "net.1", ""),
        ("both", "made", "", "a b"),
        ("alone", "made", "", ""),
        ("before", "made", "", ""),
        ("c", "call", "other", "before"),
    )
    assert home_of(nodes) == {"after": "net.0", "both": "net", "alone": None, "before": "other"}


def test_parameters_are_drawn_where_they_are_used() -> None:
    nodes = placed(
        ("l_self_modules_a_parameters_weight_", "placeholder", "", ""),
        ("_tensor_constant0", "get_attr", "", ""),
        ("x", "placeholder", "", ""),
        ("unused_parameters_w_", "placeholder", "", ""),
        ("a", "call", "net.a", "l_self_modules_a_parameters_weight_ _tensor_constant0 x"),
        ("b", "call", "net.b", "_tensor_constant0"),
    )
    assert home_of(nodes) == {
        "l_self_modules_a_parameters_weight_": "net.a",
        "_tensor_constant0": "net",
        "x": None,
        "unused_parameters_w_": None,
    }


@pytest.mark.parametrize(("count", "dtype", "home"), [(12, "f32", None), (13, "f32", "net"), (13, "i64", None)])
def test_many_inputs_are_drawn_where_they_are_used(count: int, dtype: str, home: str | None) -> None:
    inputs: list[Described] = [(f"primals_{number}", "placeholder", "", "") for number in range(count)]
    nodes = placed(*inputs, ("a", "call", "net", " ".join(name for name, *_ in inputs)), dtype=dtype)
    assert home_of(nodes)["primals_3"] == home


def test_the_backward_does_not_move_the_forward() -> None:
    """A saved value is used in the backward of the same module, which is drawn apart."""
    nodes = placed(
        ("w_parameters_0", "placeholder", "", ""),
        ("a", "call", "net", "w_parameters_0"),
        ("mine", "call", "", "a"),
        ("a_back", "call", "net.x", "mine w_parameters_0"),
        backward="a_back",
    )
    assert has_both_ways(nodes)
    assert home_of(nodes) == {"w_parameters_0": "net", "mine": None}


def test_an_input_that_only_the_backward_uses_is_of_its_modules() -> None:
    nodes = placed(
        ("w_parameters_0", "placeholder", "", ""),
        ("f", "call", "net", ""),
        ("a", "call", "net.a", "w_parameters_0"),
        ("b", "call", "other", "w_parameters_0"),
        backward="a b",
    )
    assert home_of(nodes) == {"w_parameters_0": ""}, "in no common module, but in the backward"


@pytest.mark.parametrize(
    ("printed", "path"),
    [
        ("L['self'].layers[0].norm", ("self", "layers", "0", "norm")),
        ("G['model'].encoder._modules.layer", ("model", "encoder", "layer")),
        ("L['self']._modules['a.b'].c", ("self", "a.b", "c")),
        ("L['args'][0].model.layers[1]", ("self", "model", "layers", "1")),
        ("plain", ("plain",)),
        ("", ("",)),
        ("L['self']" + ".a" * 5000, ("self", *["a"] * 99)),
        ("x" + "[0]" * 5000, ("x", *["0"] * 99)),
    ],
)
def test_the_names_of_a_module(printed: str, path: Path) -> None:
    assert split_module(printed, "M") == (path, "M")


def test_each_call_of_a_module_is_drawn_apart() -> None:
    """In one box, `norm` would be before and after the layers, and these would be side by side."""
    nodes = placed(
        ("first", "call", "net.norm", ""),
        ("one", "call", "net.layers.0", "first"),
        ("sum", "call", "net", "one first"),
        ("second", "call", "net.norm", "sum"),
        ("two", "call", "net.layers.1", "second"),
        ("beside", "call", "net.side", "first"),
        ("apart", "call", "net.other", "first"),
        ("more", "call", "net.side", "beside"),
    )
    found = [".".join(path or ()) for path in homes(nodes)]
    assert found[:5] == ["net.norm", "net.layers.0", "net", "net.norm@1", "net.layers@1.1"]
    assert found[5:] == ["net.side", "net.other", "net.side"], "what is not called again stays one"
    assert called_module(("net", "layers@1", "1")) == ("net", "layers", "1")
