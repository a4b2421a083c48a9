"""How long lens, hover and marks of measured time take in the server, after a profile of a large model.

    .venv/bin/python benchmarks/measured_time.py [LINES]

Makes a store with a profile of LINES lines (2,000) of one file, each with four kernels, and asks the server's handlers as
an editor does: once when the profile is read from the store, as in a new session; then after a profile, the first time and
20 times more. The goal is 50 ms after a profile.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from irscope.profiling.profile import CudaGraphs, MeasuredKernel, MeasuredLine, Profile
from irscope.protocol import Compile, CompileOutcome, Lane, Origin, Outcome, OutcomeKind, to_json
from irscope.store.store import Store
from irscope_server.app.features import make_server
from irscope_server.base.archive import Archive
from irscope_server.base.params import UriParams
from irscope_server.base.texts import file_key
from irscope_server.language.hovers import hover_at
from irscope_server.language.regions import regions
from irscope_server.language.time_lenses import time_lenses
from lsprotocol import types
from pygls.workspace import Workspace

_KERNELS = 4
_DEAR = 30
"""Lines that take enough of a step to have a lens."""


def _made(folder: Path, lines: int) -> tuple[Path, Path]:
    script = folder / "train.py"
    body = "".join(f"    x = x * {n} + y\n" for n in range(lines))
    script.write_text(f"import torch\n\n\n@torch.compile\ndef f(x, y):\n{body}    return x\n")
    path = str(script)
    first = 6
    kernels = tuple(
        MeasuredKernel(f"triton_poi_fused_add_mul_{line}_{n}", "0/0/output-code", 1e-6, 1, (Origin(path, line),), 5e-7, "memory", 1e6)
        for line in range(first, first + lines)
        for n in range(_KERNELS)
    )  # fmt: skip
    rows = tuple(
        MeasuredLine(
            path, line, 4e-6, 0.0, 2e-6, 4, tuple(one.name for one in kernels[_KERNELS * at : _KERNELS * (at + 1)])
        )
        for at, line in enumerate(range(first, first + lines))
    )
    step = 1e-3 * _DEAR + 4e-6 * lines
    store_path = folder / "runs.db"
    with Store(str(store_path)) as store:
        run = store.create_run(path, (), Lane.DEEP, "")
        compile = Compile("0/0", "f", path, 5, CompileOutcome.COMPILED, 0, lines, 1.0)
        store.put_compile(run, compile)
        store.put_source(run, path, script.read_text())
        store.set_outcome(run, Outcome(OutcomeKind.COMPLETED, 0, "", 1.0))
        store.put_profile(
            run, to_json(Profile(run, 20, step, step, step, rows, kernels, (), CudaGraphs(0, 0), peaks="a GPU"))
        )
    return script, store_path


async def _measured(script: Path, store: Path, lines: int) -> None:
    server = make_server()
    server.archive = Archive(str(store))
    server.protocol._workspace = Workspace(None, position_encoding=types.PositionEncodingKind.Utf16)
    uri = script.as_uri()
    server.workspace.put_text_document(types.TextDocumentItem(uri, "python", 1, script.read_text()))
    server.remember_open(uri, str(script))
    context: Any = server
    key = file_key(str(script))

    async def lenses() -> object:
        found = time_lenses(context, key, await server.profiles.touching(key))
        assert len(found) > 0
        return found

    async def hover() -> object:
        found = await hover_at(context, key, types.Position(5 + lines // 2, 6))
        assert found is not None and "**Measured**" in str(found.contents)
        return found

    async def marks() -> object:
        found = await regions(context, UriParams(uri))
        assert sum(one.kind == "measured" for one in found.regions) == lines
        return found

    work: dict[str, Callable[[], Awaitable[object]]] = {"lenses": lenses, "hover": hover, "marks": marks}
    start = time.perf_counter()
    await lenses()
    print(f"from the store, in a thread: {1e3 * (time.perf_counter() - start):.0f} ms")
    print("          first ms  median ms  longest ms")
    known = await server.profiles.touching(key)
    assert known is not None
    for name, one in work.items():
        server.profiles.remember(str(script), known.ended)  # as a profile that ends just now
        seconds = []
        for _ in range(21):
            start = time.perf_counter()
            await one()
            seconds.append(1e3 * (time.perf_counter() - start))
        print(f"{name:8} {seconds[0]:9.1f} {statistics.median(seconds[1:]):10.1f} {max(seconds[1:]):11.1f}")
    server.close()


def main() -> None:
    """Measures the handlers."""
    lines = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    with tempfile.TemporaryDirectory() as folder:
        script, store = _made(Path(folder), lines)
        asyncio.run(_measured(script, store, lines))


if __name__ == "__main__":
    main()
