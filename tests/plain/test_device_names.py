"""The names under which PyTorch reports a device, and those of its relatives, which have other peaks."""

from __future__ import annotations

import pytest
from irscope.ir.roofline import TARGETS, peaks_of


@pytest.mark.parametrize(
    ("reported", "target"),
    [
        ("NVIDIA A100-SXM4-80GB", "a100"),
        ("NVIDIA H100 80GB HBM3", "h100"),
        ("NVIDIA H200", "h200"),
        ("AMD Instinct MI300X", "mi300x"),
        ("AMD Instinct MI300X VF", "mi300x"),  # in a virtual machine
        ("NVIDIA A100-SXM4-40GB", ""),
        ("NVIDIA A100 80GB PCIe", ""),
        ("NVIDIA H100 PCIe", ""),
        ("NVIDIA H200 NVL", ""),
        ("NVIDIA H20", ""),
        ("AMD Instinct MI300A", ""),
        ("", ""),
    ],
)
def test_names(reported: str, target: str) -> None:
    assert peaks_of(reported) == TARGETS.get(target)
