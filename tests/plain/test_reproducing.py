"""`irscope repro`: the script of a kernel, and what is said of a script that was run in a fresh process."""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from facts import an_outcome
from irscope.cli.main import main
from irscope.driver.reproducing import Script, reproduce, script_of_run
from irscope.internals.failed_programs import minified, repeated
from irscope.ir.launches import launches_in
from irscope.protocol import Lane
from irscope.store.file import default_path
from irscope.store.store import Store
from irscope.system.trust import TrustError
from irscope.values.kernel.alone import timing_script

KERNEL = """\
@triton_heuristics.pointwise(
    triton_meta={'signature': {'in_out_ptr0': '*fp32', 'in_ptr0': '*i64', 'ks0': 'i64', 'xnumel': 'i32', 'XBLOCK': 'constexpr'}},
)
@triton.jit
def triton_0(in_out_ptr0, in_ptr0, ks0, xnumel, XBLOCK : tl.constexpr):
    pass
"""
CODE = f"""\
import torch
from torch._C import _cuda_getCurrentRawStream as get_raw_stream
async_compile = AsyncCompile()
# kernel path: /tmp/mine/xy.py
other = async_compile.triton('other', '''pass''')
triton_0 = async_compile.triton('triton_0', '''
{KERNEL}''')
async_compile.wait(globals())
del async_compile

def call(args):
    arg0_1, arg1_1 = args
    s77 = arg0_1
    assert_size_stride(arg1_1, (s77, 8), (8, 1))
    buf0 = empty_strided_cuda((s77, 8), (8, 1), torch.float32)
    other.run(buf0, 8, stream=stream0)
    buf1 = buf0; del buf0  # reuse
    triton_0_xnumel = 8*s77
    triton_0.run(buf1, arg1_1, s77, triton_0_xnumel, stream=stream0)
    return (buf1,)

def get_args():
    arg0_1 = 12
    arg1_1 = rand_strided((12, 8), (8, 1), device='cuda:0', dtype=torch.int64)
"""


def stored(code: str = CODE) -> Any:
    launches = [each for each in launches_in(code) if each.kernel == "triton_0"]
    return SimpleNamespace(text=KERNEL, kernel=SimpleNamespace(name="triton_0"), launches=launches, code=code)


def test_a_kernel_alone_has_its_definition_its_sizes_and_its_launch() -> None:
    text = timing_script(stored(), 2e-5)
    compile(text, "repro.py", "exec")
    assert "triton_0 = async_compile" in text and "other" not in text and "/tmp/mine" not in text
    assert "\narg0_1 = 12\ns77 = 12\n" in text
    assert 'buf0_0 = rand_strided((s77, 8, ), (8, 1, ), torch.float32, "cuda")' in text
    assert 'arg1_1_1 = rand_strided((s77, 8, ), (8, 1, ), torch.int64, "cuda")' in text
    assert "triton_0.run(buf0_0, arg1_1_1, arg0_1, 8 * s77, stream=get_raw_stream(0))" in text
    assert "SECONDS = 2e-05" in text and "SECONDS" not in timing_script(stored(), None)


def test_an_input_whose_shape_is_not_checked_is_made_as_inductor_makes_it() -> None:
    text = timing_script(stored(CODE.replace("    assert_size_stride(arg1_1, (s77, 8), (8, 1))\n", "")), None)
    assert "\narg1_1 = rand_strided((12, 8), (8, 1), device='cuda:0', dtype=torch.int64)\n" in text
    assert "triton_0.run(buf0_0, arg1_1, arg0_1," in text


def test_a_size_that_is_not_in_the_output_code_is_named() -> None:
    with pytest.raises(LookupError, match="the size s77"):
        timing_script(stored(CODE.replace("arg0_1 = 12", "arg0_1 = given")), None)


def test_a_name_from_elsewhere_is_no_pattern() -> None:
    hostile = stored()
    hostile.kernel.name = "triton_(0"
    assert "other = async_compile" not in timing_script(hostile, None)


