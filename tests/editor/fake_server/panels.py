"""Canned answers to the panels' requests: a training step, with names that are markup.

tests/protocol/lsp/test_panels.py holds their fields to docs/PROTOCOL.md.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

RUN = "20261120-101500-fake"
OLDER = "20261120-095900-fake"
EMPTY = "20261120-090000-fast"
"""A run of the fast lane, which has nothing of the way down."""
MARKUP = "<img src=x onerror=alert(1)>"
HERE = "file:///workspace/train.py"
REASON = "This run has no {}: it used the fast lane, or ended before this stage. Run the whole pipeline to see it."

Json = dict[str, Any]


def in_file(answer: Json, uri: str) -> Json:
    """An answer whose places are in another file."""
    moved: Json = json.loads(json.dumps(answer).replace(HERE, uri or HERE))
    return moved


def place(line: int) -> Json:
    return {"uri": HERE, "line": line}


def entry(path: str, title: str, size: int = 4200) -> Json:
    stage = path.rsplit(".", 1)[0]
    language = "cpp" if path.endswith(".cpp") else "python"
    return {"stage": stage, "title": title, "language": language, "bytes": size, "uri": f"irscope:/{RUN}/{path}"}


def pass_item(number: int, name: str, added: int, removed: int, changed: int) -> Json:
    home = f"0/0/joint-graph/{number:02}-{number}"
    before = f"irscope:/{RUN}/0/0/joint-graph/{number - 1:02}-{number - 1}.py" if number > 1 else None
    return {
        "name": name, "subgraph": "", "seconds": 0.033 * number, "added": added, "removed": removed, "changed": changed, "moved": False,
        "namesAdded": [f"add_{n}" for n in range(added)], "namesRemoved": [f"view_{n}" for n in range(removed)],
        "namesChanged": [MARKUP] if changed else [], "stage": home, "uri": f"irscope:/{RUN}/{home}.py",
        "before": before or f"irscope:/{RUN}/0/0/dynamo-graph.py",
    }  # fmt: skip


def role_of(name: str) -> str:
    """The role of a stage, as the server has it from the stage's kind."""
    roles = {
        "bytecode": "source",
        "guards": "guards",
        "output-code": "code",
        "kernel": "kernel",
        "autotuning": "tuning",
    }
    return roles.get(name, "schedule" if name.startswith("ir-") else "graph" if name.endswith("-graph") else "facts")


def stage(
    path: str, short: str, track: str, column: int, count: int, unit: str, seconds: float | None, **more: Any
) -> Json:
    name = path.split("/")[2].rsplit(".", 1)[0].removesuffix("-backward")
    title = f"{short} ({track})" if track == "backward" else short
    return {
        "stage": path.rsplit(".", 1)[0], "name": name, "role": role_of(name), "title": title, "short": short, "track": track, "column": column,
        "isGraph": name.endswith("-graph"), "bytes": 4200 * (column + 1), "count": count, "unit": unit, "seconds": seconds,
        "entries": [entry(path, title)], "beside": [], "ops": [], "symbols": [], "passes": [], "quiet": [], **more,
    }  # fmt: skip


OPS = [
    {"name": "torch.ops.aten.view.default", "count": 109, "line": 1},
    {"name": "torch.ops.aten._safe_softmax.default", "count": 2, "line": 2},
    {"name": f"torch.ops.mine.{MARKUP}", "count": 1, "line": 3},
]


