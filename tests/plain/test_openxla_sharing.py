"""Fusions that are equal to XLA have one kernel, whose lines are those of all of them."""

from __future__ import annotations

from irscope.ir.hlo import parse_hlo
from irscope.pipeline_captures.openxla.shown import _sharing

HLO = """\
HloModule jit_f

%fused.a (p.1: f32[4]) -> f32[4] {
  %p.1 = f32[4]{0} parameter(0)
  %c.1 = f32[] constant(2)
  %b.1 = f32[4]{0} broadcast(%c.1), dimensions={}
  ROOT %m.1 = f32[4]{0} multiply(%p.1, %b.1), metadata={op_name="jit(f)/mul~net.py:3/mul"}
}

%fused.b (p.2: f32[4]) -> f32[4] {
  %p.2 = f32[4]{0} parameter(0)
  %c.2 = f32[] constant(2)
  %b.2 = f32[4]{0} broadcast(%c.2), dimensions={}
  ROOT %m.2 = f32[4]{0} multiply(%p.2, %b.2), metadata={op_name="jit(f)/mul~net.py:4/mul"}
}

%fused.c (p.3: f32[4]) -> f32[4] {
  %p.3 = f32[4]{0} parameter(0)
  %c.3 = f32[] constant(3)
  %b.3 = f32[4]{0} broadcast(%c.3), dimensions={}
  ROOT %m.3 = f32[4]{0} multiply(%p.3, %b.3), metadata={op_name="jit(f)/mul~net.py:5/mul"}
}

ENTRY %main (x: f32[4]) -> f32[4] {
  %x = f32[4]{0} parameter(0)
  %first = f32[4]{0} fusion(%x), kind=kLoop, calls=%fused.a
  %second = f32[4]{0} fusion(%first), kind=kLoop, calls=%fused.b
  ROOT %third = f32[4]{0} fusion(%second), kind=kLoop, calls=%fused.c
}
"""


def test_an_equal_fusion_without_a_kernel_has_that_of_the_one_before() -> None:
    module = parse_hlo(HLO)
    by_name = {one.name: one for one in module.computations[module.entry]}
    shared = _sharing(module, [by_name["first"]])
    assert {name: [one.name for one in each] for name, each in shared.items()} == {"first": ["second"]}
    assert _sharing(module, [by_name["first"], by_name["second"]]) == {}
