"""The kinds of stages that every pipeline after Dynamo shares."""

from __future__ import annotations

from irscope.vocabulary.stages import GUARDS_LANGUAGE, OTHER_GROUP, Part, Role, StageGroup, StageKind

DYNAMO = StageGroup("Dynamo")

BYTECODE = StageKind("bytecode", "Bytecode", "python-bytecode", Role.SOURCE, 0, part=Part.SHARED, group=DYNAMO)
SYMBOLIC_TRACE = StageKind(
    "symbolic-trace", "Symbolic trace", "plaintext", Role.TRACE, aside="dynamo-graph", part=Part.SHARED, group=DYNAMO
)
DYNAMO_GRAPH = StageKind(
    "dynamo-graph",
    "Dynamo graph",
    "python",
    Role.GRAPH,
    1,
    part=Part.SHARED,
    group=DYNAMO,
    names="dynamo",
    phases=("bytecode_tracing",),
    is_captured=True,
    is_compared=True,
)
BUCKET_SPLITS = StageKind(
    "bucket-splits",
    "Graph as DDP's buckets split it",
    "python",
    Role.SPLITS,
    aside="dynamo-graph",
    short="Bucket splits",
    part=Part.SHARED,
    group=DYNAMO,
)
GUARDS = StageKind(
    "guards", "Guards", GUARDS_LANGUAGE, Role.GUARDS, aside="dynamo-graph", part=Part.SHARED, group=DYNAMO
)
SYMBOLS = StageKind(
    "symbols", "Symbols", "plaintext", Role.SYMBOLS, aside="dynamo-graph", part=Part.SHARED, group=DYNAMO
)
MODIFIED_BYTECODE = StageKind(
    "modified-bytecode",
    "Bytecode as Dynamo rewrote it",
    "python-bytecode",
    Role.REWRITTEN,
    aside="dynamo-graph",
    part=Part.SHARED,
    group=DYNAMO,
)
REPRODUCER = StageKind(
    "reproducer",
    "Script that fails by itself",
    "python",
    Role.FACTS,
    aside="dynamo-graph",
    short="Reproducer",
    part=Part.SHARED,
    group=OTHER_GROUP,
)
"""Of a failed compile alone."""
PHASES = StageKind(
    "phases", "Compile time by phase", "plaintext", Role.PHASES, aside="bytecode", part=Part.SHARED, group=OTHER_GROUP
)

FIRST = (BYTECODE, SYMBOLIC_TRACE, DYNAMO_GRAPH, BUCKET_SPLITS, GUARDS, SYMBOLS, MODIFIED_BYTECODE, REPRODUCER)
"""In the order of the pipeline; `PHASES` comes last of all stages."""