def stages() -> list[Json]:
    passes = [
        pass_item(1, "remove_noop_ops", 0, 19, 17),
        pass_item(2, "constant_fold_uniform_value", 11, 11, 11),
        pass_item(3, MARKUP, 7, 2, 1),
    ]
    quiet = [{"name": f"pass_pattern_{n}", "seconds": 0.003, "count": 1} for n in range(12)]
    beside = [
        entry("0/0/guards.guards.txt", "Guards"),
        entry("0/0/modified-bytecode.pyc.txt", "Bytecode as Dynamo rewrote it"),
    ]
    found = [
        stage("0/0/bytecode.py", "Bytecode", "shared", 0, 37, "instructions", None),
        stage("0/0/dynamo-graph.py", "Dynamo graph", "shared", 1, 116, "nodes", 2.77, beside=beside, ops=OPS[:1]),
        stage("0/0/pre-grad-graph.py", "Pre-grad graph", "shared", 2, 116, "nodes", 0.017),
        stage("0/0/joint-graph.py", "Joint graph", "shared", 3, 703, "nodes", 2.7, passes=passes, quiet=quiet, ops=OPS),
    ]
    for track, end in (("forward", ""), ("backward", "-backward")):
        kernels = [entry(f"0/0/kernel{end}/cpp_fused_mul_relu_{n}.cpp", f"cpp_fused_mul_relu_{n}") for n in range(13)]
        found += [
            stage(f"0/0/{track}-graph.py", f"{track.capitalize()} graph", track, 4, 320, "nodes", None, ops=OPS),
            stage(f"0/0/post-grad-graph{end}.py", "Post-grad graph", track, 5, 320, "nodes", 0.5, quiet=quiet),
            stage(f"0/0/ir-pre-fusion{end}.py", "IR before fusion", track, 6, 98, "nodes", 1.49),
            stage(f"0/0/ir-post-fusion{end}.py", "IR after fusion", track, 7, 49, "nodes", 1.0),
            stage(f"0/0/output-code{end}.py", "Output code", track, 8, 35, "calls", 23.5),
            stage(
                f"0/0/kernel{end}/cpp_fused_mul_relu_0.cpp", "Kernels", track, 9, 13, "kernels", 32.0, entries=kernels
            ),
        ]
    return found


def compiles() -> list[Json]:
    facts = {"place": place(3), "outcome": "graph-break"}
    return [
        {"id": "0/0", "function": "loss_of", **facts, "graphOps": 70, "seconds": 64.4},
        {"id": "0/1", "function": MARKUP, **facts, "graphOps": 2, "seconds": 1.7},
    ]


OLD_AGE = "Older run: deep, 09:59. Newest: fast, 10:15."


def age(params: Any) -> Json:
    return {"text": "" if params["run"] == EMPTY else OLD_AGE}


def run_item(run: str, lane: str, started: float, findings: int) -> Json:
    return {
        "run": run, "script": "/workspace/train.py", "scriptUri": HERE, "lane": lane, "pipeline": "inductor", "started": started, "outcome": "completed", "message": "", "rank": None, "world": 0,
        "seconds": 74.1, "compiles": 2, "findings": findings, "kernels": 26,
    }  # fmt: skip


def subject_of(params: Json) -> Json:
    run = run_item(RUN, "deep", 1763633700, 4)
    uri: str = params["uri"]
    if uri.endswith("slow.py"):
        fast = run_item(EMPTY, "fast", 1763633000, 0)
        return {"run": fast, "deep": None, "compile": None, "stage": None}
    if not uri.startswith("irscope:") and not uri.endswith("train.py"):
        return {"run": None, "deep": None, "compile": None, "stage": None}
    path = uri.partition(f"{RUN}/")[2]
    known = [one for each in stages() for one in [*each["entries"], *each["passes"], *each["beside"]]]
    mine = next((one["stage"] for one in known if one["uri"].endswith(path)), None) if path else None
    return {"run": run, "deep": run, "compile": "0/0", "stage": mine}


def pipeline(params: Json) -> Json:
    kernels = [{"language": "cpp", "count": 26}, {"language": "extern", "count": 5}]
    if params["run"] == EMPTY:
        return {
            "run": EMPTY,
            "pipeline": "inductor",
            "compile": None,
            "compiles": [],
            "stages": [],
            "kernels": [],
            "reason": REASON.format("stages"),
            "end": None,
            "rank": "",
        }
    compile = params.get("compile", "0/0")
    found = stages() if compile == "0/0" else [one for one in stages() if one["track"] != "backward"][:5]
    return {
        "run": RUN,
        "pipeline": "inductor",
        "compile": compile,
        "compiles": compiles(),
        "stages": found,
        "kernels": kernels,
        "reason": "",
        "end": None,
        "rank": "",
    }


