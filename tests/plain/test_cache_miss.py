"""Misses in the FX graph cache: what differs between two keys, and what the user's own run would find."""

from __future__ import annotations

import base64
import json
import pickle
import struct
import zlib
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from facts import a_compile
from irscope.events.trace import Record
from irscope.findings.kinds.cache_miss import (
    CacheKey,
    arguments_of,
    changes,
    detect,
    detect_artifact,
    parts_of,
    tell_artifact_miss,
)
from irscope.findings.moment import Known, Moment
from irscope.internals.caches import _status, _tell_key
from irscope.ir.graphs import parse_graph
from irscope.usercode import source

TENSOR = (
    "TensorMetadata(dtype=torch.float32, shape=torch.Size([{rows}, 4]), stride=(4, 1), device=device(type='{device}'), "
    "layout=torch.strided, memory_format=torch.contiguous_format, storage_offset=0, requires_grad=False, is_quantized=False)"
)
BEFORE = {
    "gm": ("g1", "GraphModule()"),
    "example_inputs[0]": ("t1", TENSOR.format(rows=4, device="cpu")),
    "fx_kwargs[is_backward]": ("b1", "False"),
    "fx_kwargs[static_input_idxs]": ("s1", "[0]"),
    "torch_version": ("v1", "·M·"),
    "inductor_config[max_autotune]": ("c1", "False"),
    "cpp_runtime_thread_count": ("n1", "2"),
}


def key(changed: Mapping[str, tuple[str, str]] | None = None, function: str = "f1", file: str = "file1") -> CacheKey:
    return CacheKey({**BEFORE, **(changed or {})}, function, file)


@pytest.mark.parametrize(
    ("after", "words"),
    [
        ({}, []),
        ({"inductor_config[max_autotune]": ("c2", "True")}, ["`torch._inductor.config.max_autotune` became True (was False)"]),
        ({"example_inputs[0]": ("t2", TENSOR.format(rows=8, device="cpu")), "gm": ("g2", ""), "fx_kwargs[static_input_idxs]": ("s2", "[]")}, ["the size of `x` became [8, 4] (was [4, 4])"]),
        ({"example_inputs[0]": ("t2", TENSOR.format(rows=4, device="cuda"))}, ["the device of `x` became device(type='cuda') (was device(type='cpu'))"]),
        ({"example_inputs[1]": ("t2", TENSOR.format(rows=4, device="cuda"))}, ["argument 1 came"]),
        ({"cpp_runtime_thread_count": ("n2", "8")}, ["`torch.get_num_threads()` became 8 (was 2)"]),
        ({"torch_version": ("v2", "·N·")}, ["PyTorch itself has a different version"]),
        ({"gm": ("g2", "GraphModule()")}, ["the graph itself is different (a constant in it, or a helper that it calls)"]),
        ({"inductor_config[max_autotune]": ("c2", "False")}, []),  # by a digest that depends on earlier parts
    ],
)  # fmt: skip
def test_what_changed(after: dict[str, tuple[str, str]], words: list[str]) -> None:
    assert changes(key(), key(after), ("x",)) == words


def test_a_size_that_became_dynamic_is_named_at_its_tensor() -> None:
    """The symbol is an input of its own, so the tensor is not at the same number."""
    symbol = ("t2", "SymInt(s77)")
    dynamic = ("t3", TENSOR.format(rows="s77", device="cpu"))
    after = key({"example_inputs[0]": symbol, "example_inputs[1]": dynamic})
    assert changes(key(), after, ("s77", "x")) == ["the size of `x` became [s77, 4] (was [4, 4])"]
    assert changes(after, key(), ("x",)) == ["the size of `x` became [4, 4] (was [s77, 4])"]
    assert changes(key(), after) == ["the size of argument 0 became [s77, 4] (was [4, 4])"]


def test_an_edit_explains_itself() -> None:
    setting = {"inductor_config[max_autotune]": ("c2", "True")}
    assert changes(key(), key(setting, function="f2")) == []
    # The file was edited, not the function: another graph may come from there, a setting does not.
    assert changes(key(), key({"gm": ("g2", "")}, file="file2")) == []
    assert len(changes(key(), key({"gm": ("g2", ""), **setting}, file="file2"))) == 1


def test_the_parts_of_a_key() -> None:
    lines = [
        "[abcdefghijklmnopqrstuvwxyz] gm: GraphModule()\n\n\ndef forward(self, x):\n    return x",
        "[d1] provenance_tracking_level: 1",
        "[d4] inductor_config[cpp.enable_kernel_profile]: True",
        "[d2] torch_version: \ufffdM\x1b[2J",
        "[d3] cache_key_tag: ",
        "no such line",
    ]
    assert parts_of(lines) == {
        "gm": ("abcdefghijklmnop", "GraphModule() def forward(self, x): return x"),
        "torch_version": ("d2", "\ufffdM·[2J"),
        "cache_key_tag": ("d3", ""),
    }


def test_the_names_of_the_arguments() -> None:
    text = 'class GraphModule(torch.nn.Module):\n    def forward(self, L_x_: "f32[4, 4]"):\n        l_x_ = L_x_\n        return (l_x_,)\n'
    assert arguments_of(parse_graph(text), key()) == ("x",)
    assert arguments_of(parse_graph(text), key({"example_inputs[1]": ("", "")})) == ()
    assert arguments_of(parse_graph(text), key({"fx_kwargs[is_backward]": ("", "True")})) == ()
    assert arguments_of(None, key()) == ()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "model.py"
    path.write_text("def forward(x):\n    return x\n", encoding="utf-8")
    source.read_source.cache_clear()
    return path


