"""What the partitioner of AOTAutograd keeps for the backward, and what the backward computes again.

The data of the stage ``partition``: ``saved`` and ``recomputed``, each a list of ``{"name", "target", "bytes"}`` (of
the joint graph's nodes; bytes of the result, null if a size has no hint), ``kind`` in ``saved`` (``input``: an input
of the forward, which is alive anyway; ``activation``: made by the forward and kept; ``symbol``: a size), ``tangents``
(names of what comes in from later ones), and ``bytes``: ``{"inputs", "activations", "recomputed"}``.
"""

from __future__ import annotations

from typing import Any

from irscope.ir.nodes import NodeFacts, facts_of


def partition_of(forward: dict[str, Any], backward: dict[str, Any]) -> dict[str, Any]:
    """The data of the stage from those of the two graphs.

    Nodes keep their names when a joint graph is cut in two: an input of the backward that the forward has as a node
    was saved, and an operation of the backward that the forward has as well is done twice.
    """
    made = {node.name: node for node in facts_of(forward)}
    again = facts_of(backward)
    saved, recomputed, tangents = [], [], []
    for node in again:
        if node.op == "placeholder" and node.name not in made:
            tangents.append(node.name)
        elif node.op == "placeholder":
            saved.append({**_entry(made[node.name]), "kind": _kind(made[node.name])})
        elif node.op.startswith("call_") and node.name in made and made[node.name].target == node.target:
            recomputed.append(_entry(node))
    return {
        "saved": saved,
        "recomputed": recomputed,
        "tangents": tangents,
        "bytes": {
            "inputs": _sum(entry for entry in saved if entry["kind"] == "input"),
            "activations": _sum(entry for entry in saved if entry["kind"] == "activation"),
            "recomputed": _sum(recomputed),
        },
    }


def _entry(node: NodeFacts) -> dict[str, Any]:
    return {"name": node.name, "target": node.target, "bytes": node.value.bytes}


def _kind(node: NodeFacts) -> str:
    if node.value.kind == "symbol":
        return "symbol"
    return "input" if node.op == "placeholder" else "activation"


def _sum(entries: Any) -> int:
    return sum(entry["bytes"] or 0 for entry in entries)


def stage_text(data: dict[str, Any]) -> str:
    """The stage ``partition`` for people."""
    sizes = data["bytes"]
    lines = [
        f"# saved for the backward: {sizes['activations']:,} bytes of activations, {sizes['inputs']:,} bytes of inputs",
    ]
    lines += [_line(entry, entry["kind"]) for entry in sorted(data["saved"], key=lambda e: -(e["bytes"] or 0))]
    lines += ["", f"# computed again in the backward: {sizes['recomputed']:,} bytes that need not be saved"]
    lines += [_line(entry, "") for entry in data["recomputed"]]
    lines += ["", f"# tangents: {', '.join(data['tangents']) or 'none'}"]
    return "\n".join(lines) + "\n"


def _line(entry: dict[str, Any], kind: str) -> str:
    size = "?" if entry["bytes"] is None else f"{entry['bytes']:,}"
    return f"{size:>14}  {kind:10}  {entry['name']}  {entry['target']}".rstrip()
