"""Loop bodies that have grown far beyond the graph that they come from."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace

from irscope.events.trace import Record
from irscope.findings.kinds.inlined_expression import Body, bodies_of, detect
from irscope.findings.moment import look
from irscope.protocol import Origin

A, B = Origin("/home/me/model.py", 8), Origin("/home/me/model.py", 9)


def found(*bodies: Body) -> list[tuple[int, str]]:
    moment = look(Record("fused", {}, "0/0", 0, ""), None)
    return [(finding.range.start.line, finding.message) for finding in detect(moment, bodies)]


def test_the_largest_that_has_grown_is_at_the_line_of_most_of_it() -> None:
    small, large = Body(1000, 50, (A,)), Body(2859, 32, (A, B, B))
    (finding,) = found(small, large)
    assert finding[0] == 9 and "32 operations of the graph become 2,859 in one kernel" in finding[1]


def test_a_kernel_of_many_nodes_has_not_grown() -> None:
    assert found(Body(1000, 51, (A,)), Body(5000, 400, (A, B))) == []


def test_one_of_no_line_is_not_reported() -> None:
    assert found(Body(5000, 2, ())) == []


def test_bodies_of_a_schedule() -> None:
    def part(operations: int) -> SimpleNamespace:
        node = SimpleNamespace(meta={"stack_trace": f'  File "{__file__}", line 7, in f\n    y = x + 1'})
        body = SimpleNamespace(op_counts=Counter(load=operations - 1, store=1))
        return SimpleNamespace(_body=body, node=SimpleNamespace(origins=[node]))

    extern = SimpleNamespace(node=SimpleNamespace(origins=[]))
    nodes = [SimpleNamespace(get_nodes=lambda: [part(1000), part(999), extern])]
    assert bodies_of(SimpleNamespace(nodes=nodes, reasons={})) == [Body(1000, 1, (Origin(__file__, 7),))]
    assert bodies_of(SimpleNamespace(nodes=None, reasons={})) == []
