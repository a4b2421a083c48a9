"""Real artifacts beside runs of the script that they were made for, with one thing changed in each."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPT = """\
import torch
SCALE = 2.0


def helper(x):
    return x.sin() * SCALE


def f(x, y):
    return helper(x) + y


if __name__ == "__main__":
    x, y = torch.randn(8, 128), torch.randn(8, 128)
    torch.compile(f)(x, y)
"""
MAKE = """\
import sys, torch, torch._dynamo
sys.path.insert(0, sys.argv[1])
import step
x, y = torch.randn(8, 128), torch.randn(8, 128)
torch.compile(step.f)(x, y)
with open("mega", "wb") as file:
    file.write(torch.compiler.save_cache_artifacts()[0])
torch._dynamo.reset()
torch._dynamo.config.enable_aot_compile = True
torch.compile(step.f, fullgraph=True).aot_compile(((x, y), {})).save_compiled_function("function")
"""
PLANTED = {
    # what is changed: (text, its replacement, what the Mega-Cache says, what the function says, its line)
    "size": ("128)\n", "1)\n", "argument 1 became [8, 1]", "`y`: the size", 9),
    "batch": ("y = torch.randn(8, 128)", "y = torch.randn(1, 128)", "argument 0 became [1, 128]", "`x`: the size", 9),
    "dtype": ("128)\n", "128, dtype=torch.float64)\n", "argument 1 became torch.float64", "`y`: the dtype", 9),
    "stride": (
        "y = torch.randn(8, 128)",
        "y = torch.randn(128, 8).t()",
        "strides of argument 0",
        "`x`: the strides",
        9,
    ),
    "global": ("SCALE = 2.0", "SCALE = 3.0", "A constant of aten.mul.Tensor was 2.0", "`SCALE` was 2.0", 2),
    "helper": ("x.sin()", "x.cos()", "in `helper` has changed", "`helper` has changed", 5),
    "function": ("helper(x) + y", "helper(x) - y", "in `f` has changed", "`f` has changed", 9),
    "config": (
        "    torch.compile",
        "    torch._inductor.config.max_autotune = True\n    torch.compile",
        "max_autotune",
        "",
        9,
    ),
    "threads": ("    torch.compile", "    torch.set_num_threads(3)\n    torch.compile", "get_num_threads", "", 9),
    "deterministic": (
        "    torch.compile",
        "    torch.use_deterministic_algorithms(True)\n    torch.compile",
        "deterministic",
        "",
        9,
    ),
    "default dtype": (
        "    x, y",
        "    torch.set_default_dtype(torch.float64)\n    x, y",
        "torch.float64",
        "the dtype",
        9,
    ),
    "nothing": ("", "", "", "", 0),
    "comment": ("SCALE = 2.0", "SCALE = 2.0  # of the sine", "", "", 0),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the artifacts."""
    folder = tmp_path_factory.mktemp("artifacts")
    (folder / "step.py").write_text(SCRIPT)
    (folder / "make.py").write_text(MAKE)
    variables = os.environ | {"TORCHINDUCTOR_CACHE_DIR": str(folder / "cache")}
    subprocess.run([sys.executable, "make.py", str(folder)], cwd=folder, env=variables, check=True, timeout=300)
    return folder


def irscope(folder: Path, *arguments: str) -> Any:
    command = [sys.executable, "-m", "irscope", *arguments, "--store", str(folder / "runs.db"), "--json"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True, timeout=300)
    return json.loads(done.stdout)


@pytest.mark.nightly
@pytest.mark.parametrize("name", PLANTED)
def test_what_was_changed_is_named_before_loading(made: Path, name: str) -> None:
    before, after, in_cache, in_function, line = PLANTED[name]
    (made / "step.py").write_text(SCRIPT.replace(before, after, 1) if before else SCRIPT)
    try:
        run = irscope(made, "run", "--lane", "deep", "step.py")["run"]
        for artifact, expected in (("mega", in_cache), ("function", in_function)):
            found = irscope(made, "open", artifact, "--run", run)["fit"]
            assert any("the cache key of" in text or "the inputs of" in text for text in found["compared"])
            words = [one["what"] for one in found["differences"]]
            assert bool(words) == bool(expected), (artifact, words)
            assert all(expected in text for text in words[:1]), (artifact, words)
            if artifact == "function" and expected:
                assert found["differences"][0]["line"] == line
    finally:
        (made / "step.py").write_text(SCRIPT)


SERVE = """\
import sys
import torch, step
for size in (128, int(sys.argv[1])):
    torch.compile(step.f)(torch.randn(8, size), torch.randn(8, size))
"""


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("size", "expected"), [(128, []), (130, ["`x.shape[1]` was 128 when it was made and is 130."])]
)
def test_guards_are_judged_by_the_calls_of_a_script(made: Path, size: int, expected: list[str]) -> None:
    (made / "serve.py").write_text(SERVE)
    digest = hashlib.sha256((made / "function").read_bytes()).hexdigest()
    found = irscope(made, "open", "function", "--trust", digest, "--script", f"serve.py {size}")
    words = [one["what"] for one in found["fit"]["differences"]]
    assert [text for text in words if "`x" in text] == expected
    assert any("with 2 calls" in text for text in found["fit"]["compared"])
    assert all(guard["line"] in (0, 6, 10) for guard in found["guards"])


