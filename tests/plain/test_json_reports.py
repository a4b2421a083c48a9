"""`irscope open --json` and `irscope run --world --json` have the schema of `irscope run --json`: that of docs/json.md.

What a script does is recorded: in place of a run the traces are opened, and the commands print what is then in the store.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import tarfile
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from irscope.cli import ranking, running
from irscope.cli.main import main
from irscope.driver.driver import RunSpec
from irscope.driver.merging import RankDone
from irscope.opening.paths import Roots
from irscope.opening.trace_run import TraceSpec, open_trace
from irscope.protocol import Outcome, StageRef
from irscope.store.store import Store
from json_docs import not_as_documented, places_of

TRACES = Path(__file__).parent / "traces"
Document = dict[str, Any]

COMMUNICATES = """\
class GraphModule(torch.nn.Module):
    def forward(self, a: "f32[8, 8][8, 1]cpu"):
        sent: "f32[8, 8][8, 1]cpu" = torch.ops._c10d_functional.all_reduce.default(a, 'sum', '7')
        waited: "f32[8, 8][8, 1]cpu" = torch.ops._c10d_functional.wait_tensor.default(sent);  sent = None
        return (waited,)
"""


def stored(trace: str, store: Store, folder: Path) -> tuple[str, Outcome]:
    """A run in the store with what a recorded script did."""
    run = open_trace(TraceSpec(str(TRACES / f"{trace}.log.gz"), Roots(str(folder))), store)
    return run, store.report(run).outcome


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Document]:
    """By command what it prints."""
    folder = tmp_path_factory.mktemp("json")
    log, logs = folder / "one.log", folder / "logs"
    logs.mkdir()
    log.write_bytes(gzip.decompress((TRACES / "trace.log.gz").read_bytes()))
    (logs / "dedicated_log_torch_trace_x.log").write_bytes(log.read_bytes())
    with tarfile.open(folder / "packed.tar.gz", "w:gz", compresslevel=1) as archive:
        archive.add(log, "one.log")
    (folder / "train.py").write_text("import torch\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(running, "execute", lambda spec, store, **_: stored("trace", store, folder))
        patch.setattr(ranking, "run_ranks", lambda specs, store, **_: ranks(specs, store, folder))
        script, store = str(folder / "train.py"), str(folder / "runs.db")
        return {
            "run": printed("run", script, "--store", store),
            "run --world": printed("run", "--world", "8", "--ranks", "0,5", script, "--store", store),
            "open LOG": printed("open", str(log), "--store", store),
            "open FOLDER": printed("open", str(logs), "--store", store),
            "open ARCHIVE": printed("open", str(folder / "packed.tar.gz"), "--store", store),
            "open PIECES": printed("open", str(TRACES / "sglang.log.gz"), "--store", store),
        }


def printed(*command: str) -> Document:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert main([*command, "--json"]) == 0
    document: Document = json.loads(out.getvalue())
    return document


def ranks(specs: list[RunSpec], path: str, folder: Path) -> list[RankDone]:
    """Two ranks whose graphs are not the same, and communicate."""
    done = []
    with Store(path) as store:
        for rank, trace in zip((0, 5), ("trace", "trace-2.9"), strict=True):
            run, outcome = stored(trace, store, folder)
            compile = store.report(run).compiles[0].id
            graph = StageRef(f"{compile}/inference-graph", "inference-graph", "python", len(COMMUNICATES))
            store.put_stage(run, compile, graph, COMMUNICATES, 0)
            store.put_facts(run, {"groups": {"7": 4}})
            done.append(RankDone(rank, run, outcome))
    return done


COMMANDS = ("run", "run --world", "open LOG", "open FOLDER", "open ARCHIVE", "open PIECES")


@pytest.mark.parametrize("command", COMMANDS)
def test_a_document_has_the_documented_keys_and_types(documents: dict[str, Document], command: str) -> None:
    assert list(not_as_documented(documents[command])) == []


@pytest.mark.parametrize("command", COMMANDS[1:])
def test_the_same_key_has_the_same_type(documents: dict[str, Document], command: str) -> None:
    kinds: dict[str, set[str]] = defaultdict(set)
    for place, kind in (*places_of(documents["run"]), *places_of(documents[command])):
        kinds[place].add(kind)
    assert {place: found for place, found in kinds.items() if len(found - {"null"}) > 1} == {}
    more = {place.split(".")[1].removesuffix("[]") for place in dict(places_of(documents[command]))} - set(
        documents["run"]
    )
    assert more == set(), "every document has the same keys at its top"


def test_the_documents_are_not_empty(documents: dict[str, Document]) -> None:
    for command, document in documents.items():
        if command != "open PIECES":
            assert document["compiles"] and document["kernels"] and document["findings"], command
    world = documents["run --world"]
    assert world["world"] == 8 and [one["rank"] for one in world["ranks"]] == [0, 5]
    assert "rank-divergence" in {one["kind"] for one in world["findings"]}
    (overlap,) = world["ranks"][0]["overlaps"]
    assert overlap["group_size"] == 4 and world["ranks"][0]["collectives"]
    assert documents["open PIECES"]["pieces"] and all(not documents[each]["pieces"] for each in COMMANDS[:5])


def test_the_check_sees_what_is_not_documented(documents: dict[str, Document]) -> None:
    spoiled = json.loads(json.dumps(documents["run --world"]))
    spoiled["ranks"][0]["overlaps"][0]["group_size"] = "4"
    spoiled["compiles"][0]["more"] = 1
    spoiled["world"] = True
    assert [each.split(":")[0] for each in not_as_documented(spoiled)] == [
        ".compiles[]", ".world", ".ranks[].overlaps[].group_size",
    ]  # fmt: skip