@pytest.mark.parametrize(
    ("status", "earlier", "words"),
    [
        ("full_miss", True, "became True (was False)."),
        ("full_miss", False, None),
        ("hit", True, None),
        (None, True, None),
        ("guard_miss", False, "the cached entry is valid only where L['x'].size()[0] > 9."),
    ],
)
def test_only_what_the_user_s_own_run_misses(status: str | None, earlier: bool, words: str | None, file: Path) -> None:
    facts = {"cache_status_detailed": status, "cache_status_guard_expr": "L['x'].size()[0] > 9"}
    record = Record("fx_graph_cache_miss", {}, "0/0", 0, json.dumps(facts))
    moment = Moment(record, a_compile(file=str(file), line=1), None, False)
    after = key({"inductor_config[max_autotune]": ("c2", "True")})
    found = list(detect(moment, after, key() if earlier else None))
    assert [finding.message.endswith(words or "") for finding in found] == ([True] if words else [])


class Entry:
    """What a Mega-Cache has of a graph."""


def loaded_cache(**changed: str) -> bytes:
    def field(data: bytes) -> bytes:
        return struct.pack(">Q", len(data)) + data

    entry = Entry()
    parts = {name: text for name, (_, text) in BEFORE.items()} | changed
    entry.__dict__ |= {
        "_fx_graph_cache_key": "fkey",
        "_fx_graph_cache_debug_lines": [f"[{BEFORE[name][0]}] {name}: {text}" for name, text in parts.items()],
    }
    body = struct.pack(">Q", 1) + field(base64.b64encode(b"inductor")) + struct.pack(">Q", 1)
    body += field(base64.b64encode(b"fkey")) + field(pickle.dumps(entry))
    return zlib.crc32(body).to_bytes(4, "big") + body


@pytest.mark.parametrize(
    ("status", "caches", "why"),
    [
        ("full_miss", [loaded_cache()], "`torch._inductor.config.max_autotune` became True (was False)"),
        ("full_miss", [loaded_cache()[:-1]], "its checksum does not match: it is damaged or cut off"),
        ("guard_miss", [loaded_cache()], "the entry is valid only where s0 > 9"),
        ("hit", [loaded_cache()], None),
        ("full_miss", [], None),
    ],
)
def test_a_loaded_cache_that_misses_has_its_cost(status: str, caches: list[bytes], why: str | None, file: Path) -> None:
    known, compile = Known(), a_compile(file=str(file), line=1)

    def moment(event: str, facts: dict[str, Any]) -> Moment:
        return Moment(Record(event, facts, "0/0", 0, json.dumps(facts)), compile, None, False, known)

    for cache in caches:
        assert not list(detect_artifact(moment("mega-cache-loaded", {}), cache))
    facts = {"cache_status_detailed": status, "cache_status_guard_expr": "s0 > 9"}
    after = key({"inductor_config[max_autotune]": ("c2", "True")})
    assert not list(detect(moment("fx_graph_cache_miss", facts), after, None))
    ends = moment("compilation_metrics", {"entire_frame_compile_time_s": 43.0})
    expected = f"The loaded cache did not match: compiled again, 43.0 s, because {why}."
    assert [finding.message for finding in tell_artifact_miss(ends)] == ([expected] if why else [])
    assert not list(tell_artifact_miss(ends))


def test_what_a_lookup_finds(tmp_path: Path) -> None:
    """PyTorch's own steps, on a made-up cache: entries lie in a folder, and hold for some sizes."""
    entries: list[Any] = []
    cache = SimpleNamespace(
        _get_tmp_dir_for_key=lambda key: str(tmp_path / key),
        _filter_backed_symints=lambda inputs: [i for i in inputs if isinstance(i, int)],
        iterate_over_candidates=lambda local, remote, key: iter(entries),
        _get_shape_env=lambda: SimpleNamespace(
            evaluate_guards_expression=lambda guards, hints: eval(guards, {"s": hints})
        ),
    )

    def status(*inputs: object) -> str:
        return _status(cache, lambda symint: symint, "key", inputs)["cache_status_detailed"]

    assert status(7) == "full_miss"
    (tmp_path / "key").mkdir()
    assert status() == "full_miss"
    (tmp_path / "key" / "entry").touch()
    assert status() == "hit"
    entries[:] = [(SimpleNamespace(guards_expr="s[0] > 9"), b"", True)]
    assert (status(7), status(10)) == ("guard_miss", "hit")
    entries.append((SimpleNamespace(guards_expr=""), b""))  # as torch 2.9 gives them
    assert status(7) == "hit"


def test_the_event_of_the_autograd_cache_tells_the_parts_of_its_key() -> None:
    """Since torch 2.12 PyTorch leaves them out; how the key is made has changed since."""

    class Pickler:
        def get_hash(self, details: object) -> str:
            return "digest"

        def debug_lines(self, details: object) -> list[str]:
            return [f"[d] {name}: {value}" for name, value in vars(details).items()]

    def autograd_cache_key(graph: object) -> tuple[str, list[str]]:
        return "a" + cache.AOTAutogradCachePickler().get_hash(SimpleNamespace(gm=graph, grad_enabled=True)), []

    cache = SimpleNamespace(AOTAutogradCachePickler=Pickler, autograd_cache_key=autograd_cache_key)
    undo = _tell_key(cache)
    assert cache.autograd_cache_key("graph") == ("adigest", ["[d] grad_enabled: True"])
    undo()
    assert cache.autograd_cache_key("graph") == ("adigest", [])
    with pytest.raises(AttributeError):  # a capture gap
        _tell_key(SimpleNamespace())
