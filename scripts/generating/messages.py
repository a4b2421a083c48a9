"""Which Python types the extension gets, in which files and under which names."""

from __future__ import annotations

from typing import Literal

from irscope.protocol import Lane
from irscope.vocabulary.settings import SETTINGS
from irscope.vocabulary.stages import Part, Role
from irscope_server.base import results
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
        "RunItem": results.RunItem,
        "RunTree": results.RunTree,
        "CaptureGap": results.Gap,
        "CompileItem": results.CompileItem,
        "Role": Role,
        "Part": Part,
        "StageItem": results.StageItem,
        "CompileStageItem": results.StageOfCompile,
        "Place": results.Place,
        "KernelItem": results.KernelItem,
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
        "WorkerState": results.WorkerState,
        "RunsChanged": results.RunsChanged,
        "ScriptOutput": results.Output,
        "Changed": results.Changed,
        "FileState": results.FileState,
        "EntryCandidate": results.EntryCandidate,
        "Entries": results.EntriesResult,
        "RunResult": results.RunResult,
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
