"""The script that shows a failed compile by itself, from the frames that an error passed through."""

from __future__ import annotations

import pytest
from irscope.internals.failed_programs import script_of

RUNNABLE = """
import os
os.environ['TORCHINDUCTOR_CACHE_DIR'] = '/tmp/mine'
os.environ['TORCHINDUCTOR_FREEZING'] = '1'
torch._inductor.config.trace.provenance_tracking_level = 1
torch._inductor.config.cpp_wrapper = True

def forward(self, x):
    return {operator}(x)

def load_args(reader):
    reader.symint({size})
"""


def raised(text: str, file: str = "/site-packages/torch/_inductor/compile_fx.py") -> Exception:
    """An error that a function of PyTorch's with this name, file and variable raised."""
    space: dict[str, object] = {}
    source = "def codegen_and_compile(runnable_graph_str):\n    raise RuntimeError('buf1\\n\\nSet TORCH_LOGS')\n"
    exec(compile(source, file, "exec"), space)
    with pytest.raises(RuntimeError) as caught:
        space["codegen_and_compile"](text)  # type: ignore[operator]
    return caught.value


def test_the_script_has_the_error_and_no_setting_of_this_machine() -> None:
    script = script_of(raised(RUNNABLE.format(operator="torch.ops.aten.sin.default", size="3")))
    assert script is not None
    assert script.startswith('"""') and "buf1" in script.split("\n")[0] and "TORCH_LOGS" not in script
    assert "/tmp/mine" not in script and "provenance" not in script
    assert "TORCHINDUCTOR_FREEZING" in script and "cpp_wrapper" in script
    compile(script, "script.py", "exec")


@pytest.mark.parametrize(
    ("operator", "size"),
    [
        ("torch.ops.mine.twice.default", "3"),
        ("torch.ops.aten.sin.default", "j1, expr='s68'"),
    ],
)
def test_a_script_that_would_fail_in_another_way_is_none(operator: str, size: str) -> None:
    assert script_of(raised(RUNNABLE.format(operator=operator, size=size))) is None


def test_an_error_from_elsewhere_has_none() -> None:
    text = RUNNABLE.format(operator="torch.ops.aten.sin.default", size="3")
    assert script_of(raised(text, "/home/me/train.py")) is None
    assert script_of(None) is None
