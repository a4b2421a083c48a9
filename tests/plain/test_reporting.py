"""A run as a page of HTML: what is in it, what cannot be in it, and what redaction takes out."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest
from facts import a_compile, a_finding
from irscope.cli.main import main
from irscope.opening.paths import Roots
from irscope.opening.trace_run import TraceSpec, open_trace
from irscope.protocol import (
    BucketSplit,
    Collective,
    CollectiveOverlap,
    CollectiveWait,
    Compile,
    CompileOutcome,
    Finding,
    Lane,
    Outcome,
    OutcomeKind,
    Position,
    Range,
    RankReport,
    Severity,
    StageRef,
)
from irscope.reporting.page import page_of
from irscope.reporting.redaction import PATHS, SOURCE, Redaction
from irscope.store.store import Store

TRACES = Path(__file__).parent / "traces"
SCRIPT = TRACES / "project" / "steps.py"
MARKUP = '<script>alert(1)</script><img src=x onerror="alert(1)">\u202e'

PageOf = Callable[..., str]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageOf]:
    """The page of the recorded run, with what is to be left out."""
    with Store(str(tmp_path_factory.mktemp("report") / "runs.db")) as store:
        run = open_trace(TraceSpec(str(TRACES / "trace.log.gz"), Roots(str(TRACES))), store)
        report = store.report(run)
        yield lambda *parts: page_of(store, report, Redaction(parts, [report.script]), pictures=False)


class Tags(HTMLParser):
    """The elements of a page, and the addresses in their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.loaded: list[str] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in ("meta", "img", "source"):
            self.open.append(tag)
        self.loaded += [
            value or "" for name, value in attrs if name in ("src", "srcset", "style") or name.startswith("on")
        ]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_has_all_of_the_run_and_loads_nothing(page: PageOf) -> None:
    text = page()
    tags = Tags(text)
    head = html.unescape(re.sub(r"<[^>]+>", " ", text[text.index("<h1>") : text.index("Findings</h2>")]))
    assert re.search(r"\d causes cost .* of compile time\. First: ", head), head
    assert re.search(r"What was compiled\s+kernels\s+library calls\s+graphs\s+compile time\s+this run\s+\d+", head), (
        head
    )
    assert tags.open == [] and tags.loaded == []
    assert not {"script", "iframe", "object", "link", "form"} & set(tags.tags)
    shown = html.unescape(re.sub(r"<[^>]+>", "", text))
    for part in ("Graph break GB0059 ×6", "Recompilation recompile-size", 'print("mean", x.mean())', "Dynamo graph (0/0/dynamo-graph)",
                 "log, after line 6", "torch.ops.aten.sin.default", "cpp_fused_mul_sin_0", "2.13.0+cpu", "what a trace does not have"):  # fmt: skip
        assert part in shown, part
    style = re.search(r"<style>(.*)</style>", text, re.DOTALL)
    assert style is not None
    digest = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy is not None and "default-src 'none'" in policy[1] and f"'sha256-{digest}'" in policy[1]


def test_a_clean_run_says_what_is_next_and_names_what_was_passed(tmp_path: Path) -> None:
    compile = a_compile(program="Net", function="wrapper", outcome=CompileOutcome.COMPILED, stages=())
    with Store(str(tmp_path / "runs.db")) as store:
        run = store.create_run("/m.py", [], Lane.DEEP, "digest")
        store.put_compile(run, compile)
        store.set_outcome(run, Outcome(OutcomeKind.COMPLETED, 0, "It ended.", 1.0))
        text = page_of(store, store.report(run), Redaction((), ["/m.py"]), pictures=False)
    assert "Next: profile it" in text and "<td>Net</td>" in text and "wrapper" not in text


def test_markup_in_names_is_text(tmp_path: Path) -> None:
    where = Range(Position(1, 0), Position(1, 4))
    with Store(str(tmp_path / "runs.db")) as store:
        run = store.create_run(f"/{MARKUP}.py", [MARKUP], Lane.DEEP, "")
        store.set_torch(run, MARKUP)
        compile = Compile("0/0", MARKUP, MARKUP, 1, CompileOutcome.COMPILED, 0, 1, 0.1)
        store.put_compile(run, compile)
        store.put_stage(run, "0/0", StageRef(f"0/0/{MARKUP}", "output-code", "python", 3), MARKUP, 1.0)
        store.put_finding(run, Finding(
            kind=MARKUP, code=MARKUP, severity=Severity.WARNING, message=MARKUP, explanation=MARKUP, hints=(MARKUP,),
            link=f"https://x/{MARKUP}", file=MARKUP, range=where, count=1, compiles=("0/0", MARKUP), related=(),
        ))  # fmt: skip
        store.set_outcome(run, Outcome(OutcomeKind.COMPLETED, 0, MARKUP, 1.0))
        text = page_of(store, store.report(run), Redaction(()), pictures=False)
    assert "<script" not in text and "<img" not in text and "\u202e" not in text
    assert "&lt;script&gt;" in text
    assert Tags(text).open == []
    assert "href" not in text, "an address that is not plain is no link"


