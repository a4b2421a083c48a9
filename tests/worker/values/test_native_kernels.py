"""A C++ kernel with address and undefined-behaviour sanitizers, and the first value that is not finite that it stores."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import pytest
from irscope.cli import kernels
from irscope.cli.main import main
from irscope.driver.driver import RunSpec, _how
from irscope.ir.cpp_kernels import is_cpp, parameters_of, watched
from irscope.lowering.cpp import sanitized
from irscope.store.file import default_path
from irscope.values.kernel.running import run_kernel
from kernel_runs import NAME, with_a_kernel

KERNEL = """\
#include <torch/csrc/inductor/cpp_prefix.h>
extern "C"  void  kernel(const float* in_ptr0,
                       float* out_ptr0,
                       const int64_t ks0)
{
    for(int64_t x0=static_cast<int64_t>(0L); x0<static_cast<int64_t>(ks0); x0+=static_cast<int64_t>(1L))
    {
        auto tmp0 = in_ptr0[static_cast<int64_t>(x0)];
        auto tmp1 = std::log(tmp0);
        out_ptr0[static_cast<int64_t>(x0)] = tmp1;
    }
}
"""
_GRAPH = """\
class GraphModule(torch.nn.Module):
    def forward(self, arg0_1: "f32[8][1]cpu"):
        log: "f32[8][1]cpu" = torch.ops.aten.log.default(arg0_1);  arg0_1 = None
        return (log,)
"""


def test_the_text_of_a_cpp_kernel() -> None:
    assert is_cpp(KERNEL) and parameters_of(KERNEL) == {"in_ptr0": "*fp32", "out_ptr0": "*fp32", "ks0": "i64"}
    rows = watched(KERNEL).split("\n")
    stored = next(row for row in rows if row.lstrip().startswith("out_ptr0["))
    assert stored.endswith("irscope_stored(10, out_ptr0, &(out_ptr0[static_cast<int64_t>(x0)]), 1);")
    vector = "tmp1.store(out_ptr0 + static_cast<int64_t>(x0), static_cast<int64_t>(8L));"
    told = "irscope_stored(10, out_ptr0, out_ptr0 + static_cast<int64_t>(x0), static_cast<int64_t>(8L));"
    assert told in watched(KERNEL.replace("out_ptr0[static_cast<int64_t>(x0)] = tmp1;", vector))


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("std::log(tmp0)", 'system("x")', "calls system"),
        ("std::log(tmp0)", "::popen(0, 0)", "calls popen"),
        ("#include <torch/csrc/inductor/cpp_prefix.h>", "#include <unistd.h>", "has #"),
        ("auto tmp1", "asm volatile; auto tmp1", "has asm"),
    ],
)
def test_a_text_that_is_no_kernel_is_not_compiled(old: str, new: str, told: str) -> None:
    with pytest.raises(LookupError, match=told):
        watched(KERNEL.replace(old, new))


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("old", "new", "kind", "line"),
    [
        ("std::log(tmp0)", "std::log(tmp0 - tmp0)", "non-finite", 10),
        ("in_ptr0[static_cast<int64_t>(x0)]", "in_ptr0[static_cast<int64_t>(x0 + 1)]", "out-of-bounds-read", 8),
        ("out_ptr0[static_cast<int64_t>(x0)]", "out_ptr0[static_cast<int64_t>(x0 + 1)]", "out-of-bounds-write", 10),
        ("std::log(tmp0)", "std::log(tmp0) + float(int(1 << 30) * int(ks0))", "undefined", 9),
    ],
)
def test_what_the_sanitizers_find(old: str, new: str, kind: str, line: int, tmp_path: Path) -> None:
    text = KERNEL.replace(old, new)
    library, env = sanitized(text, sys.executable, str(tmp_path))
    form = {"shape": [8], "strides": [1], "offset": 0, "dtype": "float32", "held": None}
    given = {"memory": "arg0_1", "holds": "arg0_1", "name": "arg0_1", **form}
    made = {"memory": "buf0", "holds": "", "name": "buf0", **form}
    request = {
        "kernel": "cpp_fused_log_0", "text": text, "library": library, "arguments": [given, made, 8], "graph": _GRAPH,
        "nodes": {"buf0": "log"}, "known": [], "seconds": 60.0, "memory": 0, "step": False,
    }  # fmt: skip
    answer = run_kernel(sys.executable, request, env)
    found = [(each["kind"], each["line"]) for each in answer["problems"]]
    assert (kind, line) in found and (kind == "out-of-bounds-read" or len(found) == 1)  # what is read there may be NaN


# --- trust --------------------------------------------------------------------------------------------------------------

DIGEST = hashlib.sha256(KERNEL.encode()).hexdigest()
RAN = "It was compiled."
_HERE = _how(RunSpec("model.py"))


def _asked(store: str, folder: Path, how: dict[str, object], monkeypatch: pytest.MonkeyPatch, *more: str) -> int:
    """What `irscope kernel` says of a C++ kernel of a store, without a compiler."""

    def compiled(*_: object) -> None:
        raise LookupError(RAN)

    monkeypatch.setattr(kernels, "sanitized", compiled)
    with_a_kernel(Path(store), folder, KERNEL, how)
    return main(["kernel", "--kernel", NAME, "--store", store, *more])


@pytest.fixture
def own_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The path of the store that is the user's own."""
    for name in ("XDG_CACHE_HOME", "HOME", "LOCALAPPDATA"):
        monkeypatch.setenv(name, str(tmp_path / "cache"))
    monkeypatch.delenv("IRSCOPE_STORE", raising=False)
    return default_path()


@pytest.mark.parametrize("trusted", ["", "0" * 64, DIGEST[:11], f"x{DIGEST}"])
def test_a_cpp_kernel_of_another_store_is_not_compiled(
    trusted: str, own_store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also one that claims to have been made here; the refusal has the command to repeat."""
    store = str(tmp_path / "runs.db")
    assert _asked(store, tmp_path, _HERE, monkeypatch, *(["--trust", trusted] if trusted else [])) == 3
    told = capsys.readouterr().err
    assert f"{DIGEST}{f', not {trusted}' if trusted else ''}. Nothing was loaded." in told
    assert (
        told.rstrip().endswith(f" --trust {DIGEST[:12]}") and f"irscope kernel --kernel {NAME} --store {store}" in told
    )


@pytest.mark.parametrize(
    "how", [{}, {"entry": "trace", "target": "log", "cwd": "/", "variables": []}, {**_HERE, "machine": "elsewhere"}]
)
def test_a_cpp_kernel_that_was_not_made_here_is_not_compiled(
    how: dict[str, object], own_store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though it is in the user's own store: as `irscope open` puts it there."""
    assert _asked(own_store, tmp_path, how, monkeypatch) == 3


def test_a_store_that_a_variable_names_is_not_the_users_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IRSCOPE_STORE", str(tmp_path / "runs.db"))
    assert _asked(str(tmp_path / "runs.db"), tmp_path, _HERE, monkeypatch) == 3


def test_a_cpp_kernel_that_is_trusted_runs(
    own_store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """By its digest, or because a script made it here."""
    assert _asked(own_store, tmp_path, _HERE, monkeypatch) == 2 and RAN in capsys.readouterr().err
    assert _asked(str(tmp_path / "runs.db"), tmp_path, {}, monkeypatch, "--trust", DIGEST[:12].upper()) == 2
    assert RAN in capsys.readouterr().err