def step(params: Json) -> Json:
    """Always to the third line, of what is named or of the neighbour in the forward."""
    way = [one["stage"] for one in stages() if one["track"] != "backward"]
    target = params.get("target") or ""
    if not target:
        at = way.index(params["stage"]) + params["by"]
        if at < 0:
            return {"uri": HERE, "line": 4, "stage": None, "exact": True, "reason": "", "alike": False}
        if at >= len(way):
            return {
                "uri": None,
                "line": 0,
                "stage": None,
                "exact": False,
                "reason": "This is the last stage of this compile.",
                "alike": False,
            }
        target = way[at]
    uri = next(one["entries"][0]["uri"] for one in stages() if one["stage"] == target)
    return {"uri": uri, "line": 2, "stage": target, "exact": True, "reason": "", "alike": True}


STANDING = f"3 causes cost 55 of 66 s of compile time. First: {MARKUP} (train.py:3). A quick fix is offered there."


def findings(params: Json) -> Json:
    if params["run"] == EMPTY:
        return {
            "run": EMPTY,
            "pipeline": "inductor",
            "lane": "fast",
            "groups": [],
            "seconds": 0,
            "standing": "Nothing was compiled in this run.",
        }

    def at(line: int, code: str, seconds: float, hidden: str = "", fixes: int = 0) -> Json:
        return {
            "uri": HERE, "line": line, "code": code, "message": f"`loss_of` at {line}", "count": 1, "compiles": ["0/1"],
            "seconds": seconds, "graphs": 1 if seconds else 0, "fixes": fixes, "hidden": hidden, "ranks": "",
        }  # fmt: skip

    def group(kind: str, code: str, severity: str, message: str, places: list[Json], link: str | None = None) -> Json:
        return {
            "kind": kind, "code": code, "title": kind.replace("-", " ").capitalize(), "severity": severity, "message": message,
            "explanation": "Dynamo does not know how to trace it.", "hints": [{"text": f"Do not call `{MARKUP}`.", "said": "", "helps": None}], "link": link,
            "count": len(places), "seconds": sum(one["seconds"] for one in places), "costsEveryCall": kind == "recompile-limit", "graphs": sum(one["graphs"] for one in places),
            "fixes": sum(bool(one["fixes"]) for one in places), "places": places,
        }  # fmt: skip

    link = "https://example.org/gb0170.html"
    groups = [
        group("recompilation", "recompile-size", "information", "`loss_of` was compiled again.", [at(3, "def loss_of(x):", 47.9)]),
        group("graph-break", "GB0170", "warning", f"Graph break: {MARKUP}", [at(5, f"if {MARKUP}:", 5.8, fixes=2), at(6, "print(y)", 1.2, "ignored")], link),
        group("missed-fusion", "missed-fusion", "hint", "A kernel of its own.", [at(4, "y = x * 2", 0, "baseline")]),
        group("recompile-limit", "GB0039", "warning", "`loss_of` reached the recompile limit (8).", [at(3, "def loss_of(x):", 0)]),
        group("compile-error", "InductorError", "error", "The compile failed.", [at(7, "return y", 0)]),
    ]  # fmt: skip
    return {"run": RUN, "pipeline": "inductor", "lane": "deep", "groups": groups, "seconds": 66.1, "standing": STANDING}


PIECES = {
    "sizes": ["1–512", "any size"],
    "rows": [
        {"title": "submod_0", "cells": ["miss CG 1.2 s", "hit 0.1 s"]},
        {"title": "submod_2 and 30 alike", "cells": ["hit CG 3.4 s", ""]},
    ],
    "note": "hit, miss, bypass: of the FX graph cache; CG: a CUDA graph is captured",
    "hiddenRows": 0,
    "hiddenSizes": 3,
}


