"""What is chosen by timing: how it is told, and how it is chosen again where the device is not."""

from __future__ import annotations

import math
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from facts import a_compile, a_stage
from irscope.driver.targets import configs_of, tuned_of
from irscope.internals.frames import report_to
from irscope.internals.tuning_hooks import choose_again, name_of_option, template_key
from irscope.pipeline_captures.inductor.autotuning import operator_data, stage_text
from irscope.pipeline_captures.inductor.tuning import choices_of
from irscope.protocol import CaptureGap, Choices, Lane
from irscope.store.store import Store
from irscope.targets.catalogue import catalogue
from irscope.targets.tiles import Product, Tile, estimate

LIBRARY, TEMPLATE = "mm", "triton_mm BLOCK_M=64"
MM = {
    "decision": "template", "operator": "mm", "node": "mm_1", "key": "mm [8]", "chosen": 0,
    "choices": [
        {"name": "triton_mm_4", "description": "BLOCK_M=64", "seconds": 2e-5, "why_not": ""},
        {"name": LIBRARY, "description": "", "seconds": 3e-5, "why_not": ""},
        {"name": "triton_mm_5", "description": "BLOCK_M=128", "seconds": None, "why_not": "OutOfResources: shared memory"},
    ],
}  # fmt: skip
PADDED = {
    "decision": "padding", "operator": "mm", "node": "", "key": "(7, 7)", "chosen": 1,
    "choices": [{"name": "as it is", "seconds": None, "why_not": "cached"}, {"name": "padded", "seconds": None, "why_not": ""}],
}  # fmt: skip
OLD = {
    "kind": "template", "op": "mm", "node": "mm_1", "key": "mm [16]", "chosen": 1,
    "options": [{"name": LIBRARY, "seconds": 3e-5, "why": ""}, {"name": TEMPLATE, "seconds": 2e-5, "why": ""}],
}  # fmt: skip


def a_run(store: Store, device: str, *choices: Any) -> None:
    run = store.create_run("/s.py", [], Lane.DEEP, "digest")
    store.put_facts(run, {"device": device})
    store.put_compile(run, a_compile())
    store.put_stage(run, "0/0", a_stage("autotuning"), "text", 1, {"operators": list(choices)})


def test_the_newest_run_on_the_device_decides(tmp_path: Path) -> None:
    with Store(str(tmp_path / "runs.db")) as store:
        a_run(store, "H100", MM, PADDED)
        a_run(store, "H100", {**PADDED, "chosen": 0})
        a_run(store, "A100", {**PADDED, "chosen": 1, "key": "other"})
        found = choices_of(store, ("H100",))
        assert found is not None
        assert found.padding("(7, 7)") is False and found.padding("other") is None
        assert found.template("mm [8]") == {LIBRARY: 3e-5, TEMPLATE: 2e-5, "triton_mm BLOCK_M=128": None}
        assert choices_of(store, ("L4",)) is None


def test_what_an_older_version_kept_is_chosen_too(tmp_path: Path) -> None:
    with Store(str(tmp_path / "runs.db")) as store:
        a_run(store, "H100", MM)
        run = store.create_run("/s.py", [], Lane.DEEP, "digest")
        store.put_facts(run, {"device": "H100"})
        store.put_compile(run, a_compile())
        padding = {"kind": "padding", "op": "mm", "node": "", "key": "(3, 3)", "chosen": 1, "options": []}
        store.put_stage(run, "0/0", a_stage("timed-choices"), "text", 1, {"choices": [OLD, padding]})
        found = choices_of(store, ("H100",))
        assert found is not None
        assert found.template("mm [16]") == {LIBRARY: 3e-5, TEMPLATE: 2e-5} and found.padding("(3, 3)") is True
        assert found.template("mm [8]") is not None


@pytest.mark.parametrize(
    "choice",
    [
        None,
        7,
        {},
        {**PADDED, "chosen": "1"},
        {**PADDED, "choices": 3},
        {**MM, "choices": [{"name": 1}]},
        {"decision": []},
    ],
)
def test_what_is_no_choice_is_left_out(tmp_path: Path, choice: Any) -> None:
    with Store(str(tmp_path / "runs.db")) as store:
        a_run(store, "H100", choice)
        assert choices_of(store, ("H100",)) == Choices({}, {})


class Unknown(Choices):
    """What was chosen, and no model of the device."""

    def estimate(self, sizes: tuple[int, ...], dtype: str, itemsize: int, options: dict[str, str]) -> float | None:
        return None

    def number(self, name: str) -> int | None:
        return None


class Estimated(Choices):
    """Knows nothing; larger blocks take less time, and the second choice of ``bmm`` is wanted."""

    def estimate(self, sizes: tuple[int, ...], dtype: str, itemsize: int, options: dict[str, str]) -> float | None:
        assert (sizes, dtype, itemsize) == ((1, 256, 128, 512), "bfloat16", 2)
        return 1.0 / int(options["BLOCK_M"])

    def number(self, name: str) -> int | None:
        return 2 if name == "bmm" else None


class Option:
    def __init__(self, name: str, description: str = "") -> None:
        self.name, self.description = name, description


@pytest.fixture
def inductor(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """Stand-ins for the modules of Inductor that time something."""
    modules = {
        "select_algorithm": types.SimpleNamespace(AlgorithmSelectorCache=type("Cache", (), {"do_autotuning": 0, "make_precompile_fn": 0})),
        "fx_passes.pad_mm": types.SimpleNamespace(get_cached_should_pad=None),
        "ir": types.SimpleNamespace(MultiTemplateBuffer=type("Buffer", (), {"swap_as_triton_caller": 0})),
        "scheduler": types.SimpleNamespace(Scheduler=type("S", (), {"benchmark_fused_nodes": 0, "benchmark_codegened_module": 0})),
    }  # fmt: skip
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, f"torch._inductor.{name}", module)
    yield modules


