"""What each pass changed in a graph, by the versions of the stage that it left behind."""

from __future__ import annotations

from dataclasses import dataclass

from irscope.comparing.graphs import diff_graphs
from irscope.pipelines.registry import stage_kind
from irscope.protocol import Compile, StageRef
from irscope.store.store import Store

from irscope_server.base.stage_uris import uri_of_stage

_MOST_NAMES = 60
_START = "start"
"""The version before the first pass that changed something (irscope.pipeline_captures.inductor.deep_lane)."""


@dataclass(frozen=True)
class PassItem:
    """A pass that changed its graph."""

    name: str
    subgraph: str
    """The graph module below the outermost one that it ran over; empty for the outermost."""
    seconds: float
    added: int
    removed: int
    changed: int
    moved: bool
    """Others only changed places."""
    names_added: tuple[str, ...]
    names_removed: tuple[str, ...]
    names_changed: tuple[str, ...]
    """The names of the first 60 nodes."""
    stage: str
    uri: str
    """The graph after it."""
    before: str | None
    """The document of the graph before it."""


@dataclass(frozen=True)
class QuietPass:
    """A pass that ran and changed nothing; `seconds` are those of all its runs."""

    name: str
    seconds: float
    count: int
    """How often it ran."""


def passes_of(
    store: Store, run: str, compile: Compile, stage: StageRef
) -> tuple[tuple[PassItem, ...], tuple[QuietPass, ...]]:
    """The passes that changed a stage's graph, in their order, and those that did not."""
    if stage.passed:
        return (), ()
    own = [one for one in compile.stages if one.passed and _is_version_of(one, stage)]
    before = next((one for one in own if one.passed == _START), None)
    if before is None and own:
        before = stage  # the passes of a joint graph run after its stage
    found = []
    for version in own:
        if version.passed != _START:
            found.append(_item(store, run, version, before))
            before = version
    return tuple(found), _quiet(store, run, stage)


def _is_version_of(version: StageRef, stage: StageRef) -> bool:
    """The versions of an inference graph, which has no joint one, are called versions of a joint graph."""
    home = version.id.rpartition("/")[0]
    other = stage_kind(stage.name).versions_as
    return home == stage.id or (other != "" and home == stage.id.replace(stage.name, other))


def _item(store: Store, run: str, version: StageRef, before: StageRef | None) -> PassItem:
    data = store.stage_data(run, version.id)
    data = data if isinstance(data, dict) else {}
    if "added" in data:
        added, removed, changed = (tuple(map(str, data[key])) for key in ("added", "removed", "changed"))
    else:
        added, removed, changed = _compared(store, run, before, version)
    return PassItem(
        version.passed,
        str(data.get("subgraph") or ""),
        version.seconds,
        len(added),
        len(removed),
        len(changed),
        bool(data.get("moved")),
        added[:_MOST_NAMES],
        removed[:_MOST_NAMES],
        changed[:_MOST_NAMES],
        version.id,
        uri_of_stage(run, version.id, version.language),
        uri_of_stage(run, before.id, before.language) if before is not None else None,
    )


_Names = tuple[str, ...]


def _compared(store: Store, run: str, before: StageRef | None, version: StageRef) -> tuple[_Names, _Names, _Names]:
    """Compares a version that was captured without saying what changed: by structure."""
    if before is None:
        return (), (), ()
    try:
        diff = diff_graphs(store.stage_text(run, before.id), store.stage_text(run, version.id))
    except ValueError:
        return (), (), ()
    return (
        tuple(node.name for node in diff.added),
        tuple(node.name for node in diff.removed),
        tuple(change.after.name for change in diff.changed),
    )


def _quiet(store: Store, run: str, stage: StageRef) -> tuple[QuietPass, ...]:
    data = store.stage_data(run, stage.id) if stage_kind(stage.name).is_graph else None
    found: dict[str, tuple[float, int]] = {}
    for one in (data.get("passes") if isinstance(data, dict) else None) or ():
        if not (one["added"] or one["removed"] or one["changed"] or one["moved"]):
            seconds, count = found.get(str(one["pass"]), (0.0, 0))
            found[str(one["pass"])] = seconds + float(one["seconds"]), count + 1
    return tuple(QuietPass(name, round(seconds, 6), count) for name, (seconds, count) in found.items())
