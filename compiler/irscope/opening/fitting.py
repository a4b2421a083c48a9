"""Whether an artifact fits here, before it is loaded: what differs from this machine, from the source, and from a run.

Nothing here says that an artifact will match: only what was compared, and what was not.
"""

from __future__ import annotations

import ast
import importlib.metadata
import importlib.util
import os
import platform
import re
from collections.abc import Iterator

from irscope.findings.kinds.cache_miss import NEW_VERSION, OTHER_GRAPH, CacheKey, nearest, parts_of, telling_fields
from irscope.ir.artifacts.caches import VECTORS
from irscope.ir.artifacts.contents import Artifact
from irscope.ir.artifacts.functions import Function, function_of
from irscope.ir.artifacts.inputs import WORDS, likeness, unfit
from irscope.ir.artifacts.portability import made_constants
from irscope.ir.artifacts.precompiled import TEXT_DIGEST, text_digest
from irscope.ir.artifacts.vllm_cache import key_changes
from irscope.opening.constraints import unmet
from irscope.opening.made_graphs import Difference as Difference
from irscope.opening.made_graphs import changed_lines, distance, functions_of, graph_changes, is_other
from irscope.pipeline_captures.inductor.cache_keys import load_key
from irscope.pipelines.inductor.stages import CACHE_KEY, POST_GRAD_GRAPH
from irscope.protocol import Compile
from irscope.store.store import Store
from irscope.system.trust import to_trust
from irscope.usercode.source import parse_text, read_source
from irscope.vocabulary.records import dataclass
from irscope.vocabulary.suggestions import listed
from irscope.vocabulary.units import count

_FEATURES = {
    "AVX512": ("avx512f", "avx512dq", "avx512vl", "avx512bw", "fma"),
    "AVX512_VNNI": ("avx512_vnni",),
    "AVX512_BF16": ("avx512_bf16",),
    "AMX_TILE": ("amx_tile",),
    "AVX2": ("avx2", "fma"),
}
"""The names of Inductor's CPU features, and the flags of Linux that each needs."""
_OWN_VERSION = re.compile(r"^__version__ = ['\"]([^'\"]+)['\"]", re.MULTILINE)
_SHOWN = 60
"""Characters of a value that are shown."""


_TORCH = "torch_version"
_KERNEL = re.compile(r"\b(?:cpp|triton)_\w*fused_\w+\b")
_WORD = re.compile(r"(?<=_)(?!fused_|\d)[a-z]+(?:\d[a-z]+)*")
_LEAST_ALIKE = 0.3
_OF_GPUS = ("GPU", "GPU target", "compute capability")
_Keyed = tuple[Compile, CacheKey, str]
"""A compile, the key of one of its graphs, and the printed post-grad graph."""
_WIDTHS = {128: ("sse2", "asimd"), 256: ("avx2", "sve"), 512: ("avx512f",)}
"""Flags of Linux by the width of CPU vectors in bits; one of them is enough."""


@dataclass(frozen=True)
class Fit:
    """What differs, and what was compared or not, in words."""

    differences: tuple[Difference, ...]
    compared: tuple[str, ...]
    not_compared: tuple[str, ...]


def fit(artifact: Artifact, store: Store | None = None, run: str = "") -> Fit:
    """Compares an artifact with this machine, with the source files, and with a run of the store if one is given.

    Raises LookupError if the run is not there.
    """
    compared: list[str] = []
    left: list[str] = []
    found = [*_of_machine(artifact, compared, left), *_of_sources(artifact, compared, left)]
    said = {(one.file, one.line) for one in found} | {(one.file, one.what) for one in found}
    for difference in changed_lines(artifact, compared):  # what the source of a function has told is told once
        if not artifact.sources or not {(difference.file, difference.line), (difference.file, difference.what)} & said:
            found.append(difference)
    found += [Difference(what, file, int(file != "")) for what, file in key_changes(artifact, compared)]
    if store is not None:
        found += _of_run(artifact, store, run, compared, left)
    elif artifact.inputs or artifact.keys:
        left.append("inputs and cache keys (run the script with irscope run --lane deep, then give --run)")
    if artifact.guards:
        left.append(of_guards(artifact))
    return Fit(tuple(dict.fromkeys(found)), tuple(compared), tuple(left))


