"""Below the kernels: the assembly of a C++ kernel, and what is captured of Triton's stages."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from binutils import functions_in, instructions_of, lines_by_binutils, rows_of_code
from irscope.ir.assembly import clean_assembly
from irscope.ir.line_tables import KernelText
from irscope.lowering import LoweringError, cpp, made_on_demand, make
from irscope.lowering.cpp import assembly_of, written_by_compiler
from irscope.lowering.tools import in_interpreter
from irscope.protocol import Origin
from irscope.provenance import Provenance
from irscope.provenance.lines import trail_of
from irscope.provenance.linked import LinkedLines
from irscope.store.store import Store
from support import REPOSITORY, Ran, run_captured, run_cli_forked, run_forked, write
from triton_kernels import AXPY, GENERATED, KINDS, strangers
from versions import torch_version

SCRIPT = """\
import torch

torch.set_num_threads(2)


@torch.compile
def f(x, y):
    a = torch.relu(x) * 2
    return torch.softmax(a + y.sin(), -1)

f(torch.randn(64, 128), torch.randn(64, 128))
"""
EXAMPLES = REPOSITORY / "tests" / "triton_h100"


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    folder = tmp_path_factory.mktemp("lower")
    return run_forked(write(folder, SCRIPT), folder / "runs.db", "deep")


@pytest.fixture(scope="module")
def kernel(ran: Ran) -> str:
    (kernel,) = ran.kernels("cpp")
    return kernel.stage


@pytest.fixture(scope="module", autouse=True)
def asked_once() -> Iterator[Callable[..., Any]]:
    """Which command compiles a kernel is asked once in this interpreter: the answer takes an import of torch, and is the
    same for each kernel but for the names of its files."""
    answers: dict[str, Any] = {}

    def remembered(python: str, *asked: str) -> Any:
        if python not in answers:
            answers[python] = in_interpreter(python, *asked)
        return answers[python]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cpp, "in_interpreter", remembered)
        yield remembered


@pytest.fixture(scope="module")
def written(ran: Ran, kernel: str) -> str:
    """All that the compiler writes for the kernel."""
    return written_by_compiler(ran.text(kernel), sys.executable)


def test_the_run_itself_makes_no_assembly(ran: Ran, kernel: str) -> None:
    assert [stage.name for stage in ran.compile("0/0").stages if stage.id.startswith(kernel + "/")] == []
    assert made_on_demand(ran.report, f"{kernel}/assembly")
    for other in ("sass", "passes", "ttgir/12-cse", "nonsense", ""):
        assert not made_on_demand(ran.report, f"{kernel}/{other}")


def test_show_makes_it_once(ran: Ran, kernel: str) -> None:
    stage = f"{kernel}/assembly"
    shown = run_cli_forked("show", "--store", ran.store, "--stage", stage)
    assert shown.returncode == 0, shown.stderr
    assert "Sleef_expf" in shown.stdout and "Sleef_sinf" in shown.stdout
    again = run_cli_forked("show", "--store", ran.store, "--stage", stage, "--python", "/no/such/python")
    assert again.stdout == shown.stdout
    with Store(ran.store) as store:
        data = store.stage_data(ran.report.run, stage)
        report = store.report(ran.report.run)
    assert data["source"] == kernel
    (ref,) = [ref for ref in report.compiles[0].stages if ref.id == stage]
    assert (ref.name, ref.language) == ("assembly", "asm")
    source, rows = ran.text(kernel).split("\n"), shown.stdout.split("\n")
    said = {source[line - 1].strip() for row, line in data["lines"] if "Sleef_expf" in rows[row - 1]}
    assert said == {"auto tmp11 = tmp10.exp();"}


def test_instructions_are_those_that_the_run_executed(
    ran: Ran, kernel: str, written: str, asked_once: Callable[..., Any], tmp_path: Path
) -> None:
    """Of the library that Inductor compiled and loaded in the run, function by function."""
    text = ran.text(kernel)
    library = next(library for source, library in libraries() if text.strip() in source)
    path = tmp_path / "kernel.cpp"
    path.write_text(text)
    said = asked_once(sys.executable, "internals/inductor_command.py", str(path))
    (tmp_path / "k.s").write_text(written)
    command = [{said["source"]: "k.s", said["target"]: "ours.so"}.get(word, word) for word in said["command"]]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=100)
    counts = []
    for function in ("kernel", "kernel._omp_fn.0"):
        theirs = instructions_of(library, function)
        assert instructions_of(tmp_path / "ours.so", function) == theirs
        counts.append(len(theirs))
    assert min(counts) > 10  # the first may do no more than start the second


def libraries() -> Iterator[tuple[str, Path]]:
    """Inductor's C++ sources with the libraries made of them."""
    for source in Path(os.environ["TORCHINDUCTOR_CACHE_DIR"]).glob("*/*.main.cpp"):
        library = source.with_suffix(".so")
        if library.exists():
            yield source.read_text(), library


