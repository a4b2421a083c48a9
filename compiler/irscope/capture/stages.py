"""The texts of stages that the trace's records carry, and those that Dynamo's own records are."""

from __future__ import annotations

from irscope.events.trace import Record
from irscope.pipelines import dynamo_stages

DYNAMO_EVENTS = {
    "dynamo_output_graph": dynamo_stages.DYNAMO_GRAPH,
    "optimize_ddp_split_graph": dynamo_stages.BUCKET_SPLITS,
    "dynamo_cpp_guards_str": dynamo_stages.GUARDS,
}
"""By event the stage whose text its record carries."""


def clean(record: Record) -> str:
    """A stage's text without what the trace puts around it."""
    text = record.payload.strip("\n")
    head, mark, _ = text.rpartition("\n # graph id:")
    return (head.rstrip() if mark else text) + "\n"