def test_what_is_known_is_chosen_again_and_the_rest_is_open(inductor: dict[str, Any]) -> None:
    open_choices: list[str] = []
    options = [Option("mm"), Option("triton_mm_7", "BLOCK_M=64"), Option("triton_mm_8", "BLOCK_M=32")]
    assert [name_of_option(one) for one in options] == ["mm", "triton_mm BLOCK_M=64", "triton_mm BLOCK_M=32"]
    known = Unknown({template_key("mm", "[8]"): {LIBRARY: 1e-5, TEMPLATE: 2e-5}}, {"(7, 7)": True})
    choose_again(known, lambda one: one.name.startswith("triton"), open_choices)
    choose = inductor["select_algorithm"].AlgorithmSelectorCache().do_autotuning
    times = choose("mm", [], None, None, "[8]", options)
    assert [times[one] for one in options] == [pytest.approx(0.01), pytest.approx(0.02), math.inf]
    assert open_choices == []
    gaps: list[CaptureGap] = []
    undo = report_to(gaps.append)
    unknown = choose("mm", [], None, None, "[9]", options)
    undo()
    assert [gap.what for gap in gaps] == ["estimates of the choices for mm"]  # there are no sizes to estimate with
    assert min(unknown, key=unknown.__getitem__) is options[1]
    pads = inductor["fx_passes.pad_mm"].get_cached_should_pad
    assert (pads("(7, 7)"), pads("(9, 9)")) == (True, False)
    assert open_choices == ["one of 3 templates for mm", "whether to pad a matrix"]


def test_without_a_clock_the_least_estimate_is_taken_and_all_choices_are_reported(
    inductor: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = types.SimpleNamespace(optimization_hint=int)
    graph = types.SimpleNamespace(sizevars=sizes, current_node=None)
    virtualized = types.SimpleNamespace(V=types.SimpleNamespace(graph=graph))
    monkeypatch.setitem(sys.modules, "torch._inductor.virtualized", virtualized)
    reported: list[Any] = []
    cache = inductor["select_algorithm"].AlgorithmSelectorCache
    cache.do_autotuning = lambda *_: None
    cache.do_autotuning.report = reported.append
    options = [
        Option("mm"),
        Option("triton_mm_7", "BLOCK_M=64, EVEN_K=True"),
        Option("triton_mm_8", "BLOCK_M=128, EVEN_K=True"),
    ]
    choose_again(Estimated({}, {}), lambda one: one.name.startswith("triton"), [])
    dtype = type("bfloat16", (), {"itemsize": 2, "__str__": lambda _: "torch.bfloat16"})()
    matrix = types.SimpleNamespace(get_size=lambda: [256, 512], get_dtype=lambda: dtype)
    layout = types.SimpleNamespace(size=[256, 128])
    for name, first in (("mm", options[2]), ("bmm", options[1])):
        times = cache().do_autotuning(name, [matrix, matrix], layout, None, "[9]", options)
        assert min(times, key=times.__getitem__) is first
    least, wanted = reported
    assert [(one.name, one.estimate) for one in least.choices] == [
        ("triton_mm_8", 1 / 128),
        ("triton_mm_7", 1 / 64),
        ("mm", None),
    ]
    assert (least.chosen, least.why, wanted.chosen, wanted.why) == (0, "the least estimate", 1, "--config 2")
    data = operator_data(wanted)
    assert data["chosen"] == 1 and stage_text([data]).split("\n")[:3] == [
        "bmm(bfloat16[256, 512], bfloat16[256, 512]): 3 choices, not timed; number 2 is taken: --config 2",
        "    1  triton_mm_8   ~7.81 ms  BLOCK_M=128", "    2  triton_mm_7   ~15.6 ms  BLOCK_M=64",
    ]  # fmt: skip


def test_an_estimate_prefers_blocks_that_fit_the_device() -> None:
    h100, product = catalogue().named("h100"), Product(1, 4096, 4096, 4096, "bfloat16", 2)
    large, small = estimate(h100, product, Tile(128, 128, 64, 4, 3)), estimate(h100, product, Tile(32, 32, 16, 2, 1))
    assert large and small and 2 * 4096**3 / 989e12 < large < small / 5
    assert estimate(h100, product, Tile(128, 128, 128, 8, 4)) is None  # 256 KiB of shared memory
    few = Product(1, 64, 64, 8192, "bfloat16", 2)
    assert (estimate(h100, few, Tile(64, 64, 64, 4, 5)) or 0) < (estimate(h100, few, Tile(64, 64, 64, 4, 2)) or 0)


def test_a_configuration_is_chosen_by_its_number() -> None:
    assert configs_of("", "") == {} and configs_of("3", "h100") == {"": 3}
    assert configs_of("mm=2,triton_per_fused_0=4", "h100") == {"mm": 2, "triton_per_fused_0": 4}
    for given, target in (("3", ""), ("mm", "h100"), ("0", "h100"), ("mm=99999", "h100")):
        with pytest.raises(LookupError, match="--config"):
            configs_of(given, target)


def test_a_store_of_choices_must_be_there(tmp_path: Path) -> None:
    assert tuned_of("", "h100") == ""
    with pytest.raises(LookupError, match="--tuned needs --target"):
        tuned_of("runs.db", "")
    with pytest.raises(LookupError, match="File not found"):
        tuned_of(str(tmp_path / "none.db"), "h100")
