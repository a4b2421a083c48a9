"""Scripts and library modules, told apart by their syntax trees."""

from __future__ import annotations

from pathlib import Path

import pytest
from irscope_server.running.top_level import does_work

ROOT = Path(__file__).parents[3]

WORK = [
    "import torch\n@torch.compile\ndef f(x): ...\nf(torch.ones(3))",
    "import torch\n@torch.compile\ndef f(x): ...\ny = f(torch.ones(3))",
    "def main(): ...\nif __name__ == '__main__':\n    main()",
    "def main(): ...\nif '__main__' == __name__: main()",
    "def main(): ...\nmain()",
    "from lib import main\nmain()",
    "from lib import step\nimport torch\nout = step(torch.ones(3))",
    "import lib, torch\nout = lib.step(torch.ones(3))",
    "import torch\nmodel = torch.nn.Linear(2, 2)\nout = torch.compile(model)(torch.ones(2))",
    "import torch\nmodel = torch.compile(Net())\nfor batch in data:\n    model(batch)",
    "import torch\nmodel = Net()\nwith torch.no_grad():\n    out = model(torch.ones(2))",
    "import torch\nfor i in range(3):\n    loss = f(i)\n    loss.backward()",
    "import asyncio\nasync def go(): ...\nasyncio.run(go())",
    "import fire\ndef f(): ...\nfire.Fire(f)",
    "import torch\ndef f(x): ...\nassert f(torch.ones(2)) is not None",
    "def update(x): ...\nupdate(torch.ones(2))",
    "try:\n    from lib import run\nexcept ImportError:\n    raise\nrun()",
    "import torch\nprint(torch.compile(lambda x: x + 1)(torch.ones(2)))",
    "def main(): ...\nraise SystemExit(main())",
    "this is no python",
]

NO_WORK = [
    "",
    '"""Only words."""',
    "import torch\n\nclass Net(torch.nn.Module):\n    def forward(self, x): return x",
    "import torch\ndef f(x): ...\ncompiled = torch.compile(f)",
    "import torch\ndef f(x): ...\ncompiled = torch.compile(mode='max-autotune')(f)",
    "import functools, torch\n@functools.partial(torch.compile, dynamic=True)\ndef f(x): ...",
    "import torch\ntorch.manual_seed(0)\ntorch.set_float32_matmul_precision('high')\nTABLE = torch.arange(8)",
    "import logging\nlogger = logging.getLogger(__name__)\nlogger.setLevel(logging.INFO)",
    "from lib.log import get_logger\nlogger = get_logger(__name__)",
    "from typing import TYPE_CHECKING, TypeVar\nT = TypeVar('T')\nif TYPE_CHECKING:\n    import torch",
    "try:\n    import triton\nexcept ImportError:\n    triton = None",
    "import torch._dynamo\ntorch._dynamo.config.recompile_limit = 4",
    "import re, torch\nWORD = re.compile('x')\nDEVICE = torch.device('cuda' if torch.cuda.is_available() else 'cpu')",
    "def register(f): return f\nregister(len)\n__all__ = ['register']\n__all__.append('x')",
    "import torch\nlib = torch.library.Library('mine', 'DEF')\nlib.define('f(Tensor x) -> Tensor')",
    "from pathlib import Path\nROOT = Path(__file__).parent.resolve()",
    "for name in ('a', 'b'):\n    globals()[name] = name",
]


@pytest.mark.parametrize("text", WORK)
def test_a_script(text: str) -> None:
    assert does_work(text)


@pytest.mark.parametrize("text", NO_WORK)
def test_a_library_module(text: str) -> None:
    assert not does_work(text)


def test_the_cases_of_this_repository() -> None:
    """Every script with ground truth does work, and the modules beside them that they import do not."""
    scripts = [*(ROOT / "tests" / "cases").rglob("*.py"), *(ROOT / "examples").rglob("*.py")]
    assert len(scripts) > 20
    libraries = {path for path in scripts if not does_work(path.read_text(encoding="utf-8"))}
    assert libraries == {
        path
        for path in scripts
        if path.parent.name.endswith("_lib") or (path.parent.name == "engine" and path.stem != "serve")
    }