def phases(params: Json) -> Json:
    if params["run"] == EMPTY:
        return {
            "run": EMPTY,
            "pipeline": "inductor",
            "compiles": 0,
            "phases": tree(),
            "pieces": {"sizes": [], "rows": [], "note": "", "hiddenRows": 0, "hiddenSizes": 0},
            "reason": REASON.format("compile times"),
        }
    summed = tree(
        [("compile time", "seconds"), ("other threads", "seconds")],
        tree_row("this run", -1, 0, [0, 0], [66.1, 62]),
        tree_row("loss_of ×2", 0, 3, [0, 0], [66.1, 62]),
        {**tree_row("dynamo ×2", 1, 0, [1.7, 0], [66.1, 62]), "kind": "Dynamo, and all that it calls"},
        {**tree_row("backend_compile", 2, 0, [6.9, 0], [64.4, 62]), "kind": MARKUP},
        {**tree_row("inductor_compile", 3, 0, [7.5, 0], [57.5, 62]), "kind": "Inductor"},
        {**tree_row("Scheduler.codegen", 4, 0, [18.0, 0], [50.0, 62]), "kind": "code of the kernels"},
        {**tree_row("async_compile.wait", 5, 0, [32.0, 62], [32.0, 62]), "kind": "waiting for kernels"},
    )
    return {
        "run": RUN,
        "pipeline": "inductor",
        "compiles": len(compiles()),
        "phases": summed,
        "pieces": PIECES,
        "reason": "",
    }


def memory(params: Json) -> Json:
    if params["run"] == EMPTY:
        return {
            "run": EMPTY,
            "pipeline": "inductor",
            "compile": None,
            "function": "",
            "compiles": [],
            "plans": [],
            "reason": REASON.format("memory plan"),
        }
    calls = 24
    buffers: list[Json] = [
        {
            "name": f"buf{n}", "bytes": 65536 * (1 + n % 3), "dtype": "float32", "category": ("kept", "temporary", "temporary", "borrowed")[n % 4],
            "how": "reuse" if n == 5 else "allocated", "of": "buf1" if n == 5 else "", "first": n, "last": calls - 1 if n % 4 == 0 else min(n + 3, calls - 1),
            "kernel": f"cpp_fused_mul_relu_{n}", "module": MARKUP if n == 8 else f"model.encoder.layer.{n % 2}.attention.self", "line": n,
            "uri": "", "places": [],
        }
        for n in range(calls)
    ]  # fmt: skip
    buffers[-1] = {**buffers[-1], "category": "returned", "bytes": 8}
    live = [
        sum(one["bytes"] for one in buffers if one["category"] != "borrowed" and one["first"] <= n <= one["last"])
        for n in range(calls)
    ]
    plan = {
        "stage": "0/0/memory-plan", "title": "Memory plan", "uri": f"irscope:/{RUN}/0/0/dynamo-graph.py", "steps": [f"cpp_fused_mul_relu_{n}" for n in range(calls)],
        "live": live, "peak": live.index(max(live)), "beside": "beside 1.91 MB of inputs", "measured": False, "buffers": buffers,
        "modules": tree(
            [("at the peak", "bytes"), ("allocated", "bytes"), ("buffers", "count")],
            tree_row("this graph", -1, 0, [0, 0, 0], [1e6, 2e6, 18]),
            {**tree_row("encoder.layer.0–1 ×2", 0, 0, [1e6, 2e6, 18], [1e6, 2e6, 18]), "kind": MARKUP},
        ),
        "lines": tree([]),
    }  # fmt: skip
    plans = [
        plan,
        {**plan, "stage": "0/0/memory-plan-backward", "title": "Memory plan (backward)"},
        measured_step(plan),
    ]
    return {
        "run": RUN,
        "pipeline": "inductor",
        "compile": "0/0",
        "function": "loss_of",
        "compiles": compiles()[:1],
        "plans": plans,
        "reason": "",
    }


