"""The calls of a collective that PyTorch's runtime issues, counted and timed."""

from __future__ import annotations

from typing import Any

Row = list[Any]
"""``[issuer, operation, module, peer, bytes, file, line, calls, calls beside, nanoseconds beside, nanoseconds on the
device]``: bytes that the rank gives into one call, -1 if they are not known; calls after which the rank went on, and for how
long until it waited, both -1 if that is not known; what these calls took on the device, -1 if it has not timed them."""


class Calls:
    """All calls of one collective from one line."""

    def __init__(self) -> None:
        self.calls = self.beside = self.beside_ns = 0
        self.timed = self.device_ns = self.waited_ns = 0

    def went_on(self, passed: int) -> None:
        """By the clock of the host."""
        self.beside += 1
        self.beside_ns += passed

    def took(self, passed: int) -> None:
        """A call on the device."""
        self.timed += 1
        self.device_ns += passed

    def waited(self, passed: int) -> None:
        """The device's stream of computations, for a call."""
        self.waited_ns += passed

    def is_not_known(self) -> None:
        """Whether the rank went on."""
        self.beside = self.beside_ns = -1

    def row(self) -> list[int]:
        """As the end of a `Row`."""
        if not self.timed:
            return [self.calls, self.beside, self.beside_ns, -1]
        return [self.calls, self.timed, max(0, self.device_ns - self.waited_ns), self.device_ns]