SHIFT = """\
import sys, torch


class Shift(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.register_buffer("table", torch.arange(size).float())

    def forward(self, x):
        return x[:, None] + self.table[None]


if __name__ == "__main__":
    shift, x = torch.compile(Shift(int(sys.argv[1])), fullgraph=True), torch.ones(4)
    if sys.argv[2:]:
        shift.forward.aot_compile(((x,), {})).save_compiled_function(sys.argv[2])
    else:
        shift(x)
"""


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("size", "expected"), [(6, []), (7, ["`self.table.shape[0]` was 6 when it was made and is 7."])]
)
def test_what_torch_compile_makes_of_a_module_is_not_taken_for_it(
    tmp_path: Path, size: int, expected: list[str]
) -> None:
    (tmp_path / "shift.py").write_text(SHIFT)
    subprocess.run([sys.executable, "shift.py", "6", "saved"], cwd=tmp_path, check=True, timeout=300)
    digest = hashlib.sha256((tmp_path / "saved").read_bytes()).hexdigest()
    found = irscope(tmp_path, "open", "saved", "--trust", digest, "--script", f"shift.py {size}")
    assert [one["what"] for one in found["fit"]["differences"]] == expected


LOAD = {
    "mega": """\
import sys, torch, torch._inductor.config, step
with open("mega", "rb") as file:
    torch.compiler.load_cache_artifacts(file.read())
torch._inductor.config.max_autotune = sys.argv[1] == "other"
torch.compile(step.f)(torch.randn(8, 128), torch.randn(8, 128))
""",
    "function": """\
import sys, torch
with open("function", "rb") as file:
    f = torch.compiler.load_compiled_function(file)
size = 130 if sys.argv[1] == "other" else 128
f(torch.randn(8, size), torch.randn(8, size))
""",
}


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("artifact", "code", "line", "why"),
    [
        ("mega", "mega-cache-miss", 9, "because `torch._inductor.config.max_autotune` became True (was False)."),
        ("function", "saved-function", 5, "`x.shape[1]` was 128 when it was made and is 130."),
    ],
)
@pytest.mark.parametrize("what", ["same", "other"])
def test_what_a_script_loads_is_a_finding_where_it_does_not_match(
    made: Path, tmp_path: Path, artifact: str, code: str, line: int, why: str, what: str
) -> None:
    (made / "use.py").write_text(LOAD[artifact])
    command = [
        sys.executable,
        "-m",
        "irscope",
        "run",
        "--lane",
        "deep",
        "use.py",
        "--json",
        "--store",
        str(tmp_path / "s.db"),
    ]
    variables = os.environ | {"TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run([*command, "--", what], cwd=made, capture_output=True, text=True, env=variables, timeout=300)
    found = [one for one in json.loads(done.stdout)["findings"] if one["code"] == code]
    assert [one["range"]["start"]["line"] for one in found] == ([line] if what == "other" else [])
    assert all(why in one["message"] for one in found)


CALLS_MAKE = """\
import torch, torch._dynamo, served
torch._dynamo.config.enable_aot_compile = True
x = torch.randn(8, 128)
for name, f, args in (("flagged", served.flagged, (x,)), ("closed", served.closed, (x, [x, x]))):
    torch.compile(f, fullgraph=True).aot_compile((args, {})).save_compiled_function(name)
"""
SERVED = """\
import torch


def flagged(x, flag=True, scale=2.0):
    y = x * scale
    return y.sin() if flag else y.cos()


def closed(x, parts):
    for part in parts:
        x = x + part
    return x
"""
CALLS = {
    # the artifact: for each call that does not fit what is said, and the line; calls that fit
    "flagged": (
        {
            "flagged(x, False)": ("`flag` was True when it was made and is False.", 6),
            "flagged(x, True, 3.0)": ("`scale` was 2.0 when it was made and is 3.0.", 5),
            "flagged(torch.randn(8))": ("`x`: rank 2 → 1.", 5),
            "flagged(x.double())": ("`x`: dtype float32 → float64.", 5),
            "flagged(torch.randn(8, 128).requires_grad_())": ("`x` now requires grad.", 5),
            "torch.no_grad()(flagged)(x)": ("global state changed: grad_mode.", 0),
        },
        ("flagged(x)", "flagged(x, scale=2.0)", "flagged(x.clone(), True)"),
    ),
    "closed": (
        {
            "closed(x, [x])": ("`len(parts)` was 2 when it was made and is 1.", 10),
            "closed(torch.randn(8, 130), [torch.randn(8, 130)] * 2)": (
                "`x.shape[1]` was 128 when it was made and is 130.",
                11,
            ),
        },
        ("closed(x, [x, x])",),
    ),
}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with saved functions and the module that they are of."""
    folder = tmp_path_factory.mktemp("served")
    (folder / "served.py").write_text(SERVED)
    (folder / "make.py").write_text(CALLS_MAKE)
    variables = os.environ | {"TORCHINDUCTOR_CACHE_DIR": str(folder / "cache")}
    subprocess.run([sys.executable, "make.py"], cwd=folder, env=variables, check=True, timeout=300)
    return folder


@pytest.mark.nightly
@pytest.mark.parametrize("artifact", CALLS)
@pytest.mark.parametrize("fits", [False, True])
def test_what_a_call_changes_is_named_before_loading(served: Path, artifact: str, fits: bool) -> None:
    planted, same = CALLS[artifact]
    calls = same if fits else tuple(planted)
    (served / "serve.py").write_text(
        "\n".join(["import torch", "from served import *", "x = torch.randn(8, 128)", *calls])
    )
    digest = hashlib.sha256((served / artifact).read_bytes()).hexdigest()
    found = irscope(served, "open", artifact, "--trust", digest, "--script", "serve.py")["fit"]
    assert any(f"with {len(calls)} call" in text for text in found["compared"])
    said = [(one["what"], one["line"]) for one in found["differences"]]
    if fits:
        assert said == []
    else:
        for what, line in planted.values():
            assert any(text == what and (not line or at == line) for text, at in said), (what, said)