def measured_step(plan: Json) -> Json:
    """Blocks of each category; the first half of the step holds something that is gone at the peak."""
    categories = ("parameters", "optimizer", "inputs", "kept", "temporary")
    blocks: list[Json] = [
        {
            **plan["buffers"][0], "name": f"block{n}", "category": category, "first": 0 if n < 3 else 10 + n, "last": 23, "bytes": 1000 * (n + 1),
            "kernel": MARKUP if n == 3 else category, "uri": plan["uri"] if n > 2 else "", "places": [place(n)],
        }
        for n, category in enumerate(categories)
    ]  # fmt: skip
    live = [sum(one["bytes"] for one in blocks if one["first"] <= n) + (2000 if n < 10 else 0) for n in range(24)]
    return {
        **plan, "stage": "", "title": "Measured step", "uri": "", "steps": [f"{4 * n} %" for n in range(24)], "live": live, "peak": 14,
        "beside": "in backward of 0/0.", "measured": True, "buffers": blocks, "lines": plan["modules"],
    }  # fmt: skip


def memory_places(params: Json) -> Json:
    buffers = [{"name": f"buf{number}", "places": [place(4)]} for number in range(24)]
    plans = [{"stage": stage, "buffers": buffers} for stage in ("0/0/memory-plan", "0/0/memory-plan-backward")]
    return {"run": params["run"], "plans": plans}


def changes(params: Json) -> Json:
    nothing: Json = {
        "run": run_item(EMPTY, "fast", 1763633000, 0), "since": None, "older": [], "summary": "", "findingsNew": [], "findingsGone": [], "findingsKept": 0,
        "compilesNew": [], "compilesGone": [], "compilesChanged": [], "compilesSame": 0, "kernelsNew": [], "kernelsGone": [], "kernelsChanged": [],
        "kernelsKept": 0, "compileSeconds": None, "seconds": None, "measured": None, "choicesChanged": [], "time": tree(), "memory": tree(), "reason": "This is the first fast run of this script that is kept.",
    }  # fmt: skip
    if params["run"] == EMPTY:
        return nothing

    def finding(kind: str, code: str, message: str) -> Json:
        title = kind.replace("-", " ").capitalize()
        return {
            "kind": kind,
            "code": code,
            "title": title,
            "severity": "warning",
            "message": message,
            "place": place(5),
            "seconds": 5.8,
        }

    def compile(id: str, what: str, stages: list[Json]) -> Json:
        return {"id": id, "function": "loss_of", "place": place(3), "what": what, "stages": stages}

    def kernel(name: str, other: str = "") -> Json:
        uri = f"irscope:/{RUN}/0/0/kernel/cpp_fused_mul_relu_0.cpp"
        return {"name": name, "language": "cpp", "compile": "0/0", "uri": uri, "places": [place(4)], "other": other}

    changed = tree(
        [("change of compile time", "seconds"), ("before", "seconds"), ("after", "seconds")],
        tree_row("two runs", -1, 0, [0, 0, 0], [-33, 99.1, 66.1]),
        {**tree_row(MARKUP, 0, 3, [-33, 99.1, 66.1], [-33, 99.1, 66.1]), "kind": MARKUP},
    )
    older = run_item(OLDER, "deep", 1763632740, 5)
    graph = f"irscope:/{RUN}/0/0/dynamo-graph.py"
    return {
        **nothing, "run": run_item(RUN, "deep", 1763633700, 4), "since": older, "older": [older], "reason": "",
        "summary": "1 new finding · 1 finding fixed · 1 kernel gained · 1 kernel changed · compile time 1 min 39 s → 1 min 6 s",
        "findingsGone": [finding("graph-break", "GB0124", "`loss.item()` needs the value of a tensor.")],
        "findingsNew": [finding("recompilation", "recompile-size", f"compiled again: {MARKUP}")], "findingsKept": 3,
        "compilesGone": [compile("1/0", "", [])], "compilesSame": 1,
        "compilesChanged": [compile("0/0", "graph break → compiled, 70 → 75 ops", [{"title": "Dynamo graph", "left": graph, "right": graph.replace("0/0", "0/1")}])],
        "kernelsNew": [kernel(MARKUP)], "kernelsChanged": [kernel("cpp_fused_add_1", f"irscope:/{RUN}/0/0/kernel/cpp_fused_mul_relu_0.cpp")],
        "kernelsKept": 24, "compileSeconds": [99.1, 66.1], "seconds": [101.5, 74.1],
        "measured": {"before": 2e-3, "after": 1.5e-3, "isSignificant": True, "words": "25 % faster (p = 0.002)", "lines": [{"place": place(4), "before": 1e-3, "after": 5e-4}]},
        "choicesChanged": [{"operator": "mm", "place": place(4), "before": f"triton_mm {MARKUP}", "after": "mm (8 µs)"}],
        "time": changed,
    }  # fmt: skip


