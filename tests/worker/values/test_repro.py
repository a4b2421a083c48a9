"""`irscope repro` on real runs: what is wrong is planted in every Python process, as it would be in torch itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support import run_cli, run_plain_forked, write
from test_values import ERF, WRONG_ERF

pytestmark = pytest.mark.nightly
NO_ERF = WRONG_ERF.replace("lambda x: module.mul(right(x), 1.01)", "no_erf").replace(
    "import torch\n", "import torch\n            def no_erf(x): raise IndexError('no erf here')\n"
)
LONG = """\
import torch

@torch.compile
def f(x):
    y = torch.softmax(x.sin() + 1, -1) * x.cos()
    return (y.erf() * y).sum(-1).tanh()

f(torch.randn(64, 256))
"""
SHORT = ERF.replace("x.erf()", "x.sin().erf()")


class Repro:
    """The commands with a store of the user's own, and with what is planted."""

    def __init__(self, folder: Path, planted: str = "") -> None:
        write(folder, planted, "site/sitecustomize.py")
        self._env = {
            "PYTHONPATH": str(folder / "site"), "XDG_CACHE_HOME": str(folder / "cache"), "IRSCOPE_STORE": "",
            "TORCHINDUCTOR_CACHE_DIR": str(folder / "kernels"),
        }  # fmt: skip
        self.path, self._folder = folder / "repro.py", folder

    def __call__(self, script: str, *command: str, kernel: str = "") -> tuple[int, dict[str, Any]]:
        run_cli(*command, write(self._folder, script), env=self._env)
        option = ["--kernel", kernel] if kernel else []
        done = run_cli("repro", "--json", *option, "-o", self.path, env=self._env)
        assert done.stdout, done.stderr
        return done.returncode, json.loads(done.stdout)


def test_a_compile_error_becomes_the_operation_that_fails(tmp_path: Path) -> None:
    code, found = (repro := Repro(tmp_path, NO_ERF))(SHORT, "run")
    assert (code, found["kind"], found["shown"]) == (0, "compile-error", True), found["message"]
    assert "no erf here" in found["message"]
    text = repro.path.read_text()
    assert text.count("torch.ops.aten.") == 1 and "aten.erf" in text
    assert str(tmp_path) not in text
    assert run_plain_forked(repro.path).returncode == 0  # without what is planted it compiles


def test_a_lowering_of_the_script_is_not_in_the_script_that_is_written(tmp_path: Path) -> None:
    own = NO_ERF.replace(
        "sys.meta_path.insert(0, Wrong())", "sys.meta_path.insert(0, Wrong())\nimport torch._inductor.lowering\n"
    )
    code, found = Repro(tmp_path)(own + LONG, "run")
    assert (code, found["shown"]) == (1, False)
    assert found["message"].startswith("does not show it, in a fresh process. The script itself may cause it")


def test_a_wrong_number_that_was_found_before(tmp_path: Path) -> None:
    code, found = (repro := Repro(tmp_path, WRONG_ERF))(ERF, "diverge")
    assert (code, found["kind"], found["shown"]) == (0, "wrong-number", True), found["message"]
    assert "differs from eager mode" in found["message"]
    assert repro.path.read_text().count("torch.ops.") == 1


def test_a_kernel_takes_about_as_long_alone(tmp_path: Path) -> None:
    script = LONG.replace("64, 256", "512, 2048")
    code, found = (repro := Repro(tmp_path))(
        script, "profile", kernel="cpp_fused__softmax_add_cos_erf_mul_sin_sum_tanh_0"
    )
    assert (code, found["kind"], found["shown"]) == (0, "slow-kernel", True), found["message"]
    assert "in the run: as slow as in the run" in found["message"]
    # Where the run was much slower the script does not show it.
    text = repro.path.read_text()
    seconds = next(line for line in text.split("\n") if line.startswith("SECONDS"))
    repro.path.write_text(text.replace(seconds, "SECONDS = 1e3"))
    assert run_plain_forked(repro.path).returncode == 0
