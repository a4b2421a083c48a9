"""What a kernel wrote, beside what the graph's nodes compute in eager mode and in float64."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from irscope.ir.launches import accesses_of
from irscope.values.check.measuring import measure
from irscope.values.kernel.eager import EagerGraph
from irscope.values.kernel.given import Given
from irscope.values.kernel.memory import Region
from irscope.values.run.statistics import plain

_ROUNDING = {"float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}


class Compared(Given):
    """A launch whose results are compared."""

    def _compared(self, arguments: Mapping[str, Any], regions: Sequence[Region]) -> list[dict[str, Any]]:
        by_argument = {region.argument: region for region in regions}
        found = []
        for name, tensor in self._tensors.items():
            region = by_argument.get(name)
            if region is None or not region.stored.any() or not math.prod(tensor["shape"]):
                continue
            if tensor["name"] in self._request.get("partial", ()):
                continue
            node = self._request.get("copied", {}).get(tensor["name"]) or self._nodes.get(tensor["name"], "")
            stored = self._torch.from_numpy(self._touched(region.stored, tensor).copy())
            row = {"parameter": name, "buffer": tensor["name"], "node": node, "elements": int(stored.sum()), "of": math.prod(tensor["shape"]), "measure": None, "why": ""}  # fmt: skip
            try:
                row["measure"] = self._measured(node, arguments[name], stored)
            except LookupError as error:
                row["why"] = str(error.args[0] if error.args else error)
            found.append(row)
        return found

    def _check_comparable(self, node: str) -> None:
        """Raises LookupError if eager mode has no counterpart of what the kernel computes from what it got."""
        if "script" in self._request:
            raise LookupError("nothing in eager mode is its counterpart; it was checked only")
        if not node or node not in self._graph.names:
            raise LookupError("no node of the graph is known for it")
        read = accesses_of(self._request["text"]).read
        for given in self._inputs:
            if given["value"] == "made" and given["node"] not in self._graph.names and given["parameter"] in read:
                buffer = given["buffer"]
                raise LookupError(
                    f"{buffer}, which the kernel reads, is not a node of the graph, so its value was made"
                )

    def _measured(self, node: str, computed: Any, stored: Any) -> dict[str, Any]:
        self._check_comparable(node)
        eager = self._graph.value(node)
        if why := self._graph.made.get(node):
            raise LookupError(f"{node} cannot be computed in eager mode: {why}")
        # From what the kernel read on, so that only its own errors count.
        start = {name: value for name, value in {**self._values, **self._values_above}.items() if name != node or name in self._graph.inputs}  # fmt: skip
        wide = EagerGraph(self._request["graph"], start, is_wide=True)
        dtype = str(eager.dtype).removeprefix("torch.")
        noisy = EagerGraph(self._request["graph"], start, is_wide=True, noise=_ROUNDING.get(dtype, 0.0))
        wide.symbols.update(self._graph.symbols)
        noisy.symbols.update(self._graph.symbols)
        exact, disturbed = wide.value(node), noisy.value(node)
        if any(name not in self._graph.made for name in wide.made):
            exact, disturbed = eager, eager  # an operator without a float64 form
        if computed.numel() != eager.numel():
            raise LookupError(f"{node} has another shape than the buffer: {list(eager.shape)}")
        shape = eager.shape
        own = self._torch.where(stored.reshape(shape), computed.reshape(shape).to(eager.dtype), eager)
        found = measure(own, eager, exact.reshape(shape), disturbed.reshape(shape))
        if found is None:
            raise LookupError("the two cannot be compared")
        difference = (own.double() - eager.double()).abs()
        return {**found.data(), "differs": found.differs, "to_eager": plain(float(difference[difference.isfinite()].max())) if difference.isfinite().any() else None}  # fmt: skip
