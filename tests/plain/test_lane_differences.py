"""What a graph in the fast lane says of a full run."""

from __future__ import annotations

import operator
import sys
from types import SimpleNamespace

import pytest
from irscope.internals import lane_differences

OPERATOR = SimpleNamespace(namespace="own")
OVERLOADS = SimpleNamespace(_qualified_op_name="own::twice")
PYTORCHS = SimpleNamespace(_qualified_op_name="aten::sin")


@pytest.mark.parametrize(
    ("target", "device", "said"),
    [
        (OPERATOR, "cpu", ["a custom operator"]),
        (OVERLOADS, "cpu", ["a custom operator"]),
        (PYTORCHS, "cpu", []),
        ("sin", "cuda", ["a GPU that this machine does not have"]),
    ],
)
def test_what_inductor_may_fail_on_is_said(
    target: object, device: str, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    cuda = SimpleNamespace(is_available=lambda: False)
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(SymInt=(), cuda=cuda))
    reasons: list[str] = []
    monkeypatch.setattr(lane_differences, "_say", reasons.append)
    graph = SimpleNamespace(graph=SimpleNamespace(nodes=[SimpleNamespace(target=target, meta={})]))
    given = SimpleNamespace(device=SimpleNamespace(type=device))
    lane_differences.report_what_inductor_shows(graph, [given], has_cuda_graphs=False)
    assert len(reasons) == len(said)
    assert all(part in reason for part, reason in zip(said, reasons, strict=True))


MASK, LONG, VALUES = (SimpleNamespace(meta={"example_value": SimpleNamespace(dtype=dtype)}) for dtype in "blf")


@pytest.mark.parametrize(
    ("target", "args", "kwargs", "taken"),
    [
        (operator.setitem, ("x", MASK, VALUES), {}, True),
        (operator.setitem, ("x", (0, MASK), VALUES), {}, True),
        (operator.setitem, ("x", (0, LONG), VALUES), {}, False),
        (operator.setitem, ("x", MASK, 0.0), {}, False),
        ("index_put_", ("x", (MASK,), VALUES), {}, True),
        (SimpleNamespace(__name__="index_put"), ("x",), {"indices": (MASK,), "values": VALUES}, True),
        (operator.getitem, ("x", MASK), {}, False),
    ],
)
def test_aot_autograd_takes_what_writes_by_a_mask(
    target: object, args: tuple[object, ...], kwargs: dict[str, object], taken: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    nn, fakes = SimpleNamespace(Parameter=int), SimpleNamespace(FakeTensor=int)
    torch = SimpleNamespace(nn=nn, _subclasses=fakes, Tensor=int, SymFloat=(), bool="b")
    monkeypatch.setitem(sys.modules, "torch", torch)
    node = SimpleNamespace(target=target, args=args, kwargs=kwargs, meta={})
    graph = SimpleNamespace(graph=SimpleNamespace(nodes=[node]))
    assert lane_differences.takes_aot(graph, [], always=False) is taken
