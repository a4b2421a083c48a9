"""Compiled artifacts: what is read of them, what differs, and hostile files."""

import base64
import json
import os
import pickle
import platform
import struct
import time
import zipfile
import zlib
from pathlib import Path
from typing import Any

import pytest
from irscope.cli.main import main
from irscope.driver import saved_guards
from irscope.ir.artifacts import inert, inputs
from irscope.ir.artifacts.contents import Artifact, ArtifactError, Guard, Source
from irscope.ir.artifacts.kinds import kind_of, open_artifact
from irscope.opening import fitting
from irscope.opening.fitting import fit, not_portable
from irscope.opening.made_graphs import graph_changes
from irscope.system.trust import TrustError


class Touches:
    """Unpickling it makes a file."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (self.path,)


def mega(*entries: tuple[bytes, bytes], kind: bytes = b"inductor") -> bytes:
    def field(data: bytes) -> bytes:
        return struct.pack(">Q", len(data)) + data

    def text(data: bytes) -> bytes:
        return field(base64.b64encode(data))

    body = struct.pack(">Q", 1) + text(kind) + struct.pack(">Q", len(entries))
    body += b"".join(text(key) + field(data) for key, data in entries)
    return zlib.crc32(body).to_bytes(4, "big") + body


def read(path: Path) -> Artifact:
    kind = kind_of(str(path))
    assert kind is not None
    return open_artifact(str(path), kind)


def opened(tmp_path: Path, data: bytes) -> Artifact:
    path = tmp_path / "artifact"
    path.write_bytes(data)
    return read(path)


# --- the inert reader ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize("value", [None, True, [1, (2, 3.5), {"a": 0, "c": [1 << 70, ""]}], {"x": ()}])
def test_plain_data_is_what_it_was(value: Any, protocol: int) -> None:
    assert inert.read(pickle.dumps(value, protocol)) == value


def test_bytes_are_what_they_were() -> None:
    assert inert.read(pickle.dumps({b"a": [b"b" * 300, bytearray(b"c")]}, 5)) == {b"a": [b"b" * 300, b"c"]}


def test_objects_are_records_and_nothing_runs(tmp_path: Path) -> None:
    made = tmp_path / "made"
    for protocol in range(6):
        record = inert.read(pickle.dumps([Touches(str(made))], protocol))[0]
        assert record.short == "mkdir"
        assert record.args == (str(made),)
    assert not made.exists()


def test_a_value_that_has_itself_is_walked_once() -> None:
    value: list[Any] = []
    value.append((value, {"a": value}))
    assert sum(1 for _ in inert.walk(inert.read(pickle.dumps(value)))) < 10


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"\x80\x04", "cut off"),
        (b"\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\x7f", "cut off"),
        (b"\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\x00.", "cut off"),
        (b"\x80\x04h\x07.", "damaged"),
        (b"\x80\x04R.", "damaged"),
        (b"\x80\x04" + b"(" * 30_000 + b".", "deep"),
        (b"\x80\x04" + b"N0" * 16_000 + b".", "opcodes"),
        (b"\x80\x04]\x94(" + b"K\x01\x85" * 9, "cut off"),
    ],
    ids=lambda value: value if isinstance(value, str) else f"{len(value)} bytes",
)
def test_bad_pickles_are_refused(data: bytes, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert 1_000_000 < inert.MOST_OPCODES < 10_000_000  # seconds of work
    monkeypatch.setattr(inert, "MOST_OPCODES", 31_000)
    with pytest.raises(inert.PickleError, match=why):
        inert.read(data)


def test_nested_references_stay_small() -> None:
    """2^60 elements if each reference were copied."""
    begin = time.process_time()
    data = b"\x80\x02]q\x00" + b"".join(b"](h%ch%ceq%c" % (i, i, i + 1) for i in range(60)) + b"."
    assert sum(1 for _ in inert.walk(inert.read(data))) < 200
    assert time.process_time() - begin < 5


# --- kinds --------------------------------------------------------------------------------------------------------------


def test_mega_cache(tmp_path: Path) -> None:
    artifact = opened(tmp_path, mega((b"fkey", pickle.dumps({"a": 1})), (b"fother", b"{}")))
    assert [(part.name, part.size) for part in artifact.parts] == [
        ("inductor fkey", len(pickle.dumps({"a": 1}))),
        ("inductor fother", 2),
    ]
    assert artifact.problems == []


def test_mega_cache_with_code_is_listed_and_nothing_runs(tmp_path: Path) -> None:
    made = tmp_path / "made"
    artifact = opened(tmp_path, mega((b"fkey", pickle.dumps(Touches(str(made)))), (b"fcut", b"\x80\x04\x95")))
    assert len(artifact.parts) == 2
    assert [problem.partition(":")[0] for problem in artifact.problems] == ["inductor fcut"]
    assert not made.exists()


def test_cut_and_changed_files_are_refused(tmp_path: Path) -> None:
    data = mega((b"fkey", b"x" * 500))
    for bad in (data[:-1], data[:200], data[:60] + b"?" + data[61:]):
        with pytest.raises(ArtifactError, match=r"checksum.*Make it again"):
            opened(tmp_path, bad)


def test_false_lengths_are_refused(tmp_path: Path) -> None:
    body = struct.pack(">Q", 1) + struct.pack(">Q", 12) + b"aW5kdWN0b3I=" + struct.pack(">Q", 1 << 62)
    with pytest.raises(ArtifactError, match="cut off"):
        opened(tmp_path, zlib.crc32(body).to_bytes(4, "big") + body)


def test_zip_bomb_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bomb.pt2"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("m/data/aotinductor/model/a.kernel.cpp", b"0" * (64 << 20))
    with pytest.raises(ArtifactError, match="packed too tightly"):
        read(path)


def test_package(tmp_path: Path) -> None:
    path = tmp_path / "model.pt2"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("m/data/aotinductor/model/a.kernel_metadata.json", '{"AOTI_CPU_ISA": "AVX2"}')
        archive.writestr("m/data/aotinductor/model/a.kernel.cpp", "void kernel() {}")
    artifact = read(path)
    assert artifact.made_for == {"CPU features": "AVX2"}
    assert artifact.kernels == {"a.kernel.cpp": "void kernel() {}"}


@pytest.mark.parametrize("data", [pickle.dumps({"a": 1}), b"PK\x03\x04" + bytes(40)])
def test_other_pickles_and_archives_say_what_is_read(
    tmp_path: Path, data: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "other"
    path.write_bytes(data)
    assert main(["open", str(path)]) == 3
    assert "not an artifact that irscope reads" in capsys.readouterr().err


def test_saved_function_with_code_is_not_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = tmp_path / "made"
    path = tmp_path / "function"
    path.write_bytes(
        pickle.dumps({"guards_state": pickle.dumps(Touches(str(made))), "system_info": Touches(str(made))})
    )
    assert main(["open", str(path)]) == 0
    assert "saved by aot_compile" in capsys.readouterr().out
    assert not made.exists()


# --- what differs -------------------------------------------------------------------------------------------------------

TEXT = "SCALE = 2.0\n\n\ndef helper(x):\n    return x.sin() * SCALE\n\n\ndef f(x):\n    return helper(x)\n"


@pytest.mark.parametrize(
    ("now", "line", "what"),
    [
        (TEXT.replace("2.0", "3.0"), 1, "`SCALE` was 2.0 when it was made and is 3.0"),
        ("# moved\n\n" + TEXT.replace("2.0", "3.0"), 3, "`SCALE` was 2.0"),
        (TEXT.replace("SCALE = 2.0\n", ""), 0, "`SCALE` is gone"),
        (TEXT.replace("sin", "cos"), 4, "`helper` has changed"),
        (TEXT.replace("return helper(x)", "return helper(x) + 1"), 8, "`f` has changed"),
        (TEXT.replace("def helper", "def other"), 0, "`helper` is not in the file"),
        ("# a comment\n" + TEXT, None, None),
        (TEXT + "\n\nOTHER = 1\n", None, None),
    ],
)
def test_sources(tmp_path: Path, now: str, line: int | None, what: str | None) -> None:
    path = tmp_path / "module.py"
    path.write_text(now)
    artifact = Artifact(str(path), "", "")
    artifact.sources += [Source("m", str(path), 8, 10, TEXT), Source("m", str(path), 4, 6, TEXT)]
    found = fit(artifact).differences
    assert [(one.file, one.line) for one in found] == ([] if what is None else [(str(path), line)])
    assert what is None or what in found[0].what


def test_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitting, "_flags", lambda: frozenset({"avx2", "fma"}))
    monkeypatch.setattr(fitting, "_version", lambda name: {"torch": "2.14.1+cpu", "triton": "3.8.0"}[name])
    artifact = Artifact("a", "", "")
    artifact.made_for |= {"Python": platform.python_version(), "CPU features": "AVX2", "Triton": "3.8"}
    assert fit(artifact).differences == ()
    artifact.made_for |= {
        "Python": "3.1.0",
        "CPU features": "AVX512 AVX512_VNNI",
        "PyTorch": "2.14.1+cu130",
        "Triton": "3.7",
    }
    words = [one.what for one in fit(artifact).differences]
    assert words[0].startswith("Python was 3.1.0 when it was made and is ")
    assert words[1] == "It was made for AVX512, AVX512_VNNI, which this processor does not have."
    assert words[2:] == [
        "Triton was 3.7 when it was made and is 3.8.0 here.",
        "PyTorch was 2.14.1+cu130 when it was made and is 2.14.1+cpu here.",
    ]


def test_what_is_not_known_is_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitting, "_flags", frozenset)
    monkeypatch.setattr(fitting, "has_gpu", lambda: True)
    artifact = Artifact("a", "", "")
    artifact.made_for |= {"CPU features": "AVX2", "GPU": "NVIDIA H100"}
    found = fit(artifact)
    assert found.compared == ()
    assert found.not_compared == ("CPU features", "GPU (NVIDIA H100)")


def test_the_version_of_pytorch_has_its_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The metadata of a CUDA build from PyPI lacks the build, which `torch.__version__` has."""
    (tmp_path / "shipped").mkdir()
    (tmp_path / "shipped" / "__init__.py").write_text("raise AssertionError")
    (tmp_path / "shipped" / "version.py").write_text(
        "from typing import Any\n__version__ = '2.14.1+cu130'\ndebug = False\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    assert fitting._version("shipped") == "2.14.1+cu130"
    assert fitting._version("not_installed_anywhere") == ""


# --- trust --------------------------------------------------------------------------------------------------------------


def with_guards(tmp_path: Path) -> Artifact:
    path = tmp_path / "function"
    path.write_bytes(pickle.dumps({"guards_state": pickle.dumps(Touches(str(tmp_path / "made")))}))
    artifact = read(path)
    artifact.functions.append(("f", str(tmp_path / "step.py"), 3))
    artifact.guards.append(Guard("TENSOR_MATCH", "L['x']", (), str(tmp_path / "step.py"), 5))
    return artifact


@pytest.mark.parametrize("trusted", ["0" * 64, "", "{digest:.8}", "x{digest}"])
def test_nothing_is_loaded_without_the_digest_of_the_file(tmp_path: Path, trusted: str) -> None:
    artifact = with_guards(tmp_path)
    with pytest.raises(TrustError, match="Nothing was loaded"):
        saved_guards.judge(artifact, trusted.format(digest=artifact.digest), "", fit(artifact))
    assert not (tmp_path / "made").exists()


def test_a_file_that_was_replaced_is_not_loaded(tmp_path: Path) -> None:
    """The process that loads it reads the file again."""
    artifact = with_guards(tmp_path)
    Path(artifact.path).write_bytes(pickle.dumps(Touches(str(tmp_path / "made"))))
    with pytest.raises(TrustError, match="has changed since it was listed"):
        saved_guards.judge(artifact, artifact.digest, "", fit(artifact))
    assert not (tmp_path / "made").exists()


TREE = """\
TREE_GUARD_MANAGER:
+- RootGuardManager
| +- GuardManager: source=L['x'], type=<class 'torch.Tensor'>
| | +- TENSOR_MATCH: check_tensor(L['x'], Tensor, torch.float32, size=[8, 128])  # y = x.sin()  # {file}:5 in f
| +- GuardManager: source=L['scale'], type=<class 'float'>
| | +- EQUALS_MATCH: L['scale'] == 2.0                                            # return y * scale  # {file}:6 in f
"""


def test_guards_that_fail_are_told_at_their_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    artifact = with_guards(tmp_path)
    file = str(tmp_path / "step.py")
    size, scale = "tensor 'L['x']' size mismatch at index 1. expected 128, actual 130", "L['scale'] == 2.0"
    answer = {
        "text": TREE.format(file=file),
        "calls": [
            {"file": file, "line": 9, "reasons": [], "holds": True},
            {"file": file, "line": 10, "reasons": [[size, ""], [scale, "3.0"]], "holds": False},
            {"file": file, "line": 11, "reasons": [[size, ""]], "holds": False},
            {"file": file, "line": 12, "reasons": [], "holds": False},
        ],
    }
    monkeypatch.setattr(saved_guards, "_asked", lambda *_: answer)
    found = saved_guards.judge(artifact, artifact.digest[:12], "serve.py", fit(artifact))
    assert [(one.what, one.line) for one in found.differences] == [
        ("`x.shape[1]` was 128 when it was made and is 130.", 5),
        ("`scale` was 2.0 when it was made and is 3.0.", 6),
        ("A guard fails in this call.", 12),
    ]
    assert found.compared == ("2 guards with 4 calls of the script",)
    assert found.not_compared == ()
    assert [(guard.source, guard.line) for guard in artifact.guards] == [("x", 5), ("scale", 6)]


def test_a_script_that_does_not_call_the_function_judges_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    artifact = with_guards(tmp_path)
    monkeypatch.setattr(saved_guards, "_asked", lambda *_: {"text": "", "calls": [], "ended": "ValueError: no data"})
    found = saved_guards.judge(artifact, artifact.digest, "serve.py", fit(artifact))
    assert found.compared == ()
    assert found.not_compared == ("1 guard: the script does not call the function (ValueError: no data)",)


# --- planted mismatches of the machine ----------------------------------------------------------------------------------


class SystemInfo:
    """As PyTorch's, in a saved function."""

    def __init__(self, **facts: object) -> None:
        self.__dict__ |= facts


def saved_function(path: Path, **facts: object) -> None:
    path.write_bytes(pickle.dumps({"guards_state": b"", "system_info": SystemInfo(**facts)}))


def cache_folder(path: Path, **facts: object) -> None:
    (path / "triton" / "key").mkdir(parents=True)
    (path / "triton" / "key" / "kernel.json").write_text(json.dumps({"name": "kernel", **facts}))


def package(path: Path, **facts: object) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("m/data/aotinductor/model/a.kernel_metadata.json", json.dumps(facts))


def program(path: Path, **facts: object) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("m/models/model.json", json.dumps(facts))


PYTHON = platform.python_version()
OF_MACHINE: dict[str, tuple[Any, dict[str, object], str]] = {
    # what is planted: (who makes the artifact, what is in it, how the first difference begins)
    "function, here": (saved_function, {"python_version": PYTHON, "torch_version": "2.14.1", "triton_version": "3.8"}, ""),
    "function, torch": (saved_function, {"torch_version": "2.13.0"}, "PyTorch was 2.13.0"),
    "function, Python": (saved_function, {"python_version": "3.1.4"}, "Python was 3.1.4"),
    "function, Triton": (saved_function, {"triton_version": "3.7"}, "Triton was 3.7"),
    "function, GPU": (saved_function, {"gpu_name": "NVIDIA H100"}, "It was made for the GPU NVIDIA H100"),
    "folder, here": (cache_folder, {"triton_version": "3.8.0"}, ""),
    "folder, Triton": (cache_folder, {"triton_version": "3.7.1"}, "Triton was 3.7.1"),
    "folder, GPU": (cache_folder, {"target": {"backend": "cuda", "arch": 90}}, "It was made for the GPU target cuda 90"),
    "package, here": (package, {"AOTI_CPU_ISA": "AVX2", "AOTI_MACHINE": platform.machine(), "AOTI_DEVICE_KEY": "cpu"}, ""),
    "package, CPU": (package, {"AOTI_CPU_ISA": "AVX512"}, "It was made for AVX512"),
    "package, machine": (package, {"AOTI_MACHINE": "riscv64"}, "machine was riscv64"),
    "package, platform": (package, {"AOTI_PLATFORM": "plan9"}, "platform was plan9"),
    "package, GPU": (package, {"AOTI_COMPUTE_CAPABILITY": "90"}, "It was made for the compute capability 90"),
    "program, here": (program, {"torch_version": "2.14.1"}, ""),
    "program, torch": (program, {"torch_version": "2.13.0"}, "PyTorch was 2.13.0"),
}  # fmt: skip


@pytest.mark.parametrize("name", OF_MACHINE)
def test_what_was_planted_is_named_before_loading(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(fitting, "_flags", lambda: frozenset({"avx2", "fma"}))
    monkeypatch.setattr(fitting, "_version", lambda package: {"torch": "2.14.1", "triton": "3.8.0"}[package])
    monkeypatch.setattr(fitting, "has_gpu", lambda: False)
    make, facts, expected = OF_MACHINE[name]
    make(tmp_path / "artifact", **facts)
    assert main(["open", str(tmp_path / "artifact"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["fit"]
    words = [one["what"] for one in found["differences"]]
    assert len(words) == bool(expected)
    assert all(text.startswith(expected) for text in words)
    assert len(found["compared"]) == len(facts) - ("AOTI_DEVICE_KEY" in facts)


HERE = """\
import os
import torch


def f(x, id=0):
    path = os.path.join(os.getcwd(), __file__)
    y = x * int(os.environ["SCALE"]) + int(os.environ.get("BIAS", 0))
    return y.to("cuda:1") * torch.distributed.get_rank() + hash(id), path
"""


def test_what_is_not_portable_is_told_at_its_line() -> None:
    artifact = Artifact("a", "", "")
    artifact.sources.append(Source("m", "/m.py", 5, 9, HERE))
    assert [(one.line, one.what.partition("`")[2].partition("`")[0]) for one in not_portable(artifact)] == [
        (6, "os.getcwd()"),
        (6, "__file__"),
        (7, "os.environ['SCALE']"),
        (7, "os.environ.get('BIAS', 0)"),
        (8, "cuda:1"),
        (8, "torch.distributed.get_rank()"),
    ]
    artifact.sources[:] = [Source("m", "/m.py", 8, 10, TEXT)]
    assert not_portable(artifact) == []


# --- hostile files ------------------------------------------------------------------------------------------------------


def test_a_memo_of_huge_numbers_takes_no_memory() -> None:
    data = b"\x80\x04" + b"".join(b"Nr" + struct.pack("<I", (1 << 32) - 1 - number) + b"0" for number in range(1000))
    assert inert.read(data + b"N.") is None
    with pytest.raises(inert.PickleError, match="damaged"):
        inert.read(b"\x80\x04j\xff\xff\xff\xff.")


def test_wrong_magic_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "artifact"
    for data in (b"", b"\x7fELF" + bytes(100), b"#!/bin/sh\n", bytes(200), b"CompiledArtifact" * 4):
        path.write_bytes(data)
        assert main(["open", str(path)]) == 3
        assert capsys.readouterr().err.startswith("irscope: ")


def test_names_with_paths_are_never_written(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "model.pt2"
    path.parent.mkdir()
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("../../escaped/aotinductor/model/a.kernel.cpp", "void kernel() {}")
        archive.writestr("/etc/aotinductor/model/b.wrapper.cpp", "//")
    artifact = read(path)
    assert artifact.kernels == {"a.kernel.cpp": "void kernel() {}"}
    assert [one.name for one in tmp_path.iterdir()] == ["folder"]
    assert [one.name for one in path.parent.iterdir()] == ["model.pt2"]


def test_links_in_a_folder_of_caches_are_not_followed(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "entry").write_bytes(pickle.dumps({"a": 1}))
    folder = tmp_path / "cache" / "fxgraph" / "ab" / "fabc"
    folder.mkdir(parents=True)
    (folder / "file").symlink_to(secret / "entry")
    (tmp_path / "cache" / "fxgraph" / "linked").symlink_to(secret)
    (folder / "real").write_bytes(pickle.dumps({"a": 1}))
    assert [part.name for part in read(tmp_path / "cache").parts] == ["fxgraph fabc"]


def test_a_folder_that_takes_an_evil_file_in_lists_the_rest(tmp_path: Path) -> None:
    made = tmp_path / "made"
    folder = tmp_path / "cache" / "aotautograd" / "key"
    folder.mkdir(parents=True)
    (folder / "a").write_bytes(pickle.dumps(Touches(str(made))))
    (folder / "b").write_bytes(b"\x80\x04\x95\xff")
    artifact = read(tmp_path / "cache")
    assert len(artifact.parts) == 2
    assert len(artifact.problems) == 1
    assert not made.exists()


# --- inputs -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("was", "now", "is_fit"),
    [
        ("torch.Size([8, 128])", "torch.Size([8, 128])", True),
        ("torch.Size([8, 128])", "torch.Size([8, 130])", False),
        ("torch.Size([2..64, 128])", "torch.Size([64, 128])", True),
        ("torch.Size([2..64, 128])", "torch.Size([65, 128])", False),
        ("torch.Size([2..64, 128])", "torch.Size([1, 128])", False),
        ("torch.Size([2.., 128])", "torch.Size([900, 128])", True),
        ("torch.Size([2.., 128])", "torch.Size([900])", False),
        ("torch.float32", "torch.float64", False),
    ],
)
def test_a_size_that_may_vary_has_limits(was: str, now: str, is_fit: bool) -> None:
    assert inputs.fits(was, now) is is_fit


GRAPH = """\
class <lambda>(torch.nn.Module):
    def forward(self, arg0_1: "f32[8, 128][128, 1]cpu"):
        # File: FILE:2 in f, code: y = x.sin() * 2.0
        sin: "f32[8, 128][128, 1]cpu" = torch.ops.aten.sin.default(arg0_1);  arg0_1 = None
        mul: "f32[8, 128][128, 1]cpu" = torch.ops.aten.mul.Tensor(sin, 2.0);  sin = None

        # File: FILE:3 in f, code: return y + 1
        add: "f32[8, 128][128, 1]cpu" = torch.ops.aten.add.Tensor(mul, 1);  mul = None
        return (add,)
"""


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("", "", []),
        ("f32[8, 128]", "f32[9, 128]", []),
        ("arg0_1", "primals_1", []),
        ("2.0)", "3.0)", [("aten.mul.Tensor was 2.0 when it was made and is 3.0 now", 2)]),
        ("add: ", "sub: ", []),
        (
            "aten.add.Tensor",
            "aten.sub.Tensor",
            [("had aten.add.Tensor when it was made and has aten.sub.Tensor now", 3)],
        ),
        ("aten.sin.default", "aten.cos.default", [("had aten.sin when it was made and has aten.cos now", 2)]),
        (
            'add: "f32[8, 128][128, 1]cpu" = torch.ops.aten.add',
            'sub: "f32[8, 128][128, 1]cpu" = torch.ops.aten.sub',
            [("has aten.sub.Tensor now", 3)],
        ),
        ("Tensor(mul, 1)", "Tensor(arg0_1, 1)", [("The arguments of aten.add.Tensor have changed", 3)]),
    ],
)
def test_what_differs_between_graphs_is_told_at_the_line_of_the_run(
    before: str, after: str, said: list[tuple[str, int]]
) -> None:
    found = graph_changes(GRAPH, GRAPH.replace(before, after) if before else GRAPH)
    assert len(found) == len(said)
    for one, (what, line) in zip(found, said, strict=True):
        assert what in one.what
        assert one.line == line


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("def f(x):\n    y = x.sin() * 2.0\n    return y + 1\n", []),
        ("\n\ndef f(x):\n    y = x.sin() * 2.0  # twice\n    return (\n        y + 1)\n", []),
        (
            "def f(x):\n    y = x.sin() * 2.5\n    return y + 1\n",
            ["`y = x.sin() * 2.0` in `f` has changed since it was made."],
        ),
        ("def g(x):\n    y = x.sin() * 2.0\n    return y + 1\n", ["`f` is not in the file any more."]),
    ],
)
def test_lines_that_a_graph_came_from_are_compared_with_the_source(tmp_path: Path, text: str, said: list[str]) -> None:
    path = tmp_path / "module.py"
    path.write_text(text)
    artifact = Artifact("a", "", "")
    artifact.lowered["key"] = GRAPH.replace("FILE", str(path))
    assert list(dict.fromkeys(one.what for one in fit(artifact).differences)) == said


CODE = """\
# AOT ID: ['0_inference']
from torch._inductor.async_compile import AsyncCompile
async_compile = AsyncCompile()
cpp_fused_add_mul_sin_0 = async_compile.cpp_pybinding(['const float*', 'float*'], r'''
extern "C" void kernel(const float* in_ptr0, float* out_ptr0) {}
''')
def call(args):
    cpp_fused_add_mul_sin_0(arg0_1, buf0)
    return (buf0, )
"""


class Compiled:
    """Has the fields that entries of PyTorch's caches have."""

    def __init__(self, **fields: Any) -> None:
        vars(self).update(fields)


def test_the_entries_of_a_cache_are_the_stages_of_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = tmp_path / "module.py"
    code.write_text("def f(x):\n    y = x.sin() * 2.0\n    return y + 1\n")
    graph = GRAPH.replace("FILE", str(code))
    made = {"inductor_post_grad_graph_str": graph, "source_code": CODE, "_fx_graph_cache_debug_lines": ["[a] b: c"]}
    inductor = mega((b"fkey", pickle.dumps(Compiled(**made, _fx_graph_cache_key="fkey"))))
    forward = Compiled(aot_forward_graph_str=graph, compiled_fw=Compiled(cache_info=("fkey", [])))
    autograd = mega((b"akey", pickle.dumps(forward)), kind=b"aot_autograd")
    body = inductor[4:] + autograd[12:]
    file, store = tmp_path / "mega", str(tmp_path / "runs.db")
    file.write_bytes(zlib.crc32(body).to_bytes(4, "big") + body)
    assert main(["open", str(file), "--store", store, "--json"]) == 0
    run = json.loads(capsys.readouterr().out)["run"]
    assert main(["show", run, "--store", store, "--json"]) == 0
    (compile,) = json.loads(capsys.readouterr().out)["compiles"]
    assert (compile["function"], compile["file"], compile["graph_ops"]) == ("f", str(code), 3)
    assert [stage["name"] for stage in compile["stages"]] == [
        "inference-graph",
        "post-grad-graph",
        "output-code",
        "kernel",
    ]
    assert main(["show", run, "--store", store, "--line", f"{code}:3"]) == 0
    assert "aten.add.Tensor" in capsys.readouterr().out


def tensor(*sizes: Any) -> dict[str, Any]:
    return {"dtype": 7, "sizes": list(sizes), "strides": [{"as_int": 1} for _ in sizes], "device": {"type": "cpu"}}


def node(target: str, line: int, inputs: list[Any], **facts: Any) -> dict[str, Any]:
    stack = f'File "FILE", line {line}, in forward\n    y = x\n  File "/a/site-packages/torch/nn/linear.py", line 3, in g\n    z'
    arguments = [{"name": "a", "arg": one, "kind": 1} for one in inputs]
    return {
        "target": target,
        "inputs": arguments,
        "metadata": {"stack_trace": stack, "nn_module_stack": "L__self__,,m.M"},
        **facts,
    }


def test_the_graph_of_a_program_is_a_stage_of_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    of = {name: {"as_tensor": {"name": name}} for name in ("x", "sin", "evil\n  class", "half", "k")}
    size = {"as_expr": {"expr_str": "Mul(Integer(2), Symbol('s0', positive=True))"}}
    values = {"x": tensor(size, {"as_int": 4}), "sin": tensor(size, {"as_int": 4})}
    graphs = {"sym_int_values": {}, "tensor_values": values}
    inner = {
        **graphs,
        "inputs": [of["x"]],
        "outputs": [of["k"]],
        "nodes": [node("torch.ops.aten.cos", 2, [of["x"]], outputs=[of["k"]])],
    }
    nodes = [
        node("torch.ops.aten.sin.default", 2, [of["x"]], outputs=[of["sin"]]),
        node("torch.ops.aten.to", 3, [of["sin"], {"as_scalar_type": 6}, {"as_none": True}], outputs=[of["evil\n  class"]]),
        node("_operator.call", 3, [{"as_graph": {"name": "yes", "graph": inner}}, {"as_tensors": [{"name": "x"}]}],
             outputs=[{"as_tensors": [{"name": "half"}]}], name="both"),
    ]  # fmt: skip
    facts = {
        "graph": {**graphs, "inputs": [of["x"]], "outputs": [of["half"]], "nodes": nodes},
        "signature": {"input_specs": []},
    }
    path, store, code = tmp_path / "p.pt2", str(tmp_path / "runs.db"), tmp_path / "module.py"
    code.write_text("import torch\ny = x\ny = x\n")
    program(path, **json.loads(json.dumps({"graph_module": facts, "range_constraints": {}}).replace("FILE", str(code))))
    assert main(["open", str(path), "--store", store, "--json"]) == 0
    run = json.loads(capsys.readouterr().out)["run"]
    assert main(["show", run, "--store", store, "--stage", "exported-program"]) == 0
    text = capsys.readouterr().out
    for line in (
        'def forward(self, x: "f32[Mul(2, s0), 4]"):', f"# File: {code}:2 in forward, code: y = x",
        'sin: "f32[Mul(2, s0), 4]" = torch.ops.aten.sin.default(x)', "evil_class = torch.ops.aten.to(sin, torch.float16, None)",
        "yes = self.yes", "both = operator.call(yes, [x])", "half = both[0]", "class yes(torch.nn.Module):", "k = torch.ops.aten.cos(x)",
    ):  # fmt: skip
        assert line in [one.strip() for one in text.split("\n")]
    assert main(["show", run, "--store", store, "--line", f"{code}:3"]) == 0
    assert "operator.call" in capsys.readouterr().out


# --- vLLM's cache -------------------------------------------------------------------------------------------------------

FACTORS = {
    "env": {"VLLM_TARGET_DEVICE": "cuda"},
    "config": {"model_config": {"dtype": "torch.bfloat16", "max_model_len": 4096}},
    "config_hash": "aa",
    "compiler": {"torch": "2.14.1"},
    "compiler_hash": "bb",
    "code": [{"path": "CODE", "sha256": "1"}],
    "code_hash": "cc",
}


def vllm_key(root: Path, key: str, when: int, factors: dict[str, Any]) -> Path:
    """A folder as vLLM writes it for one key, of one rank."""
    folder = root / "torch_compile_cache" / key / "rank_0_0" / "backbone"
    folder.mkdir(parents=True)
    file = folder / "cache_key_factors.json"
    file.write_text(json.dumps(factors))
    os.utime(file, (when, when))
    (folder / "computation_graph.py").write_text("class GraphModule: ...")
    return file


def test_the_part_of_vllms_key_that_changed_is_named(tmp_path: Path) -> None:
    code = tmp_path / "llama.py"
    code.write_text("x = 1\n")
    factors = json.loads(json.dumps(FACTORS).replace("CODE", str(code)))
    longer = {
        **factors,
        "config": {"model_config": {"dtype": "torch.bfloat16", "max_model_len": 8192}},
        "config_hash": "a2",
    }
    edited = {**longer, "code": [{"path": str(code), "sha256": "2"}], "code_hash": "c2"}
    for when, (key, facts) in enumerate((("first", factors), ("longer", longer), ("edited", edited)), 1):
        vllm_key(tmp_path, key, when, facts)
    (found,) = fit(read(tmp_path / "torch_compile_cache")).differences
    assert found.what == f'`code[{code}].sha256` was "1" in the key longer and is "2" in edited.'
    assert (found.file, found.line) == (str(code), 1)
    (found,) = fit(read(tmp_path / "torch_compile_cache" / "longer")).differences
    assert found.what == "`config.model_config.max_model_len` was 4096 in the key first and is 8192 in longer."
    assert "graph before it is split" in next(iter(read(tmp_path / "torch_compile_cache" / "longer").graphs))


def test_factors_of_vllm_that_are_damaged_or_elsewhere_are_left_out(tmp_path: Path) -> None:
    damaged, link = vllm_key(tmp_path, "damaged", 1, {}), vllm_key(tmp_path, "link", 2, {})
    damaged.write_text('{"env": [' + "[" * 100_000)
    link.unlink()
    link.symlink_to("/etc/passwd")
    vllm_key(tmp_path, "good", 3, FACTORS)
    artifact = read(tmp_path / "torch_compile_cache")
    assert [one.key for one in artifact.keyed] == ["good"] and not fit(artifact).differences
    assert len(artifact.problems) == 1
