"""Cache miss: a function whose source is the same as in an earlier run is compiled again, and what made the difference.

A miss by itself is not a finding: the first run of anything misses.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator

from irscope.findings import signals
from irscope.findings.detector import Detector
from irscope.findings.moment import Moment
from irscope.findings.places import at_function
from irscope.internals.loaded_artifacts import mega_cache_hook
from irscope.ir.artifacts.caches import keys_of_mega_cache
from irscope.ir.artifacts.contents import ArtifactError
from irscope.ir.artifacts.inputs import bare
from irscope.ir.graphs import Graph
from irscope.protocol import Finding, Severity
from irscope.vocabulary.findings import DEEP_ONLY, FindingKind
from irscope.vocabulary.records import dataclass
from irscope.vocabulary.units import duration

KIND = FindingKind(
    id="cache-miss",
    label="Cache miss",
    short=("cache miss", "cache misses"),
    lanes=DEEP_ONLY,
    severity=Severity.HINT,
    filter_label="Cache misses",
    deep_codes=("fx-graph-cache", "aotautograd-cache", "mega-cache"),
    order=100,
)
EVENT = "fx_graph_cache_miss"
_LOADED, _MISSED = "caches that the script has loaded", "compiles that missed in them"
NEW_VERSION = "PyTorch itself has a different version"
OTHER_GRAPH = "the graph itself is different (a constant in it, or a helper that it calls)"
_LINE = re.compile(r"^\[(?P<digest>\w+)\] (?P<name>\w+(?:\[[^\]]*\])?): ?(?P<value>.*)$", re.DOTALL)
_DIGEST_KEPT, _VALUE_KEPT, _VALUE_SHOWN, _CHANGES_SHOWN = 16, 300, 60, 3
_INPUT = re.compile(r"example_inputs\[(\d+)\]")
_FIELD = re.compile(r"(?P<name>\w+)=(?P<value>(?:[^,()\[\]]|\((?:[^()]|\([^()]*\))*\)|\[[^\]]*\])*)")
# For the deep lane itself, and for a profile: see internals/caches.py and internals/kernel_profile.py.
_OURS = ("provenance_tracking_level", "inductor_config[cpp.enable_kernel_profile]")
# What follows from inputs of another kind.
_CONSEQUENCES = ("gm", "fx_kwargs[static_input_idxs]", "inputs_to_check")
# The parts of an input, the most telling first; strides and bytes follow from the size.
_TELLING = {
    "shape": "size",
    "dtype": "dtype",
    "device": "device",
    "requires_grad": "requires_grad",
    "stride": "strides",
}


@dataclass(frozen=True)
class CacheKey:
    """What the FX graph cache knows a graph by.

    Args:
        parts: By name (``example_inputs[0]``, ``inductor_config[max_autotune]``): a digest of it, and how it prints,
            cut off.
        function: A digest of the text of the function that is compiled.
        file: A digest of the text of the file in which it is.
    """

    parts: dict[str, tuple[str, str]]
    function: str
    file: str

    @property
    def digests(self) -> dict[str, str]:
        """The digest of each part of the key, by the part's name."""
        return {name: digest for name, (digest, _) in self.parts.items()}


def parts_of(components: list[str]) -> dict[str, tuple[str, str]]:
    """From the ``components`` of a cache event: strings ``[digest] name: value``."""
    found = (_LINE.match(line) for line in components)
    return {
        match["name"]: (match["digest"][:_DIGEST_KEPT], _one_line(match["value"]))
        for match in found
        if match is not None and match["name"] not in _OURS
    }


def _one_line(value: str) -> str:
    line = " ".join(value[:_VALUE_KEPT].split())
    return line if line.isprintable() else "".join(char if char.isprintable() else "·" for char in line)


def arguments_of(graph: Graph | None, key: CacheKey) -> tuple[str, ...]:
    """The user's names of a graph's inputs, from the dynamo graph; empty if the two do not have the same inputs."""
    names = [node.target for node in graph.nodes if node.op == "placeholder"] if graph is not None else []
    count = sum(name.startswith("example_inputs[") for name in key.parts)
    if len(names) != count or key.parts.get("fx_kwargs[is_backward]", ("", ""))[1] == "True":
        return ()
    return tuple(name.removeprefix("L_").removesuffix("_") for name in names)


