"""Kernels in a list are headed by their module; layers that repeat have one heading."""

from __future__ import annotations

from irscope.protocol import Kernel
from irscope.provenance.kernel_groups import groups_of


def kernel(name: str, module: str = "", module_class: str = "") -> Kernel:
    return Kernel(name, "triton", "0/0", f"0/0/kernel/{name}", (), module=module, module_class=module_class)


def test_what_was_compiled_heads_the_kernels_outside_of_its_modules() -> None:
    kernels = [
        kernel("norm", "model.layers.0.norm", "Norm"),
        kernel("loss"),
        kernel("norm_1", "model.layers.1.norm", "Norm"),
        kernel("whole", "", "Net"),
    ]
    groups = [
        (group.title, group.module_class, [each.name for each in group.kernels])
        for group in groups_of(kernels, {"0/0": "step"})
    ]
    assert groups == [
        ("model.layers.0–1.norm ×2", "Norm", ["norm", "norm_1"]),
        ("step", "", ["loss"]),
        ("Net", "Net", ["whole"]),
    ]