def not_portable(artifact: Artifact) -> list[Difference]:
    """What the artifact has made a constant and that is another elsewhere, at its lines."""
    return [Difference(what, file, node.lineno) for file, _, node, what, _ in made_constants(artifact)]


def of_guards(artifact: Artifact) -> str:
    """Why guards were not compared."""
    how = f"{to_trust(artifact.digest)} --script SCRIPT"
    return f"{count(len(artifact.guards), 'guard')} (evaluating them unpickles the artifact: {how})"


# --- the machine --------------------------------------------------------------------------------------------------------


def _of_machine(artifact: Artifact, compared: list[str], left: list[str]) -> Iterator[Difference]:
    here = {"Python": platform.python_version(), "PyTorch": _version("torch"), "Triton": _version("triton")}
    here |= {TEXT_DIGEST: text_digest(artifact.path)} if TEXT_DIGEST in artifact.made_for else {}
    here |= {"platform": platform.system().lower(), "machine": platform.machine()}
    for name, was in artifact.made_for.items():
        now = here.get(name, "")
        if name == "device" and was == "cpu":
            continue  # each machine has one
        if name == "CPU features":
            yield from _of_features(was, compared, left)
        elif name == VECTORS:
            yield from _of_vectors(was, compared, left)
        elif name in _OF_GPUS and not has_gpu():
            compared.append(name)
            yield Difference(f"It was made for the {name} {was}, and this machine has no GPU.")
        elif name in here and now:
            compared.append(f"{name} {now}")
            if not _same_version(name, was, now):
                yield Difference(f"{name} was {was} when it was made and is {now} here.")
        else:
            left.append(f"{name} ({was})")


def _of_features(was: str, compared: list[str], left: list[str]) -> Iterator[Difference]:
    missing = _missing_features(was)
    if missing is None:
        left.append("CPU features")
        return
    compared.append("CPU features")
    if missing:
        yield Difference(f"It was made for {listed(missing)}, which this processor does not have.")


def _of_vectors(was: str, compared: list[str], left: list[str]) -> Iterator[Difference]:
    flags, known = _flags(), _WIDTHS.get(int(was.partition(" ")[0]))
    if not flags or known is None:
        left.append(f"{VECTORS} ({was})")
        return
    compared.append(f"{VECTORS} of {was}")
    if flags.isdisjoint(known):
        yield Difference(f"Its kernels are written for CPU vectors of {was}, which this processor does not have.")


def has_gpu() -> bool:
    """Whether a driver of an NVIDIA or AMD GPU has made its device file."""
    return any(map(os.path.exists, ("/dev/nvidiactl", "/dev/kfd", "/dev/dxg")))


def _same_version(name: str, was: str, now: str) -> bool:
    """Triton's version is kept as major and minor alone."""
    return was == now or (name == "Triton" and now.startswith(f"{was}."))


def _version(package: str) -> str:
    """The version of an installed package, which is not imported; empty if it is not installed.

    The package's own ``version.py`` counts first: the metadata of a CUDA build from PyPI lacks ``+cu130``.
    """
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        return ""
    found = _OWN_VERSION.search(read_source(os.path.join(os.path.dirname(spec.origin), "version.py")) or "")
    if found is not None:
        return found[1]
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _missing_features(features: str) -> list[str] | None:
    """The features that this processor lacks; None if it does not tell, or one of them is not known."""
    flags = _flags()
    if not flags or any(name not in _FEATURES for name in features.split()):
        return None
    return [name for name in features.split() if not flags.issuperset(_FEATURES[name])]


def _flags() -> frozenset[str]:
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            return frozenset(next((line.partition(":")[2] for line in file if line.startswith("flags")), "").split())
    except OSError:
        return frozenset()


# --- the source ---------------------------------------------------------------------------------------------------------


def _of_sources(artifact: Artifact, compared: list[str], left: list[str]) -> Iterator[Difference]:
    """Functions, and the globals that they read, whose text is not what it was."""
    told: set[tuple[str, str]] = set()
    for source in artifact.sources:
        is_file = os.path.isabs(source.file) and source.file.endswith(".py") and os.path.isfile(source.file)
        text = read_source(source.file) if is_file else ""
        old, new = parse_text(source.text), parse_text(text or "")
        function = function_of(old, source) if old is not None else None
        if not text or old is None or new is None or function is None:
            left.append(f"the source of {source.module}:{source.first}")
            continue
        try:
            changed = list(_changed(function, old, new, source.file))
        except RecursionError:
            left.append(f"the source of `{function.name}`, which is nested too deeply")
            continue
        compared.append(f"the source of `{function.name}`")
        for difference in changed:
            if (source.file, difference.what) not in told:
                told.add((source.file, difference.what))
                yield difference