def comparison(params: Json) -> Json:
    if params["run"] == EMPTY:
        return {
            "run": EMPTY,
            "script": "/slow.py",
            "pipelines": [],
            "reason": "No pipelines of this script were compared yet.",
        }

    def figure(value: float | None, why: str = "") -> Json:
        return {"value": value, "why": why}

    def time(median: float) -> Json:
        return {"median": median, "low": 0.9 * median, "high": 1.1 * median, "rounds": 9, "why": ""}

    def made(pipeline: str, title: str, kernels: Json) -> Json:
        graph = {"compile": "0/0", "title": "Dynamo graph", "uri": f"irscope:/{RUN}/0/0/dynamo-graph.py"}
        return {
            "pipeline": pipeline, "title": title, "run": RUN, "problem": "", "operators": figure(6), "taken": figure(6),
            "fused": figure(4), "kernels": kernels, "libraryCalls": kernels, "movedBytes": figure(3400, "kernels"),
            "compileSeconds": figure(12.5), "call": time(1.2e-4), "eager": time(3.4e-4), "difference": figure(1.2e-7),
            "relativeDifference": figure(3e-8), "gone": [], "left": [{"what": MARKUP, "why": MARKUP, "place": place(4)}],
            "stages": [graph],
        }  # fmt: skip

    untold = figure(None, "What is captured of torchscript does not include its kernels.")
    found = [made("inductor", "Inductor", figure(2)), made("torchscript", "TorchScript", untold)]
    return {"run": params["run"], "script": "/train.py", "pipelines": found, "reason": ""}


def tree(measures: Sequence[tuple[str, str]] = (), *rows: Json) -> Json:
    return {
        "measures": [{"name": name, "unit": unit} for name, unit in measures],
        "rows": list(rows),
        "leftOut": 0,
        "isChange": False,
    }


def tree_row(name: str, parent: int, line: int, own: list[float], whole: list[float]) -> Json:
    at = place(line) if line else {"uri": "", "line": 0}
    return {"name": name, "kind": "", "place": at, "parent": parent, "own": own, "whole": whole}


def summary(params: Json) -> Json:
    nothing: Json = {"run": params["run"], "standing": "Nothing was compiled.", "facts": [], "causes": [], "moreCauses": 0, "compiled": tree()}  # fmt: skip
    if params["run"] == EMPTY:
        return nothing
    counts = [("kernels", "count"), ("library calls", "count"), ("graphs", "count"), ("compile time", "seconds")]
    rows = [
        tree_row("this run", -1, 0, [0, 0, 0, 0], [3, 2, 1, 12.5]),
        tree_row(MARKUP, 0, 3, [1, 0, 1, 12.5], [3, 2, 1, 12.5]),
        {**tree_row("layers.0–31 ×32", 1, 0, [2, 2, 0, 0], [2, 2, 0, 0]), "kind": MARKUP},
    ]
    cause = {"title": "Graph break", "message": f"Graph break: {MARKUP}", "place": place(4), "cost": "1 extra graph"}
    return {
        **nothing, "standing": f"1 cause costs 2 of 12.5 s: {MARKUP}", "facts": ["ran for 20 s", "compiled for 12.5 s"],
        "causes": [cause], "moreCauses": 3, "compiled": tree(counts, *rows),
    }  # fmt: skip