def test_a_job_has_its_ranks_and_what_they_communicate(tmp_path: Path) -> None:
    done = Outcome(OutcomeKind.COMPLETED, 0, "done", 1.0)
    sent = Collective("0/0", "0/0/forward-graph", "x", "all_reduce", "sum", "0", "f32[8]cpu", 32, 32, "/a/b/net.py", 7)
    beside = CollectiveOverlap(
        compile="0/0", stage="0/0/output-code", operation="all_gather", reduction="", group="0", group_size=8, start=3,
        wait=4, operations=0, work=(), moved_bytes=None, flops=None, sent_bytes=64, received_bytes=64, file="/a/b/net.py",
        line=9, moves=(),
    )  # fmt: skip
    bucket = BucketSplit("0/0", 1, "submod_2", 4, 1024, "", ("submod_1",), 3)
    wait = CollectiveWait("barrier", "/a/b/net.py", 11, 5, 2.0, 1.0, 1, 4, (0, 1), (2.0, 0.0), 0.4, "/a/b/data.py", 3)
    with Store(str(tmp_path / "runs.db")) as store:
        run = store.create_run("/a/b/net.py", (), Lane.DEEP, "")
        store.put_finding(run, a_finding(file="/a/b/net.py", ranks=(0, 1, 2)))
        store.set_outcome(run, done)
        one = RankReport(0, run, done, 1, 2, (sent, sent), 4096, (1, 2), (beside,), (bucket,))
        store.put_ranks(run, 3, (one,), (wait,))
        text, hidden = (page_of(store, store.report(run), Redaction(each), pictures=False) for each in ((), (PATHS,)))
    assert Tags(text).open == []
    rows = [re.sub(r"<[^>]+>", "|", row).strip("|").replace("||", "|") for row in re.findall(r"<tr>(.*?)</tr>", text)]
    assert "0 of 3|completed|1, 2|1|2|2|64 B|4.1 kB" in rows
    assert "all_reduce (sum)|f32[8]cpu|/a/b/net.py:7|2|64 B" in rows, "alike ones are one row"
    assert any(row.startswith("all_gather|nothing|") and row.endswith("/a/b/net.py:9|1|8|64 B") for row in rows)
    assert "0/0|submod_2|the backward of 1 part: 3 operations|1|4|1.02 kB" in rows
    assert "barrier|rank 1 (4 of 5)|/a/b/data.py:3|rank 0 2.0 s|/a/b/net.py:11|5|2.0 s|1.0 s|400 ms" in rows
    assert "1 of 1 collective (64 B of 64 B) runs beside nothing" in text
    assert "On ranks 0-2" in text
    assert "/a/b/" not in hidden and "net.py:9" in hidden


def test_a_divergence_has_its_minimal_reproducer(tmp_path: Path) -> None:
    with Store(str(tmp_path / "runs.db")) as store:
        run = store.create_run("/net.py", (), Lane.DEEP, "")
        compile = Compile("0/0", "f", "/net.py", 1, CompileOutcome.COMPILED, 0, 1, 0.1)
        store.put_compile(run, compile)
        made = {"reproducer": {"script": "import torch\nprint('<b>')", "inputs": "0001.pt"}}
        store.put_stage(run, "0/0", StageRef("0/0/divergence", "divergence", "plaintext", 3), "found", 1.0, made)
        store.set_outcome(run, Outcome(OutcomeKind.COMPLETED, 0, "done", 1.0))
        pages = [page_of(store, store.report(run), Redaction(each), pictures=False) for each in ((), (SOURCE,))]
    assert "print(&#x27;&lt;b&gt;&#x27;)" in pages[0] and "--reproducer FILE" in pages[0]
    assert "reproducer" not in pages[1].lower(), "it is made of the user's code"


def test_paths_can_be_left_out(page: PageOf) -> None:
    assert str(SCRIPT.parent) in page()
    text = page(PATHS)
    for part in (str(SCRIPT.parent), "/opt/env", "/usr/local", "/tmp/torchinductor", "/home/"):
        assert part not in text, part
    assert "steps.py:6" in text and "relu" in text


def test_source_can_be_left_out(page: PageOf) -> None:
    text = html.unescape(page(SOURCE))
    for line in SCRIPT.read_text(encoding="utf-8").split("\n"):
        if len(line.strip()) > 12 and not line.startswith(("import", "def ", "@torch.compile")):
            assert line.strip() not in text, line
    assert "torch.ops.aten.sin.default" in text and "steps.py:6" in text


def test_redaction_knows_paths_of_all_systems() -> None:
    redaction = Redaction([PATHS], ["/home/a b/secret project/net.py"])
    given = (
        "/home/a b/secret project/net.py C:\\Users\\me\\net.py ~/work/x.py https://pytorch.org/docs/x.html a/b x / y"
    )
    assert redaction.text(given) == "…/net.py …/net.py …/x.py https://pytorch.org/docs/x.html a/b x / y"


def test_redaction_knows_paths_that_pytorch_has_shortened() -> None:
    """Of the lines in its guards: what a path has in common with PyTorch's own folder is gone, and a character more."""
    redaction = Redaction([PATHS])
    given = "L['x'] # y = a / b  # ome/me/my project/net.py:7 in f\n# File: /home/me/net.py:3 in f, code: y = a / b"
    assert redaction.text(given) == "L['x'] # y = a / b  # …/net.py:7 in f\n# File: …/net.py:3 in f, code: y = a / b"


def test_the_command_writes_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = str(tmp_path / "runs.db")
    assert main(["open", str(TRACES / "trace.log.gz"), "--source-root", str(TRACES), "--store", store]) == 0
    capsys.readouterr()
    out = tmp_path / "report.html"
    arguments = ["report", "-o", str(out), "--no-pictures", "--json", "--store", store]
    assert main([*arguments, "--redact", "paths,source"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["bytes"] == out.stat().st_size and told["file"] == str(out)
    assert "Left out of this report: paths, source." in out.read_text(encoding="utf-8")
    assert main(["report", "-o", str(tmp_path / "no" / "x.html"), "--store", store]) == 2