def detect(
    moment: Moment, key: CacheKey, earlier: CacheKey | None, arguments: tuple[str, ...] = ()
) -> Iterator[Finding]:
    """What to say of a miss (`EVENT`).  The event tells what the user's own run would get (`internals/caches.py`):
    ``hit``, ``full_miss``, ``guard_miss`` with the guards of an entry, or None.

    Args:
        earlier: The key of the same graph in an earlier run.
        arguments: The user's names of the graph's inputs, in order.
    """
    facts = json.loads(moment.record.payload)
    status, guards = facts.get("cache_status_detailed"), facts.get("cache_status_guard_expr")
    if loaded := moment.known.notes.get(_LOADED):  # its compile tells what a miss has cost
        if status in ("full_miss", "guard_miss"):
            said = _why(loaded, str(guards or "") if status == "guard_miss" else None, key, arguments)
            moment.known.notes.setdefault(_MISSED, {}).setdefault(moment.record.compile, said)
        return
    if status == "guard_miss":
        why = f"the cached entry is valid only where {guards}" if guards else "the cached entry is for other sizes"
        explanation = "The FX graph cache has an entry for this graph, but its guards do not hold for these sizes."
    elif status == "full_miss" and earlier is not None and (changed := changes(earlier, key, arguments)):
        more = f", and {len(changed) - _CHANGES_SHOWN} more changes" if len(changed) > _CHANGES_SHOWN else ""
        why = "; ".join(changed[:_CHANGES_SHOWN]) + more
        explanation = "\n".join(["These parts of the cache key changed since an earlier run:", *changed])
    else:
        return
    finding = at_function(
        moment,
        kind=KIND.id,
        code="fx-graph-cache-miss",
        message=f"The FX graph cache misses, and this function is compiled again although its source is the same: {why}.",
        explanation=explanation,
        hints=(_hint(why),),
        severity=KIND.severity,
    )
    if finding is not None:
        yield finding


def detect_artifact(moment: Moment, data: bytes) -> Iterator[Finding]:
    """Keeps a cache that the script loads; a compile that misses in it is a finding."""
    moment.known.notes[_LOADED] = [*moment.known.notes.get(_LOADED, ()), data]
    yield from ()


def _why(loaded: list[bytes], guards: str | None, key: CacheKey, arguments: tuple[str, ...]) -> list[str]:
    """Why no entry of a loaded cache serves a graph; ``guards``: those of the entry with its key."""
    if guards is not None:
        return [f"the entry is valid only where {guards}" if guards else "the entry is for other sizes"]
    try:
        made = [parts_of(lines) for data in loaded for lines in keys_of_mega_cache(data).values()]
    except ArtifactError as error:
        return [str(error)]
    return nearest(made, key, arguments) or ["it has no entry for this graph"]


def nearest(made: list[dict[str, tuple[str, str]]], key: CacheKey, arguments: tuple[str, ...] = ()) -> list[str]:
    """What differs between a key and the nearest of an artifact's; empty if there is none, or it has an equal one.

    A key of another torch differs in that alone: other settings follow from it.
    """
    found = (changes(CacheKey(parts, key.function, key.file), key, arguments) for parts in made)
    said = min(found, key=len, default=[])
    return [NEW_VERSION] if NEW_VERSION in said else said


def tell_artifact_miss(moment: Moment) -> Iterator[Finding]:
    """The finding of a compile that has missed in the loaded caches, from its metrics."""
    said = moment.known.notes.get(_MISSED, {}).pop(moment.record.compile, None)
    seconds = moment.record.facts.get("entire_frame_compile_time_s")
    if said is None or not isinstance(seconds, (int, float)):
        return
    why = "; ".join(said[:_CHANGES_SHOWN]) + (f", and {len(said) - _CHANGES_SHOWN} more" * (len(said) > _CHANGES_SHOWN))
    finding = at_function(
        moment,
        kind=KIND.id,
        code="mega-cache-miss",
        message=f"The loaded cache did not match: compiled again, {duration(seconds)}, because {why}.",
        explanation="\n".join(["What differs from the nearest entry that `load_cache_artifacts` has loaded:", *said]),
        hints=(_hint(why),),
        severity=Severity.WARNING,
    )
    if finding is not None:
        yield finding


def changes(before: CacheKey, after: CacheKey, arguments: tuple[str, ...] = ()) -> list[str]:
    """What differs between two keys of one function, in words; empty if its source differs too.

    A graph that differs although the function is the same has another reason (a constant in it, a helper in another
    file), unless the file was edited: then the edit is the reason, which the user knows.
    """
    if before.function != after.function:
        return []
    was, now = before.digests, after.digests
    names = [
        name
        for name in {**was, **now}
        if was.get(name) != now.get(name) and not _is_same_literal(_printed(before, name), _printed(after, name))
    ]
    if any(name.startswith("example_inputs[") for name in names):
        names = [name for name in names if name not in _CONSEQUENCES]
    if before.file != after.file:
        names = [name for name in names if name != "gm"]
    inputs = [name for name in names if name.startswith("example_inputs[")]
    said = _dynamic_inputs(before, after, arguments) or [
        _change(name, _printed(before, name), _printed(after, name), arguments) for name in inputs
    ]
    return [
        *said,
        *(_change(name, _printed(before, name), _printed(after, name), ()) for name in names if name not in inputs),
    ]


