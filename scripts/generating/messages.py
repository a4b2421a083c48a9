"""Which Python types the extension gets, in which files and under which names."""

from __future__ import annotations

from typing import Literal

from irscope.protocol import Lane
from irscope.vocabulary.settings import SETTINGS
from irscope.vocabulary.stages import Part, Role
from irscope_server.base import wire
from irscope_server.graph import answers as graph
from irscope_server.panels import answers, changes, findings, memory, passes, pipeline, places, subjects, times

from generating.typescript import Module

PROTOCOL = Module(
    "extension/src/protocol.ts",
    "The messages of docs/PROTOCOL.md, as the client uses them: only types, for the panels too. Positions are LSP's: "
    "0-based lines, UTF-16 columns.",
    {
        "Lane": Lane,
        "OnSave": Literal[tuple(SETTINGS["run.onSave"].choices)],
        "RunItem": wire.RunItem,
        "RunTree": wire.RunTree,
        "CaptureGap": wire.Gap,
        "CompileItem": wire.CompileItem,
        "Role": Role,
        "Part": Part,
        "StageItem": wire.StageItem,
        "CompileStageItem": wire.StageOfCompile,
        "Place": wire.Place,
        "KernelItem": wire.KernelItem,
        "GraphHead": graph.GraphHead,
        "Graph": (graph.GraphHead, graph.GraphColumns),
        "NodeColumns": graph.NodeColumns,
        "GraphModule": graph.GraphModule,
        "FusedNode": graph.FusedNode,
        "GraphColumns": graph.GraphColumns,
        "FusionDecision": graph.FusionDecision,
        "GraphVersion": graph.GraphVersion,
        "KernelCall": graph.KernelCall,
        "GraphKernels": graph.GraphKernels,
        "WorkerState": wire.WorkerState,
        "RunsChanged": wire.RunsChanged,
        "ScriptOutput": wire.Output,
        "Changed": wire.Changed,
        "FileState": wire.FileState,
        "EntryCandidate": wire.EntryCandidate,
        "Entries": wire.EntriesResult,
        "RunResult": wire.RunResult,
        "KernelsAt": wire.KernelsResult,
        "StagesOf": wire.StagesResult,
        "RegionKind": wire.RegionKind,
        "Region": wire.Region,
        "RegionsOf": wire.RegionsResult,
        "LineKey": wire.LineKey,
        "LinkedLines": wire.LinkedLinesResult,
        "LinesOf": wire.LinesOf,
        "Counterparts": wire.CounterpartsResult,
    },
)
PANELS = Module(
    "extension/src/panels/results.ts",
    "What the server answers to the panels' requests; see docs/PROTOCOL.md. Lines are 0-based, times are seconds.",
    {
        "SubjectOf": subjects.SubjectOfResult,
        "CompileChoice": answers.CompileChoice,
        "Pipeline": pipeline.PipelineResult,
        "Track": pipeline.Track,
        "PipelineStage": pipeline.PipelineStage,
        "StageEntry": pipeline.Entry,
        "OpCount": pipeline.OpCount,
        "KernelCount": pipeline.KernelCount,
        "PassItem": passes.PassItem,
        "QuietPass": passes.QuietPass,
        "Step": places.StepResult,
        "Findings": findings.FindingsResult,
        "FindingGroup": findings.FindingGroup,
        "FindingPlace": findings.FindingPlace,
        "Phases": times.PhasesResult,
        "PhaseRow": times.Row,
        "CompileTimes": times.CompileTimes,
        "Memory": memory.MemoryResult,
        "MemoryPlan": memory.MemoryPlan,
        "Category": memory.Category,
        "MemoryBuffer": memory.MemoryBuffer,
        "Changes": changes.ChangesResult,
        "ChangedFinding": changes.ChangedFinding,
        "ChangedCompile": changes.ChangedCompile,
        "ChangedStage": changes.ChangedStage,
        "ChangedKernel": changes.ChangedKernel,
    },
)
MODULES = (PROTOCOL, PANELS)
