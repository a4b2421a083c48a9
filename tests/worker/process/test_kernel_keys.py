"""Kernels that another checkout compiled get the names that Inductor looks for in this one."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import REPOSITORY, run_plain_forked, write
from versions import OWN, torch_version

SCRIPT = """\
import sys
from pathlib import Path
import torch
import torch._inductor.codecache as codecache
sys.path.insert(0, SCRIPTS)
import kernel_keys

folder = Path(FOLDER)
torch.compile(lambda x: x.sin() * 2 + 1)(torch.ones(64))
sources = sorted(folder.glob("*/*.main.cpp"))
for source in sources:
    text, name = source.read_text().strip(), source.name.partition(".")[0]
    command = next(each for each in kernel_keys.commands(codecache) if codecache.code_hash(text, f"None {each}") == name)
    other = codecache.code_hash(text, "None " + command.replace(sys.prefix, "/other/.venv"))
    kernel_keys.move(source, folder / other[1:3] / f"{other}.main.cpp")
sys.argv = ["kernel_keys.py", str(folder), "/other/.venv"]
kernel_keys.main()
assert sources and sorted(folder.glob("*/*.main.cpp")) == sources
assert all(source.with_suffix(".so").stat().st_size > 1000 for source in sources)
"""


@pytest.mark.skipif(torch_version() != OWN, reason="the tests' kernels are kept for this version of torch only")
def test_kernels_of_another_checkout_get_the_names_of_this_one(tmp_path: Path) -> None:
    kernels = tmp_path / "kernels"
    source = SCRIPT.replace("SCRIPTS", repr(str(REPOSITORY / "scripts"))).replace("FOLDER", repr(str(kernels)))
    before = f"import os\nos.environ['TORCHINDUCTOR_CACHE_DIR'] = {str(kernels)!r}\n"
    done = run_plain_forked(write(tmp_path, source), before=before)
    assert (done.returncode, done.stdout) == (0, "1 kernels of /other/.venv are used\n"), done.stderr