def _is_same_literal(before: str, after: str) -> bool:
    """Whether two parts are one plain value although their digests differ.

    Once PyTorch's pickler has met a device mesh (DTensor), it writes what it has met before as a reference, so the digests
    of all later parts depend on the earlier ones.
    """
    if before != after or not before or len(before) >= _VALUE_KEPT:
        return False
    try:
        ast.literal_eval(before)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return False
    return True


def _printed(key: CacheKey, name: str) -> str:
    return key.parts.get(name, ("", ""))[1]


def _dynamic_inputs(before: CacheKey, after: CacheKey, arguments: tuple[str, ...]) -> list[str]:
    """The inputs that changed where a size became dynamic, or is no longer: the graph then has more inputs, or fewer,
    which are no tensors, and the tensors have other numbers.  Empty if this is not what changed."""
    (tensors, numbers), (tensors_now, numbers_now) = _inputs(before), _inputs(after)
    if numbers == numbers_now or len(tensors) != len(tensors_now):
        return []
    names = [f"`{arguments[i]}`" if i < len(arguments) else f"argument {at}" for at, i in enumerate(tensors_now)]
    pairs = zip(names, tensors.values(), tensors_now.values(), strict=True)
    return [_input_change(name, was[1], now[1]) for name, was, now in pairs if was != now]


def _inputs(key: CacheKey) -> tuple[dict[int, tuple[str, str]], int]:
    """The tensors among a graph's inputs by their numbers, and how many other inputs there are."""
    found = {int(m[1]): part for name, part in key.parts.items() if (m := _INPUT.fullmatch(name)) is not None}
    tensors = {index: found[index] for index in sorted(found) if "shape=" in found[index][1]}
    return tensors, len(found) - len(tensors)


def _change(name: str, before: str, after: str, arguments: tuple[str, ...]) -> str:
    group, _, index = name.partition("[")
    index = index.rstrip("]")
    if group == "gm":
        return OTHER_GRAPH
    if group == "torch_version":
        return NEW_VERSION
    if group == "example_inputs":
        named = int(index) < len(arguments) if index.isdigit() else False
        return _input_change(f"`{arguments[int(index)]}`" if named else f"argument {index}", before, after)
    what = {"inductor_config": f"torch._inductor.config.{index}", "cpp_runtime_thread_count": "torch.get_num_threads()"}
    return _became(f"`{what.get(group, name)}`", before, after)


def _input_change(name: str, before: str, after: str) -> str:
    if not before or not after:
        return f"{name} {'came' if after else 'is gone'}"
    was, now = telling_fields(before), telling_fields(after)
    for field, word in _TELLING.items():
        if was.get(field) != now.get(field):
            return _became(f"the {word} of {name}", bare(was.get(field, "")), bare(now.get(field, "")))
    return _became(name, before, after)


def telling_fields(text: str) -> dict[str, str]:
    """The facts of an input by their names, from how a key prints it: ``shape``, ``dtype``, ``device``, …"""
    return {match["name"]: match["value"] for match in _FIELD.finditer(text)}


def _became(name: str, before: str, after: str) -> str:
    if before == after:
        return f"{name} changed"  # in a part of it that is not printed
    return f"{name} became {_short(after)} (was {_short(before)})"


def _short(value: str) -> str:
    return value if len(value) <= _VALUE_SHOWN else value[:_VALUE_SHOWN] + "…"


def _hint(why: str) -> str:
    if "torch._inductor.config" in why or "torch.get_num_threads" in why:
        return "Set it in every process that is to share the cache, before the first call; each setting has separate entries."
    if re.search(r"became \[[^\]]*\bs\d", why):
        return "The size is dynamic now, so the new entry serves every size. This miss is normal once."
    if "size" in why:
        return (
            "Pad to few sizes, or make the size dynamic (`torch._dynamo.mark_dynamic`), so that one entry serves all."
        )
    return "Keep it the same in every process that is to share the cache; each variant has separate entries."


DETECTORS = (
    Detector(signals.CACHE_MISSED, detect),
    Detector("mega-cache-loaded", detect_artifact, mega_cache_hook),
    Detector("compilation_metrics", tell_artifact_miss),
)