def measured(params: Json) -> Json:
    nothing: Json = {
        "run": params["run"], "step": 0, "device": 0, "owned": 0, "profiled": 0, "idle": None, "steps": 0, "bounds": "", "programs": [], "regions": [],
        "lines": [], "kernels": [], "gaps": [], "modules": tree(), "frames": tree(), "graphs": {"recorded": 0, "replayed": 0, "skipped": [], "recordings": 0, "again": [], "pools": []}, "costs": [], "words": [], "places": [],
        "leftOut": {"lines": 0, "kernels": 0, "gaps": 0},
        "noLines": "", "pieces": [], "reason": "No run of this script was measured yet.",
    }  # fmt: skip
    if params["run"] == EMPTY:
        return nothing
    kernel = {
        "name": MARKUP, "uri": "", "seconds": 4e-4, "possible": 1e-4, "refuted": False, "bound": "memory", "calls": 2, "bytes": 4e6, "flops": None,
        "places": [place(4)],
    }  # fmt: skip
    line = {
        "place": place(4),
        "seconds": 4e-4,
        "shared": 0,
        "possible": 1e-4,
        "refuted": False,
        "bound": "memory",
        "calls": 2,
        "kernels": [MARKUP],
    }
    times = [("time", "seconds"), ("bound", "seconds"), ("moved", "bytes")]
    whole = tree_row("step", -1, 0, [0, 0, 0], [4e-4, 1e-4, 4e6])
    module = {**tree_row(MARKUP, 0, 0, [4e-4, 1e-4, 4e6], [4e-4, 1e-4, 4e6]), "kind": MARKUP}
    program = {
        "function": MARKUP,
        "place": place(3),
        "words": f"forward: 1 ms {MARKUP}; compiling took 66.1 s, paid back after 66,100 calls",
        "elsewhere": [],
    }
    region = {**program, "elsewhere": [f"through onnx 2 ms {MARKUP}", "through tvm: not measured: it has no sort"]}
    return {
        **nothing, "step": 1e-3, "device": 4e-4, "owned": 9e-4, "profiled": 1.2e-3, "idle": 8e-4, "steps": 20, "bounds": "the least time on NVIDIA H100 SXM",
        "programs": [program], "regions": [region, program], "lines": [line], "kernels": [kernel],
        "modules": tree(times, whole, module), "frames": tree(times, whole, {**module, "place": place(4)}),
        "gaps": [{"kind": "guards", "seconds": 1e-4, "place": place(3), "where": ""}],
        "graphs": {"recorded": 0, "replayed": 1, "skipped": [{"why": MARKUP, "place": place(3)}], "recordings": 2, "again": [{"compile": "0/0", "why": MARKUP, "count": 1}], "pools": [{"pool": "0.1", "bytes": 2e6, "used": 5e5}]},
        "costs": [{"what": "graph-break", "name": "GB0025", "words": f"at least 5 µs {MARKUP}", "place": place(3)}],
        "words": ["launch", MARKUP, "0/0", "kernel"], "places": [place(4)],
        "pieces": [[0, 0, 8e-4, 0, 1, 2, 0, 0], [1, 8e-4, 4e-4, 3, 1, 2, 0, 0]], "reason": "",
    }  # fmt: skip