def _changed(function: Function, old: ast.Module, new: ast.Module, file: str) -> Iterator[Difference]:
    twins = [node for node in ast.walk(new) if isinstance(node, Function) and node.name == function.name]
    if not twins:
        yield Difference(f"`{function.name}` is not in the file any more.", file)
    elif all(ast.dump(twin) != ast.dump(function) for twin in twins):
        yield Difference(f"`{function.name}` has changed since it was made.", file, twins[0].lineno)
    read = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
    before, now = _globals(old), _globals(new)
    for name in sorted(read & before.keys()):
        was, here = before[name], now.get(name)
        if here is None:
            yield Difference(f"The global `{name}` is gone; it was {_short(was)} when it was made.", file)
        elif ast.dump(was) != ast.dump(here):
            what = f"The global `{name}` was {_short(was)} when it was made and is {_short(here)} now."
            yield Difference(what, file, here.lineno)


def _short(value: ast.expr) -> str:
    text = ast.unparse(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _globals(tree: ast.Module) -> dict[str, ast.expr]:
    """The last value of each global that is assigned at the top of a module."""
    found: dict[str, ast.expr] = {}
    for node in tree.body:
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        value = node.value if isinstance(node, (ast.Assign, ast.AnnAssign)) else None
        for target in targets:
            if isinstance(target, ast.Name) and value is not None:
                found[target.id] = value
    return found


# --- a run --------------------------------------------------------------------------------------------------------------


def _of_run(artifact: Artifact, store: Store, run: str, compared: list[str], left: list[str]) -> Iterator[Difference]:
    keys = [
        (compile, key, graphs.get(stage.id.replace(CACHE_KEY.name, POST_GRAD_GRAPH.name), ""))
        for compile in store.report(run, sizes=False).compiles
        for graphs in [{stage.id: stage.id for stage in compile.stages if stage.name == POST_GRAD_GRAPH.name}]
        for stage in compile.stages
        if stage.name == CACHE_KEY.name and (key := load_key(store, run, stage.id)) is not None
    ]
    if (artifact.keys or artifact.inputs) and not keys:
        left.append(f"inputs and cache keys: the run {run} has none (irscope run --lane deep has)")
        return
    keys = [(compile, key, store.stage_text(run, graph) if graph else "") for compile, key, graph in keys]
    if artifact.inputs:
        yield from _of_inputs(artifact, keys, compared, left)
    else:
        yield from _of_keys(artifact, keys, compared)


def _of_keys(artifact: Artifact, keys: list[_Keyed], compared: list[str]) -> Iterator[Difference]:
    """What differs between each graph of the run and the entry that is nearest to it: its graph, then its key."""
    for compile, key, graph in keys if artifact.keys else ():
        compared.append(f"the cache key of {compile.title}")
        is_elsewhere, said, made = _nearest_entry(artifact, compile, key, graph)
        if said and is_elsewhere and is_other(made, graph):
            said, changed = ["it has no entry for this graph"], []
        else:
            changed = graph_changes(made, graph) if said and made and graph else []
        for what in said:
            if what != OTHER_GRAPH or not changed:
                yield Difference(f"{compile.title}: {what}.", compile.file, compile.line)
        yield from changed


def _nearest_entry(artifact: Artifact, compile: Compile, key: CacheKey, graph: str) -> tuple[bool, list[str], str]:
    """Whether the entry that is nearest to a graph came from other functions, what differs in its key, and its graph."""

    def rank(entry: tuple[bool, list[str], str]) -> tuple[bool, int, int]:
        is_elsewhere, said, made = entry
        apart = distance(made, graph) if made else 1
        return is_elsewhere, apart + len(said), apart

    graphs = ((lines, artifact.lowered.get(digest, "")) for digest, lines in artifact.keys.items())
    entries = (
        (compile.function not in functions_of(made), nearest([parts_of(lines)], key), made) for lines, made in graphs
    )
    return min(entries, key=rank)


def _of_inputs(artifact: Artifact, keys: list[_Keyed], compared: list[str], left: list[str]) -> Iterator[Difference]:
    """What differs between the inputs of an artifact and the graph of the run that is nearest to it."""
    names = {name.removesuffix(".forward") for name, _, _ in artifact.functions}
    made = next(iter(artifact.lowered.values()), "")
    found = [
        (compile, _inputs_of(artifact, key), graph)
        for compile, key, graph in keys
        if not names or compile.title in names or compile.function in names
    ]
    if not found:
        left.append(f"inputs: the run does not compile {listed(sorted(names))}")
        return
    compile, said, graph, is_unlike = _nearest_compile(artifact, found, made)
    if is_unlike and not names:
        left.append("inputs: the run compiles nothing that is like it")
        return
    compared.append(f"the inputs of {compile.title}")
    versions = {parts.get(_TORCH) for parts in map(parts_of, artifact.keys.values())} - {None}
    if versions and keys[0][1].parts.get(_TORCH) not in versions:
        yield Difference(f"{NEW_VERSION}.")
    yield from (Difference(what, compile.file, compile.line) for what in said)
    if made and graph:
        compared.append(f"the graph of {compile.title}")
        yield from graph_changes(made, graph)


def _nearest_compile(
    artifact: Artifact, found: list[tuple[Compile, list[str], str]], made: str
) -> tuple[Compile, list[str], str, bool]:
    """The compile that is nearest to an artifact, what differs in its inputs, its graph, and whether it is another function's."""
    texts = "\n".join([*artifact.graphs.values(), *artifact.kernels.values()])
    kernels = set(_KERNEL.findall(texts))
    compile, said, graph = min(found, key=lambda one: _rank(one, made, kernels))
    is_unlike = is_other(made, graph) if made else bool(kernels) and _likeness(kernels, compile) < _LEAST_ALIKE
    return compile, said, graph, is_unlike


def _rank(found: tuple[Compile, list[str], str], made: str, kernels: set[str]) -> tuple[bool, int, float, int]:
    """How far a compile is from an artifact: its function, its graph, then its kernels, then its inputs."""
    compile, said, graph = found
    is_elsewhere = bool(made) and compile.function not in functions_of(made)
    return is_elsewhere, distance(made, graph) if made else 0, -_likeness(kernels, compile), len(said)


def _likeness(kernels: set[str], compile: Compile) -> float:
    """The part of the operations in the names of an artifact's kernels and of a compile's that both have."""
    names = [name for stage in compile.stages if _KERNEL.fullmatch(name := stage.id.rpartition("/")[2])]
    made, now = ({word for name in some for word in _WORD.findall(name)} for some in (kernels, names))
    return len(made & now) / max(len(made | now), 1)


def _inputs_of(artifact: Artifact, key: CacheKey) -> list[str]:
    """What differs between the inputs of an artifact and those of a run's graph."""
    now = [telling_fields(text) for name, (_, text) in key.parts.items() if name.startswith("example_inputs[")]
    if artifact.weights:  # the graph of a module has its parameters among its inputs
        pairs = _paired({**artifact.weights, **artifact.inputs}, now)
    else:
        pairs = list(zip(artifact.inputs.items(), now, strict=False))
    said = [words for (name, was), here in pairs if (words := unfit(name, was, here))]
    return said + list(unmet(artifact.constraints, {name: here.get("shape", "") for (name, _), here in pairs}))


_Named = tuple[str, dict[str, str]]


def _paired(made: dict[str, dict[str, str]], now: list[dict[str, str]]) -> list[tuple[_Named, dict[str, str]]]:
    """Each input of an artifact with one of a graph's that it fits, or else with the one that is most like it."""
    left, pairs, rest = list(now), [], []
    for name, was in made.items():
        same = next((one for one in left if likeness(was, one) == len(WORDS)), None)
        if same is None:
            rest.append((name, was))
        else:
            left.remove(same)
            pairs.append(((name, was), same))
    for name, was in rest:
        if left:
            nearest_one = max(left, key=lambda one: (likeness(was, one), _rank_of(was) == _rank_of(one)))
            left.remove(nearest_one)
            pairs.append(((name, was), nearest_one))
    return pairs


def _rank_of(facts: dict[str, str]) -> int:
    return facts.get("shape", "").count(",")
