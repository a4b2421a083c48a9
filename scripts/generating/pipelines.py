"""The table of docs/pipelines.md, from the declarations of the pipelines."""

from __future__ import annotations

from itertools import takewhile

from irscope.pipelines.base import Pipeline
from irscope.pipelines.registry import group_of, pipelines
from irscope.vocabulary.stages import Role


def table() -> str:
    """Pipelines that irscope runs, and below them the systems that it only knows."""
    rows = ["| `--pipeline` | what it is | needs beside torch | stages |", "|---|---|---|---|"]
    known = ["| name | system | status |", "|---|---|---|"]
    for pipeline in pipelines().values():
        if pipeline.unsupported:
            known.append(f"| `{pipeline.name}` | {pipeline.title} | {pipeline.unsupported} |")
        else:
            needs = ", ".join(f"`{package.to_install}`" for package in pipeline.needs) or "nothing"
            rows.append(f"| `{pipeline.name}` | {pipeline.title} | {needs} | {_stages(pipeline)} |")
    return "\n".join([*rows, "", "Systems that irscope only knows:", "", *known])


def _stages(pipeline: Pipeline) -> str:
    """The stages on the way down; those of a row above are named by its pipeline."""
    stages = _titles(pipeline)
    for above in takewhile(lambda other: other is not pipeline, pipelines().values()):
        stages = stages.replace(_titles(above), f"those of `{above.name}`")
    return stages


def _titles(pipeline: Pipeline) -> str:
    """Those of kernels are many, and are named by their group."""
    titles = [
        kind.title if kind.role not in (Role.KERNEL, Role.LOWERED) else group_of(kind.name).title
        for kind in pipeline.stages
        if kind.rank is not None
    ]
    return ", ".join(dict.fromkeys(titles))