def ranks(params: Json) -> Json:
    nothing: Json = {
        "run": params["run"], "world": 0, "ranks": [], "moreRanks": 0, "first": 0, "other": None, "divergences": [], "compiles": [],
        "moreCompiles": 0, "waits": [], "overlaps": [], "moreOverlaps": 0, "overlapText": "", "buckets": [], "runtime": [], "unseen": "",
        "reason": "This run has one process.",
    }  # fmt: skip
    if params["run"] == EMPTY:
        return nothing

    def row(sign: str, left: str, right: str) -> Json:
        return {"sign": sign, "left": left, "right": right, "leftLine": 2, "rightLine": 2}

    def rank(number: int, alike: str) -> Json:
        return {
            "rank": number, "run": RUN, "outcome": "completed", "compiles": 2, "kernels": 3, "collectives": 1, "sentBytes": 4096,
            "memory": None, "alike": alike, "others": 20 if alike else 0, "process": "",
        }  # fmt: skip

    uri, code = f"irscope:/{RUN}/0/0/dynamo-graph.py", f"irscope:/{RUN}/0/0/output-code.py"
    rows = [
        row("skipped", "12", ""),
        row("", "y = x.sin()", "y = x.sin()"),
        row("changed", MARKUP, "z = y.cos()"),
        row("right", "", MARKUP),
    ]
    stage = {"title": MARKUP, "left": uri, "right": uri, "same": False, "rows": rows, "more": 3}
    same = {**stage, "title": "Forward graph", "same": True, "rows": [], "more": 0}
    compiled = {
        "function": MARKUP,
        "place": place(3),
        "left": "0/0",
        "right": "0/0",
        "outcome": "",
        "stages": [stage, same],
    }
    return {
        **nothing, "world": 1024, "ranks": [rank(0, "1-36, 38-1023"), rank(37, "")], "other": 37, "reason": "",
        "divergences": [{"code": MARKUP, "message": MARKUP, "place": place(4), "ranks": "0, 37"}],
        "compiles": [compiled, {**compiled, "left": "", "right": "1/0", "stages": []}],
        "waits": [{"operation": "all_reduce", "place": place(4), "calls": 3, "seconds": 0.81, "longest": 0.3, "late": 1, "lateCalls": 3, "typical": 0.27, "before": place(3)}],
        "overlaps": [
            {"operation": "all_reduce", "place": place(4), "calls": 2, "ranks": 8, "sentBytes": 4096, "exposed": True, "beside": "nothing", "way": f"forward-graph 0 → {MARKUP} 2 → output-code 0", "code": {"uri": code, "line": 4}},
            {"operation": "all_gather_into_tensor", "place": place(5), "calls": 1, "ranks": None, "sentBytes": None, "exposed": False, "beside": f"2 ({MARKUP}, mm), 1.2 MB", "way": "", "code": {"uri": code, "line": 6}},
        ],
        "overlapText": "1 of 2 collectives runs beside nothing: the rank only waits.",
        "unseen": f"Collectives of DTensor are not seen {MARKUP}",
        "runtime": [{"issuer": "DDP", "operation": "all_reduce", "module": MARKUP, "place": place(4), "calls": 3, "bytes": 4096, "beside": "nothing"}],
        "buckets": [{"compile": "0/0", "number": 1, "part": MARKUP, "parameters": 2, "bytes": 1050624, "exposed": True, "beside": "nothing in this graph", "code": {"uri": code, "line": 0}}],
    }  # fmt: skip


ANSWERS: dict[str, Callable[[Json], Json]] = {
    "irscope/age": age,
    "irscope/subjectOf": subject_of,
    "irscope/pipeline": pipeline,
    "irscope/step": step,
    "irscope/findings": findings,
    "irscope/summary": summary,
    "irscope/phases": phases,
    "irscope/measured": measured,
    "irscope/memory": memory,
    "irscope/memoryPlaces": memory_places,
    "irscope/changes": changes,
    "irscope/comparison": comparison,
    "irscope/ranks": ranks,
}
