"""Which Python types the extension gets, in which files and under which names."""

from __future__ import annotations

from typing import Literal

from irscope.comparing.piece_matrix import PieceMatrix, PieceRow
from irscope.comparing.pipelines import Figure, Timing
from irscope.driver.availability import Availability, Status, Variant
from irscope.measures.tree import Measure
from irscope.protocol import CaptureGap, Lane
from irscope.vocabulary.settings import SETTINGS
from irscope.vocabulary.stages import Part, Role
from irscope_server.base import results
from irscope_server.graph import answers as graph

from generating import panels
from generating.typescript import Module

PROTOCOL = Module(
    "extension/src/protocol.ts",
    "The messages of docs/PROTOCOL.md, as the client uses them: only types, for the panels too. Positions are LSP's: "
    "0-based lines, UTF-16 columns.",
    {
        "Lane": Lane,
        "OnSave": Literal[tuple(SETTINGS["run.onSave"].choices)],
        "RunItem": results.RunItem,
        "PipelineStatus": Status,
        "PipelineVariant": Variant,
        "PipelineItem": Availability,
        "Pipelines": results.PipelinesResult,
        "RunTree": results.RunTree,
        "CaptureGap": CaptureGap,
        "CompileItem": results.CompileItem,
        "Role": Role,
        "Part": Part,
        "StageItem": results.StageItem,
        "CompileStageItem": results.StageOfCompile,
        "Place": results.Place,
        "Symbol": results.Symbol,
        "KernelItem": results.KernelItem,
        "KernelChoice": results.KernelChoice,
        "GraphHead": graph.GraphHead,
        "Graph": (graph.GraphHead, graph.GraphColumns),
        "NodeColumns": graph.NodeColumns,
        "GraphModule": graph.GraphModule,
        "FusedNode": graph.FusedNode,
        "GraphColumns": graph.GraphColumns,
        "FusionDecision": graph.FusionDecision,
        "Rate": graph.Rate,
        "EstimateTarget": graph.EstimateTarget,
        "GraphVersion": graph.GraphVersion,
        "KernelCall": graph.KernelCall,
        "GraphKernels": graph.GraphKernels,
        "WorkerState": results.WorkerState,
        "RunsChanged": results.RunsChanged,
        "ScriptOutput": results.Output,
        "Changed": results.Changed,
        "FileState": results.FileState,
        "EntryCandidate": results.EntryCandidate,
        "Entries": results.EntriesResult,
        "RunResult": results.RunResult,
        "CompareResult": results.CompareResult,
        "ProfileResult": results.ProfileResult,
        "ArtifactPlace": results.ArtifactPlace,
        "OpenTraceResult": results.OpenTraceResult,
        "KernelsAt": results.KernelsResult,
        "StagesOf": results.StagesResult,
        "RegionKind": results.RegionKind,
        "Region": results.Region,
        "RegionsOf": results.RegionsResult,
        "LineKey": results.LineKey,
        "LinkedLines": results.LinkedLinesResult,
        "LinesOf": results.LinesOf,
        "Counterparts": results.CounterpartsResult,
    },
)
PANELS = Module(
    "extension/src/panels/results.ts",
    "What the server answers to the panels' requests; see docs/PROTOCOL.md. Lines are 0-based, times are seconds.",
    {
        **panels.all_types(),
        "Figure": Figure,
        "Timing": Timing,
        "PieceRow": PieceRow,
        "PieceMatrix": PieceMatrix,
        "Measure": Measure,
    },
)
MODULES = (PROTOCOL, PANELS)


def panel_reference() -> str:
    """The requests of the panels, for docs/PROTOCOL.md; the types of their answers are in `PANELS`."""
    requests = ["\n".join(panels.request_lines(module)) for module in panels.modules() if hasattr(module, "REQUEST")]
    return "```ts\n" + "\n\n".join(requests) + "\n```"