def test_lines_are_those_of_the_object(ran: Ran, kernel: str, written: str, tmp_path: Path) -> None:
    text = ran.text(kernel)
    assembly, lines = clean_assembly(written, KernelText("kernel.cpp", 1, text.count("\n") + 1), text)
    theirs = lines_by_binutils(tmp_path, written, functions_in(assembly))
    assert [dict(lines).get(row) for row in rows_of_code(assembly)] == theirs
    assert len({line for line in theirs if line}) > 20


def test_what_is_missing_is_said(ran: Ran, kernel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = ran.text(kernel)
    with pytest.raises(LoweringError, match="no-such-python is not installed here"):
        assembly_of(text, "no-such-python")
    with pytest.raises(LoweringError, match=r"has no torch with Inductor.*--python"):
        assembly_of(text, shutil.which("python3", path="/usr/bin:/usr/local/bin") or sys.base_prefix + "/bin/python3")
    with pytest.raises(LoweringError, match=r"failed with exit code 1:\n(?s:.*)kernel.cpp:\d+:\d+: error"):
        assembly_of(text.replace("float* out_ptr0", "flaot* out_ptr0"), sys.executable)
    monkeypatch.setattr(cpp, "in_interpreter", lambda *_: {"command": ["no-g++"], "source": "", "target": ""})
    with pytest.raises(LoweringError, match=r"C\+\+ compiler not found: no-g\+\+,"):
        assembly_of(text, sys.executable)


# --- Triton -----------------------------------------------------------------------------------------------------------

# A tuner of the installed torch, without what needs a GPU: it "compiles" to folders that stand in Triton's cache.
INDUCTOR = """
import json, os, sys, threading, types
import torch
from torch._inductor.runtime.triton_heuristics import CachingAutotuner

told = json.loads(sys.argv[1])

class Launcher:
    n_regs, n_spills, shared = 12, 0, 16

    def __init__(self, hash):
        self.config, self.cache_hash = "XBLOCK of " + hash, hash

class Tuner(CachingAutotuner):
    precompile_time_taken_ns, save_cache_hook, benchmark_failure_reasons, _plugins = 0, None, {}, ()

    def __init__(self):
        self.lock, self.compile_results, self.launchers = threading.Lock(), [], []
        self.fn = types.SimpleNamespace(__name__=told["name"])
        self.inductor_meta, self.triton_meta, self.filename = {"kernel_name": told["name"]}, {"device": 0}, told["file"]

    def _precompile_worker(self):
        pass

    def _make_launchers(self):
        self.launchers = [Launcher(hash) for hash in told["hashes"]]

    def _dynamic_scale_rblock(self):
        pass

    def benchmark_all_configs(self, *args, **kwargs):
        return {launcher: -i for i, launcher in enumerate(self.launchers)}  # the last is the fastest

    def _release_static_launchers_except(self, launcher):
        pass

    def _prune_compile_results_to_launcher(self, launcher):
        pass

tuner = Tuner()

def tell_output_code():
    torch._logging.trace_structured("inductor_output_code", lambda: {}, payload_fn=lambda: told["code"])

def backend(graph, inputs):
    steps = [tell_output_code, tuner.precompile]
    for step in reversed(steps) if told["loaded_first"] else steps:
        step()
    return graph.forward

torch.compile(lambda x: x + 1, backend=backend)(torch.ones(3))
if len(tuner.launchers) > 1:
    tuner.autotune_to_one_config()
print("ended")
"""


def run_inductor(
    folder: Path, hashes: tuple[str, ...] = ("ONE",), *, loaded_first: bool = False, home: str = "", **changes: str
) -> Ran:
    """Runs `INDUCTOR` with the kernel of the examples in Triton's cache, once for each hash; ``home``: where the user
    wrote it, as ``file:line``."""
    file = folder / "inductor" / "kernel.py"
    write(file.parent, "\n" + GENERATED.text("text"), file.name)
    for hash in ("ONE", "TWO"):
        place = folder / "kernels" / hash
        place.mkdir(parents=True)
        for kind in (*KINDS, "json"):
            text = moved(GENERATED.text(kind), file) + f"// {hash}\n" * (kind == "ptx")
            (place / f"{GENERATED.name}.{'source' if kind == 'ttir-unoptimized' else kind}").write_text(text)
        (place / f"{GENERATED.name}.cubin").write_bytes(b"\x7fELF" + hash.encode())
    code = f"x = async_compile.triton('{GENERATED.name}', '''\n{GENERATED.text('text')}''', device_str='cuda')\n"
    told = {
        "name": GENERATED.name, "file": str(file), "hashes": hashes, "loaded_first": loaded_first,
        "code": f"# Original path: {home}\n" * bool(home) + code.replace("x =", f"{GENERATED.name} =", 1), **changes,
    }  # fmt: skip
    env = {"TRITON_CACHE_DIR": str(folder / "kernels")}
    ran = run_forked(write(folder, INDUCTOR), folder / "runs.db", "deep", [json.dumps(told)], env=env)
    assert (ran.stdout, ran.report.outcome.exit_code) == ("ended\n", 0), ran.stderr
    return ran


def moved(text: str, file: Path) -> str:
    """A stage that names this file in place of the one that it was made from."""
    text = text.replace(GENERATED.file, str(file)).replace('directory: "/cache/ps"', f'directory: "{file.parent}"')
    return text.replace("cpstppefqcs.py", file.name)


STAGE = f"0/0/kernel/{GENERATED.name}"


def test_stages_of_a_kernel_that_inductor_loads(tmp_path: Path) -> None:
    """Goes silent, and fails, when a torch loads its kernels in another way."""
    ran = run_inductor(tmp_path)
    assert ran.report.capture_gaps == ()
    below = [stage.id[len(STAGE) + 1 :] for stage in ran.compile("0/0").stages if stage.id.startswith(STAGE + "/")]
    assert below == ["ttir-unoptimized", "ttir", "ttgir", "llir", "ptx", "binary"]
    with Store(ran.store) as store:
        for kind in KINDS:
            data = store.stage_data(ran.report.run, f"{STAGE}/{kind}")
            assert data["source"] == STAGE
            assert strangers(ran.text(f"{STAGE}/{kind}"), data["lines"], GENERATED, kind) == []
        data = store.stage_data(ran.report.run, f"{STAGE}/binary")
    assert base64.b64decode(data["base64"]) == b"\x7fELFONE"
    assert {key: data[key] for key in ("format", "n_regs", "n_spills", "shared", "config", "configs")} == {
        "format": "cubin", "n_regs": 12, "n_spills": 0, "shared": 16, "config": "XBLOCK of ONE", "configs": 1,
    }  # fmt: skip
    assert made_on_demand(ran.report, f"{STAGE}/sass") and made_on_demand(ran.report, f"{STAGE}/passes")
    assert not made_on_demand(ran.report, f"{STAGE}/assembly")


@pytest.mark.parametrize(("hashes", "chosen"), [(("ONE", "TWO"), "TWO"), (("ONE", "ONE"), "ONE")])
def test_stages_of_the_configuration_that_was_chosen(hashes: tuple[str, str], chosen: str, tmp_path: Path) -> None:
    """Also where it is the one whose texts were written when it was loaded."""
    ran = run_inductor(tmp_path, hashes)
    assert ran.report.capture_gaps == ()
    with Store(ran.store) as store:
        data = store.stage_data(ran.report.run, f"{STAGE}/binary")
    assert (data["config"], data["configs"]) == (f"XBLOCK of {chosen}", 1)
    assert base64.b64decode(data["base64"]) == b"\x7fELF" + chosen.encode()
    assert ran.text(f"{STAGE}/ptx").endswith(f"// {chosen}\n")


def test_stages_of_a_kernel_from_the_cache(tmp_path: Path) -> None:
    """PyTorch's caches load the kernels before they tell the output code; a template's tuner knows no file."""
    ran = run_inductor(tmp_path, loaded_first=True, file="")
    assert ran.report.capture_gaps == ()
    text, place = ran.text(f"{STAGE}/ptx"), f"{STAGE}/ptx"
    with Store(ran.store) as store:
        assert strangers(text, store.stage_data(ran.report.run, place)["lines"], GENERATED, "ptx") == []


def test_lines_of_a_kernel_that_compiled_code_launches(tmp_path: Path) -> None:
    """Somebody wrote it: down from each of its lines to the PTX, and up again."""
    own = write(
        tmp_path, f"import triton\n\n\n@triton.jit\ndef {GENERATED.text('text').partition('def ')[2]}", "own.py"
    )
    ran = run_inductor(tmp_path, home=f"{own}:4")
    assert ran.report.capture_gaps == ()
    number = next(number for number, row in enumerate(own.read_text().split("\n"), 1) if "tl.store(" in row)
    with Store(ran.store) as store:
        trail = trail_of(store, ran.report, str(own), number)
        assert [step.stage for step in trail.steps] == [STAGE, *(f"{STAGE}/{kind}" for kind in KINDS)]
        assert [kernel.stage for kernel in trail.kernels] == [STAGE]
        stores = {at for at, row in enumerate(ran.text(f"{STAGE}/ptx").split("\n"), 1) if "st.global" in row}
        assert stores and stores <= {place.line for place in trail.steps[-1].places}
        thread = Provenance(store, ran.report)
        for at in stores:
            element = thread.at(f"{STAGE}/ptx", at)
            assert element is not None and (str(own), number) in {(o.file, o.line) for o in thread.origins(element)}
        assert str(own) in store.sources(ran.report.run)
        assert trail_of(store, ran.report, str(own), 2).steps == ()
        linked = LinkedLines(store, ran.report)
        assert linked.palette[Origin(str(own), number)] > 0  # a colour of its own
        assert stores <= set(linked.counterparts_of_source(str(own), number, [f"{STAGE}/ptx"])[f"{STAGE}/ptx"])


def test_stages_that_are_gone_are_a_gap(tmp_path: Path) -> None:
    ran = run_inductor(tmp_path, ("NOWHERE",))
    (gap,) = ran.report.capture_gaps
    assert gap.what.startswith("the stages of Triton kernels below their source")
    assert "NOWHERE" in gap.why


# Triton itself is not needed for what is called here: whoever compiles calls the listener in this way.
LISTENER = """
import json, os, sys, types
import torch
sys.path.insert(0, sys.argv[1])
import triton.knobs

def axpy_kernel(x_ptr):
    pass

kept, text = sys.argv[2], open(sys.argv[3]).read().splitlines(keepends=True)
function = types.SimpleNamespace(fn=axpy_kernel, raw_src=text, starting_line_number=12)
files = {name: os.path.join(kept, name) for name in os.listdir(kept)}
for hit in (False, True):
    triton.knobs.compilation.listener(
        src=types.SimpleNamespace(fn=function, name="axpy_kernel"), metadata={}, metadata_group=files,
        times=types.SimpleNamespace(total=1500), cache_hit=hit,
    )
print("heard", triton.knobs.heard)
"""
KNOBS = """
import types
heard = []
compilation = types.SimpleNamespace(listener=lambda **facts: heard.append(facts["cache_hit"]))
"""


def test_kernels_that_are_launched_outside_of_compiled_code(tmp_path: Path) -> None:
    write(tmp_path, KNOBS, "fake/triton/knobs.py")
    write(tmp_path, "", "fake/triton/__init__.py")
    kept = tmp_path / "kept"
    kept.mkdir()
    script = write(tmp_path, LISTENER)
    for kind in (*KINDS, "json"):
        text = AXPY.text(kind).replace(AXPY.file, str(script)).replace('"/home/user"', f'"{tmp_path}"')
        text = text.replace("gpu.py", script.name)
        (kept / f"axpy_kernel.{'source' if kind == 'ttir-unoptimized' else kind}").write_text(text)
    (kept / "axpy_kernel.hsaco").write_bytes(b"HSACO")
    args = [str(tmp_path / "fake"), str(kept), str(EXAMPLES / "axpy_kernel" / "kernel.text")]
    ran = run_forked(script, tmp_path / "runs.db", "deep", args)
    assert ran.stdout == "heard [False, True]\n", ran.stderr  # the listener that was there before hears as ever
    assert ran.report.capture_gaps == ()
    assert [(c.id, c.function, c.line, c.seconds) for c in ran.report.compiles] == [
        ("triton/1", "axpy_kernel", 12, 0.0015),
        ("triton/2", "axpy_kernel", 12, 0.0015),
    ]
    stage = "triton/2/kernel/axpy_kernel"
    assert [kernel.stage for kernel in ran.kernels("triton")] == [stage.replace("/2", "/1", 1), stage]
    assert ran.text(stage) == AXPY.text("text")
    with Store(ran.store) as store:
        for kind in KINDS:
            data = store.stage_data(ran.report.run, f"{stage}/{kind}")
            assert strangers(ran.text(f"{stage}/{kind}"), data["lines"], AXPY, kind) == []
        assert store.stage_data(ran.report.run, stage) == {"file": str(script), "first_line": 12, "cache_hit": True}
        rows = AXPY.text("text").split("\n")
        number = next(number for number, row in enumerate(rows, 12) if "tl.store(" in row)  # the text begins in line 12
        trail = trail_of(store, ran.report, str(script), number)
        reached = {step.stage: {place.line for place in step.places} for step in trail.steps}
        assert [id.rpartition("/")[2] for id in reached] == ["axpy_kernel", *KINDS] * 2
        stores = {at for at, row in enumerate(AXPY.text("ptx").split("\n"), 1) if "st.global" in row}
        assert stores <= reached[f"{stage}/ptx"]
        assert [kernel.stage for kernel in trail.kernels] == [stage.replace("/2", "/1", 1), stage]
        with pytest.raises(LoweringError, match="no machine code for an NVIDIA GPU"):
            make(store, ran.report, f"{stage}/sass", sys.executable)
    fast = run_forked(script, tmp_path / "runs.db", "fast", args)
    assert fast.report.compiles == ()


REAL = """
import triton, triton.language as tl
import torch
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

@triton.jit
def double(x_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(x_ptr + offsets, x * 2, mask=offsets < n)

source = ASTSource(double, {"x_ptr": "*fp32", "n": "i32", "BLOCK": "constexpr"}, {"BLOCK": 256})
triton.compile(source, target=GPUTarget("cuda", 90, 32))
"""


def test_with_triton_itself(tmp_path: Path, triton: None) -> None:
    """Compiled for an H100 that need not be there; then machine code and passes on demand."""
    env = {"TRITON_CACHE_DIR": str(tmp_path / "cache")}
    ran = run_captured(write(tmp_path, REAL), tmp_path / "runs.db", "deep", env=env)
    assert ran.report.capture_gaps == ()
    stage = "triton/1/kernel/double"
    below = [ref.name for ref in ran.compile("triton/1").stages if ref.id != stage]
    assert below == ["ttir-unoptimized", "ttir", "ttgir", "llir", "ptx", "binary"]
    with Store(ran.store) as store:
        make(store, ran.report, f"{stage}/sass", sys.executable)
        make(store, ran.report, f"{stage}/ttgir/none", sys.executable)
        report = store.report(ran.report.run)
        sass, lines = ran.text(f"{stage}/sass"), dict(store.stage_data(ran.report.run, f"{stage}/sass")["lines"])
    source, rows = ran.text(stage).split("\n"), sass.split("\n")
    stores = {source[lines[n] - 1].strip() for n, row in enumerate(rows, 1) if "STG" in row}
    assert stores == {"tl.store(x_ptr + offsets, x * 2, mask=offsets < n)"}
    overview = ran.text(f"{stage}/passes")
    assert overview.count("as in the run") == 3 and "NOT" not in overview
    versions = [ref for ref in report.compiles[0].stages if ref.passed]
    assert {"inline", "convert-triton-to-tritongpu", "convert-triton-gpu-to-llvm"} <= {ref.passed for ref in versions}
    assert [ref.id.startswith(f"{stage}/{ref.name}/") for ref in versions] == [True] * len(versions)


OWN = """
import sys
sys.path.insert(0, {tests!r})
import torch, triton, triton.language as tl
import triton_driver

@triton.jit
def silu(x):
    return x * tl.sigmoid(x)

@triton.autotune(configs=[triton.Config({{"BLOCK": 256}}), triton.Config({{"BLOCK": 512}}, num_warps=8)], key=["n"])
@triton.jit
def gated(gate_ptr, up_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    gate = tl.load(gate_ptr + offsets, mask=offsets < n)
    up = tl.load(up_ptr + offsets, mask=offsets < n)
    tl.store(out_ptr + offsets, silu(gate) * up, mask=offsets < n)

@torch.compile
def f(x, y):
    out = torch.empty_like(x)
    gated[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, y.contiguous(), out, x.numel())  # @launch
    return out + 1

with torch.no_grad():
    f(torch.ones(8, 128), torch.ones(8, 128))
"""


@pytest.mark.nightly  # Triton itself compiles a second kernel
def test_a_kernel_of_ones_own_in_compiled_code_with_triton_itself(tmp_path: Path, triton: None) -> None:
    """From the line that launches it and from each line in it; its helper, its machine code and its passes."""
    script = write(tmp_path, OWN.format(tests=str(REPOSITORY / "tests")))
    env = {name: str(tmp_path / "cache") for name in ("TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR")}
    ran = run_captured(script, tmp_path / "runs.db", "deep", env=env)
    assert ran.report.outcome.exit_code == 0, ran.stderr[-3000:]
    assert ran.report.capture_gaps == ()
    stage = "0/0/kernel/gated_0"
    with Store(ran.store) as store:
        make(store, ran.report, f"{stage}/sass", sys.executable)
        make(store, ran.report, f"{stage}/passes", sys.executable)
        overview = ran.text(f"{stage}/passes")
        assert overview.count("as in the run") == 3 and "NOT" not in overview
        report = store.report(ran.report.run)
        lines = script.read_text().split("\n")
        # Triton 3.5 loses the middle one of two inlined calls on the way to LLVM: these instructions are the outer call's.
        inlined = "tl.sigmoid(" if torch_version() >= (2, 11) else "silu(gate)"
        for part, instruction in (("tl.load(up_ptr", "LDG"), ("tl.store(", "STG"), (inlined, "MUFU")):
            number = next(at for at, row in enumerate(lines, 1) if part in row)
            trail = trail_of(store, report, str(script), number)
            assert [step.stage for step in trail.steps] == [stage, *(f"{stage}/{kind}" for kind in (*KINDS, "sass"))]
            assert [kernel.stage for kernel in trail.kernels] == [stage]
            rows = ran.text(f"{stage}/sass").split("\n")
            assert any(instruction in rows[place.line - 1] for place in trail.steps[-1].places), part
        number = next(at for at, row in enumerate(lines, 1) if "@launch" in row)
        linked = LinkedLines(store, report)
        lit = linked.counterparts_of_source(str(script), number, [stage, f"{stage}/ptx"])
        assert {one: set(rows) for one, rows in lit.items()} == {one: set(linked.keys(one)) for one in lit} and len(
            lit
        ) == 2
        assert stage in {kernel.stage for kernel in trail_of(store, report, str(script), number).kernels}
