"""Why a compile of one run cannot use what another run has put into PyTorch's caches: which part of a key differs.

The FX graph cache and the AOTAutograd cache tell the parts of their keys.  Triton's cache is known by what makes its key:
the source of a kernel, its signature, its constants, its configuration, and the device.
"""

from __future__ import annotations

import ast
import os
from collections import Counter
from collections.abc import Iterator, Mapping

from irscope.findings.kinds.cache_miss import CacheKey, changes
from irscope.pipeline_captures.inductor.cache_keys import load_key
from irscope.pipelines.inductor.stages import AOT_CACHE_KEY, CACHE_KEY
from irscope.protocol import Compile, Kernel, Report
from irscope.store.store import Store
from irscope.vocabulary.records import dataclass

FX, AOT, TRITON = "FX graph cache", "AOTAutograd cache", "Triton's cache"
_CACHES = {AOT_CACHE_KEY.name: AOT, CACHE_KEY.name: FX}
_META = ("signature", "constants", "configs", "device")
_Which = tuple[str, str, int]


@dataclass(frozen=True)
class KeyDifference:
    """One key of two runs.

    Args:
        cache: The cache that it belongs to.
        what: The graph (``0/0/cache-key``) or the kernel, in the newer run.
        changes: The parts that differ, in words; empty if the keys are the same.
    """

    cache: str
    what: str
    file: str
    line: int
    function: str
    changes: tuple[str, ...]


@dataclass(frozen=True)
class KeyComparison:
    """All keys of two runs.

    Args:
        only_before, only_after: Functions whose compiles one of the runs alone has.
        without_keys: Functions of which no key is known in one of the runs.
    """

    before: str
    after: str
    keys: tuple[KeyDifference, ...]
    only_before: tuple[str, ...]
    only_after: tuple[str, ...]
    without_keys: tuple[str, ...]


def compare_keys(store: Store, before: str, after: str, other: Store | None = None) -> KeyComparison:
    """Compares the keys of two stored runs; ``other`` is the store of the newer one if it is not the same.

    Compiles are matched by file name, function and how often the function was compiled.
    Raises LookupError if one of the runs is not there.
    """
    newer = other or store
    old, new = store.report(before, sizes=False), newer.report(after, sizes=False)
    mine, theirs = _by_function(old), _by_function(new)
    found: list[KeyDifference] = []
    unknown: list[str] = []
    for which, compile in theirs.items():
        if which not in mine:
            continue
        pair = list(_keys(store, before, mine[which], newer, after, compile))
        kernels = list(_kernels(store, old, mine[which], newer, new, compile))
        if not pair and not kernels and compile.graph_ops:
            unknown.append(compile.title)
        found += [*pair, *kernels]
    return KeyComparison(
        before,
        after,
        tuple(found),
        tuple(compile.title for which, compile in mine.items() if which not in theirs),
        tuple(compile.title for which, compile in theirs.items() if which not in mine),
        tuple(unknown),
    )


def _by_function(report: Report) -> dict[_Which, Compile]:
    found: dict[_Which, Compile] = {}
    counted: Counter[tuple[str, str]] = Counter()
    for compile in report.compiles:
        file, function = os.path.basename(compile.file), compile.qualified or compile.function
        found[file, function, counted[file, function]] = compile
        counted[file, function] += 1
    return found


def _keys(
    store: Store, before: str, mine: Compile, newer: Store, after: str, theirs: Compile
) -> Iterator[KeyDifference]:
    there = {stage.id.rpartition("/")[2]: stage for stage in mine.stages if stage.name in _CACHES}
    for stage in theirs.stages:
        twin = there.get(stage.id.rpartition("/")[2])
        if stage.name not in _CACHES or twin is None:
            continue
        a, b = load_key(store, before, twin.id), load_key(newer, after, stage.id)
        if a is not None and b is not None:
            yield KeyDifference(
                _CACHES[stage.name], stage.id, theirs.file, theirs.line, theirs.title, tuple(_words(a, b))
            )


def _words(before: CacheKey, after: CacheKey) -> list[str]:
    """What differs in two keys; where only the function's text does, that."""
    if before.function == after.function:
        return changes(before, after)
    said = changes(before, CacheKey(after.parts, before.function, after.file))
    return ["the source of the function changed", *said]


# --- Triton -----------------------------------------------------------------------------------------------------------


def _kernels(
    store: Store, old: Report, mine: Compile, newer: Store, new: Report, theirs: Compile
) -> Iterator[KeyDifference]:
    there = {kernel.name: kernel for kernel in old.kernels if _is_triton(kernel, mine)}
    for kernel in new.kernels:
        twin = there.get(kernel.name)
        if twin is not None and _is_triton(kernel, theirs):
            texts = store.stage_text(old.run, twin.stage), newer.stage_text(new.run, kernel.stage)
            words = tuple(triton_changes(*texts))
            yield KeyDifference(TRITON, kernel.name, theirs.file, theirs.line, theirs.title, words)


def _is_triton(kernel: Kernel, compile: Compile) -> bool:
    return kernel.compile == compile.id and kernel.language == "triton"


def triton_changes(before: str, after: str) -> list[str]:
    """What differs in the sources of two Triton kernels of Inductor's, in words; nothing is executed."""
    if before == after:
        return []
    old, new = _parts(before), _parts(after)
    if old is None or new is None:
        return ["the source of the kernel changed"]
    names = {"body": "the source of the kernel", **{name: f"`{name}`" for name in _META}}
    said = [f"{names[name]} changed{_values(name, old, new)}" for name in names if old.get(name) != new.get(name)]
    return said or ["what Inductor writes beside the kernel changed"]


def _values(name: str, old: Mapping[str, str], new: Mapping[str, str]) -> str:
    was, now = old.get(name, "none"), new.get(name, "none")
    return "" if name == "body" or len(was) + len(now) > 240 else f": was {was}, now {now}"


def _parts(text: str) -> dict[str, str] | None:
    """The body of a kernel and the entries of ``triton_meta``; None if the text is not a kernel of Inductor's."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None
    function = next((node for node in tree.body if isinstance(node, ast.FunctionDef)), None)
    if function is None:
        return None
    found = {"body": ast.dump(ast.Module([*function.body, ast.Expr(_arguments(function))], []))}
    for call in (one for one in function.decorator_list if isinstance(one, ast.Call)):
        for keyword in call.keywords:
            if keyword.arg == "triton_meta" and isinstance(keyword.value, ast.Dict):
                for key, value in zip(keyword.value.keys, keyword.value.values, strict=True):
                    if isinstance(key, ast.Constant) and key.value in _META:
                        found[str(key.value)] = ast.unparse(value)
    return found


def _arguments(function: ast.FunctionDef) -> ast.expr:
    return ast.Constant(ast.unparse(function.args))
