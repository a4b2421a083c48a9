"""``irscope why-miss``: parts of cache keys of two runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from irscope.cli.main import main
from irscope.pipeline_captures.inductor.cache_differences import AOT, FX, KeyDifference, compare_keys, triton_changes
from irscope.protocol import Compile, CompileOutcome, Lane, StageRef
from irscope.store.store import Store

KERNEL = """\
import triton
from torch._inductor.runtime import triton_heuristics

@triton_heuristics.pointwise(
    size_hints={'x': 4096},
    triton_meta={'signature': {'in_ptr0': '*fp32', 'xnumel': 'i32'}, 'device': DeviceProperties(type='cuda', cc=90), 'constants': {}},
)
@triton.jit
def triton_poi_fused_add_0(in_ptr0, xnumel, XBLOCK: tl.constexpr):
    tl.store(in_ptr0, tl.load(in_ptr0) + 1)
"""


def keep(store: Store, run: str, keys: dict[str, dict[str, str]], function: str = "f1") -> None:
    compile = Compile("0/0", "f", "/nowhere/net.py", 3, CompileOutcome.COMPILED, 0, 2, 1.0)
    store.put_compile(run, compile)
    for name, parts in keys.items():
        data = {"function": function, "file": "x", "digests": [f"d{value}" for value in parts.values()]}
        text = "".join(f"{key}: {value}\n" for key, value in parts.items())
        store.put_stage(run, "0/0", StageRef(f"0/0/{name}", name, "plaintext", len(text)), text, 0.0, data)


def two_runs(store: Store, mine: dict[str, dict[str, str]], theirs: dict[str, dict[str, str]]) -> tuple[str, str]:
    runs = tuple(store.create_run("/nowhere/net.py", (), Lane.DEEP, "") for _ in range(2))
    for run, keys in zip(runs, (mine, theirs), strict=True):
        keep(store, run, keys)
    return runs[0], runs[1]


def test_each_cache_has_its_own_changes(tmp_path: Path) -> None:
    before = {"cache-key": {"gm": "G", "inductor_config[x]": "1"}, "aot-cache-key": {"grad_enabled": "True"}}
    after = {"cache-key": {"gm": "G", "inductor_config[x]": "2"}, "aot-cache-key": {"grad_enabled": "False"}}
    with Store(str(tmp_path / "runs.db")) as store:
        found = compare_keys(store, *two_runs(store, before, after))
        assert {(key.cache, key.changes) for key in found.keys} == {
            (FX, ("`torch._inductor.config.x` became 2 (was 1)",)),
            (AOT, ("`grad_enabled` became False (was True)",)),
        }
        alike = compare_keys(store, *two_runs(store, before, before))
        assert [key.changes for key in alike.keys] == [(), ()] and all(
            isinstance(key, KeyDifference) for key in alike.keys
        )


def test_a_function_without_a_key_is_named(tmp_path: Path) -> None:
    with Store(str(tmp_path / "runs.db")) as store:
        found = compare_keys(store, *two_runs(store, {}, {"cache-key": {"gm": "G"}}))
    assert found.without_keys == ("f",) and not found.keys


@pytest.mark.parametrize(
    ("replaced", "by", "words"),
    [
        ("+ 1", "+ 1", []),
        ("+ 1", "+ 2", ["the source of the kernel changed"]),
        ("cc=90", "cc=100", ["`device` changed: was DeviceProperties(type='cuda', cc=90), now DeviceProperties(type='cuda', cc=100)"]),
        ("'*fp32'", "'*bf16'", ["`signature` changed: was {'in_ptr0': '*fp32', 'xnumel': 'i32'}, now {'in_ptr0': '*bf16', 'xnumel': 'i32'}"]),
        ("4096", "8192", ["what Inductor writes beside the kernel changed"]),
        ("def", "de f", ["the source of the kernel changed"]),
    ],
)  # fmt: skip
def test_parts_of_a_triton_kernel(replaced: str, by: str, words: list[str]) -> None:
    assert triton_changes(KERNEL, KERNEL.replace(replaced, by)) == words


def test_the_command_takes_runs_and_stores(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, other = str(tmp_path / "a.db"), str(tmp_path / "b.db")
    with Store(path) as store:
        runs = two_runs(store, {"cache-key": {"gm": "G"}}, {"cache-key": {"gm": "H"}})
    with Store(other) as store:
        run = store.create_run("/elsewhere/net.py", (), Lane.DEEP, "")
        keep(store, run, {"cache-key": {"gm": "G"}}, function="f2")
    assert main(["why-miss", *runs, "--store", path]) == 0
    assert "the graph itself is different" in capsys.readouterr().out
    assert main(["why-miss", path, other, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["keys"][0]["changes"][0] == "the source of the function changed" and not found["same"]
    assert main(["why-miss", str(tmp_path), other]) == 3
    assert main(["why-miss", __file__, other]) == 2
