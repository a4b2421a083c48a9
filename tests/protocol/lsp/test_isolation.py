"""The server never loads torch, needs nothing but its own libraries, starts fast and stays small."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from irscope.protocol import to_json
from lsp_editor import Editor, StartEditor, until
from made import GRAPH, SCRIPT, compile_of, finding, kernel, stage

ROOT = Path(__file__).parents[3]
LIBRARIES = (
    "pygls",
    "lsprotocol",
    "cattrs",
    "cattr",
    "attrs",
    "attr",
    "typing_extensions",
    "exceptiongroup",
)

ISOLATED = """\
import sys
sys.path[:0] = {paths!r}
class NoTorch:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "numpy", "triton", "sympy"):
            raise AssertionError("the server imports " + name)
sys.meta_path.insert(0, NoTorch())
{main}
"""


@pytest.fixture
def isolated(tmp_path: Path) -> Any:
    """Writes a launcher that sees only the server's own libraries and refuses to import torch."""
    libraries = tmp_path / "libraries"
    libraries.mkdir()
    for name in LIBRARIES:
        spec = importlib.util.find_spec(name)
        if spec is None or spec.origin is None:
            continue
        origin = Path(spec.origin)
        source = origin.parent if origin.name == "__init__.py" else origin
        (libraries / source.name).symlink_to(source)

    def write(main: str) -> list[str]:
        launcher = tmp_path / "launcher.py"
        paths = [str(ROOT / "server"), str(ROOT / "compiler"), str(libraries), str(Path(__file__).parents[1])]
        launcher.write_text(ISOLATED.format(paths=paths, main=main))
        return [sys.executable, "-I", "-S", str(launcher)]

    return write


async def test_a_whole_session_without_torch(isolated: Any, tmp_path: Path, play: Any, store_path: str) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    file = str(script)
    path = play(
        {
            "findings": [to_json(finding(file, 6, 4, 15))],
            "compiles": [
                [to_json(compile_of(file)), [[to_json(stage("0/0", "dynamo-graph")), GRAPH.format(script=file)]]]
            ],
            "kernels": [to_json(kernel("k0", "0/0", (file, 5)))],
        }
    )
    modules = tmp_path / "modules.json"
    command = isolated(
        "import os, json\n"
        "exit = os._exit\n"
        f"def tell(code):\n    open({str(modules)!r}, 'w').write(json.dumps(sorted(sys.modules)))\n    exit(code)\n"
        "os._exit = tell\n"
        "import playing_server\n"
        "import irscope_server.app.serve as serve\n"
        "serve_stdio = serve.serve_stdio\n"
        "serve.serve_stdio = lambda: serve_stdio(playing_server.execute)\n"
        "from irscope_server.__main__ import main\n"
        "main([])\n"
    )
    editor = await Editor.start(
        command, options={"storePath": store_path}, env={**os.environ, "IRSCOPE_TEST_PLAY": str(path)}
    )
    try:
        uri = editor.open(script)
        await editor.until_ended()
        await editor.until(lambda: editor.codes(uri) == ["GB0059"])
        await editor.lenses(uri)
        await editor.hover(uri, 5, 6)
        run = (await editor.request("irscope/kernelsAt", uri=uri, line=4, run=True)).run
        await editor.request("irscope/stagesOf", uri=uri)
        await editor.request("irscope/report", run=run)
        assert (await editor.request("irscope/graph", run=run, stage="0/0/dynamo-graph")).nodes.name
        await editor.request("irscope/document", uri=f"irscope:/{run}/0/0/dynamo-graph.py")
    finally:
        await editor.close()
    await until(lambda: modules.exists() and modules.stat().st_size > 0, 5)
    loaded = {name.partition(".")[0] for name in json.loads(modules.read_text())}
    foreign = loaded - set(sys.stdlib_module_names) - set(LIBRARIES)
    assert foreign == {"irscope", "irscope_server", "playing_server", "__main__"}
    assert {"irscope", "irscope_server", "pygls"} <= loaded


def test_the_blocker_blocks(isolated: Any) -> None:
    done = subprocess.run(isolated("import torch"), capture_output=True, text=True)
    assert done.returncode != 0 and "the server imports torch" in done.stderr


def test_the_command_line_answers_without_the_libraries() -> None:
    """``--help`` and ``--version`` answer without the protocol's libraries."""
    code = "import sys\nfrom irscope_server.__main__ import main\ntry:\n    main(['--version'])\nexcept SystemExit:\n    print('pygls' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[1] == "False"


async def test_it_is_small(start_editor: StartEditor, tmp_path: Path, play: Any) -> None:
    """A loose bound, so that a heavy import is noticed; the figure itself is measured in benchmarks/server.py."""
    play()
    editor = await start_editor(playing=True, fresh=True)
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    uri = editor.open(script)
    await editor.until_ended()
    await editor.lenses(uri)
    process = editor.client._server
    assert process
    status = Path(f"/proc/{process.pid}/status").read_text()
    kilobytes = int(next(line for line in status.split("\n") if line.startswith("VmRSS")).split()[1])
    assert kilobytes < 80_000