def test_a_file_of_the_user_is_not_replaced_unasked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    own = tmp_path / "repro.py"
    own.write_text("mine")
    assert main(["repro", "--store", str(tmp_path / "runs.db")]) == 3
    assert "repro.py is there already" in capsys.readouterr().err
    assert own.read_text() == "mine"


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The user's own, with a run of this machine."""
    monkeypatch.delenv("IRSCOPE_STORE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with Store(default_path()) as store:
        run = store.create_run("/model.py", [], Lane.DEEP, "digest", {"machine": platform.node()})
        store.set_outcome(run, an_outcome())
        yield store


SHOWS = "import sys\nprint('ValueError: mine', file=sys.stderr)\nraise SystemExit(1)\n"


def done(store: Store, script: Script, path: Path, trust: str = "") -> Any:
    report = store.report(store.find_run())
    return reproduce(script, str(path), store, report, sys.executable, os.environ, trust)


def test_a_script_shows_it_only_if_a_fresh_process_printed_it_and_failed(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "repro.py"
    found = done(store, Script("slow-kernel", SHOWS, "ValueError: mine"), path)
    assert found.shown and found.message == "checked: shows it, in a fresh process: ValueError: mine"
    assert path.read_text() == SHOWS
    for text in (SHOWS.replace("mine", "another"), SHOWS.replace("SystemExit(1)", "SystemExit(0)")):
        found = done(store, Script("slow-kernel", text, "ValueError: mine"), path)
        assert not found.shown and found.message.startswith("does not show it")
    found = done(store, Script("slow-kernel", SHOWS, "", why="Not measured."), path)
    assert not found.shown and found.message.startswith("not checked. Not measured.")


MINIFIES = """\
import os
import platform
import sys
if sys.argv[1:2] == ["minify"]:
    assert sys.argv[2:] == ["--no-isolate", "--check-str", "ValueError: mine"]
    open("repro.py", "w").write(SMALLER)
    raise SystemExit(0)
"torch.ops. torch.ops."
"""


@pytest.mark.parametrize(("smaller", "is_taken"), [(SHOWS + "'torch.ops.'\n", True), ("'torch.ops.'\n", False)])
def test_a_smaller_script_is_taken_if_it_shows_the_same(
    store: Store, tmp_path: Path, smaller: str, is_taken: bool
) -> None:
    text = MINIFIES.replace("SMALLER", repr("import os\n" + smaller)) + SHOWS
    found = done(store, Script("compile-error", text, "ValueError: mine"), tmp_path / "repro.py")
    assert found.shown
    assert (tmp_path / "repro.py").read_text() == ("import os\n" + smaller if is_taken else text)


def test_what_the_minifier_wrote_needs_no_folder_and_is_python(tmp_path: Path) -> None:
    (tmp_path / "repro.py").write_text(
        "import os\nos.environ['_TORCHINDUCTOR_PYOBJECT_TENSOR_DATA_PTR'] = '14'\ndef load_args(reader):\n"
        "load_args._version = 0\nx = torch.ops.aten.sin(0)\nf(save_dir='/tmp/run')\nreader.storage('ab12', 4)\n"
    )
    text = minified('"""IndexError"""\nimport os\ntorch.ops.a\ntorch.ops.b\n', str(tmp_path))
    assert text is not None and text.startswith('"""IndexError"""\nimport os\ndef load_args')
    compile(text, "repro.py", "exec")
    assert "/tmp/run" not in text and "ab12" not in text and "DATA_PTR" not in text
    assert minified("torch.ops.a", str(tmp_path)) is None and minified("", str(tmp_path / "none")) is None
    assert repeated("KeyError: 'a' is not in the graph") == " is not in the graph"


def test_a_script_from_elsewhere_is_written_and_not_run(tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    script = Script("slow-kernel", f"open({str(ran)!r}, 'w')\n{SHOWS}", "ValueError: mine")
    with Store(str(tmp_path / "named.db")) as store:
        store.set_outcome(store.create_run("/model.py", [], Lane.DEEP, "digest"), an_outcome())
        with pytest.raises(TrustError, match=r"was written and not run.*--trust") as refused:
            done(store, script, tmp_path / "repro.py")
        assert (tmp_path / "repro.py").exists() and not ran.exists()
        assert done(store, script, tmp_path / "repro.py", str(refused.value).rpartition(" ")[2]).shown
        with pytest.raises(LookupError, match="no compile error"):
            script_of_run(store, store.report(store.find_run()), None)
