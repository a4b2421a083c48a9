"""Fixes are tried before they are offered: what is verified computes the same, and what does not is not called so."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

import fix_rates
import pytest
from irscope.cli import fixing
from irscope.comparing.texts import diff_of
from irscope.driver.driver import RunSpec
from irscope.driver.fixing.trying import Trying
from irscope.driver.trials.proving import Proof, Prover, Status
from irscope.fixing.texts import applied, edits_between, joined_lines
from irscope.protocol import Edit, Fix, FixMethod, Position, Range
from support import run_cli, run_cli_forked, shared_worker, write

BRANCH = """\
import torch

@torch.compile
def f(x):
    y = x.sin()
    if y.sum() > 0:
        y = y + 1
    else:
        y = y - 1
    return torch.nn.functional.dropout(y, 0.5)

f(torch.randn(4, requires_grad=True))
"""
SAVED = """\
import os
import torch
import torch.distributed as dist

x = torch.ones(4)


def scaled(x):
    if os.environ.get("MODE") == "fast":
        x = x + 1
    x = x * float(os.getenv("SCALE", "3"))
    return x + dist.get_rank()


def main():
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    saved = torch.compile(scaled, fullgraph=True).aot_compile(((x,), {}))
    saved.save_compiled_function("saved")
    saved(x)
    with open("saved", "rb") as file:
        loaded = torch.compiler.load_compiled_function(file)
    print(loaded(x).tolist())


main()
"""
SAVED_PLACES = """\
import torch


def of_path(x):
    if "nowhere" in __file__:
        return x * 2
    return x + 1


def of_length(x):
    return x * len(__file__)


def of_address(x, y):
    return x * 2 if id(x) == id(y) else x + y


for f, inputs in ((of_path, (torch.ones(4),)), (of_length, (torch.ones(4),)), (of_address, (torch.ones(4), torch.ones(4)))):
    saved = torch.compile(f, fullgraph=True).aot_compile((inputs, {}))
    saved.save_compiled_function("saved")
    print(saved(*inputs).tolist())
"""
FORMS = {
    "branch": BRANCH,
    "item": "import torch\n\n@torch.compile\ndef f(x):\n    return x * x.mean().item()\n\nf(torch.ones(4))\n",
    "chain": """\
import torch

@torch.compile
def f(x):
    s = x.sum().item()
    if s > 0:
        return x + s
    return x - s

f(torch.ones(4))
""",
    "module": """\
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
        self.norm = torch.nn.BatchNorm1d(4)

    def forward(self, x):
        y = self.norm(self.linear(x))
        return y.relu() if y.mean() > 0 else y.sigmoid()

net = torch.compile(Net())
net(torch.randn(8, 4)).sum().backward()
""",
}


@pytest.fixture(scope="module")
def prover(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Prover:
    """It has run the script once; each proof is of another text."""
    folder = tmp_path_factory.mktemp("fixing")
    script = write(folder, request.param)
    made = Prover(RunSpec(str(script), cwd=str(folder)), shared_worker())
    request.addfinalizer(lambda: made.__exit__())
    made.begin()
    return made


def changed(prover: Prover, old: str, new: str) -> Proof:
    assert prover.original is not None
    finding = prover.original.findings[0]
    text = prover.text_of(finding.file)
    assert old in text
    return prover.prove({finding.file: text.replace(old, new)}, finding)[0]


@pytest.mark.parametrize("prover", [FORMS["branch"], FORMS["module"]], indirect=True, ids=["branch", "module"])
def test_a_fix_is_verified(prover: Prover) -> None:
    assert prover.original is not None
    tried = Trying(prover, 100, with_rules=False).finding(prover.original.findings[0])
    best = tried.candidates[0]
    assert best.proof.status is Status.VERIFIED, best.proof
    assert best.proof.removes == (tried.finding,)
    assert any("gradients" in check for check in best.proof.checks)
    assert any("AOTAutograd" in check for check in best.proof.checks)
    assert best.proof.gain is not None and best.proof.gain.graphs[1] < best.proof.gain.graphs[0]


GIVEN_BACK = """\
import torch

@torch.compile
def f(x):
    if x.sum() > 0:
        x = x + 1
    return x

f(torch.randn(4))
"""


@pytest.mark.parametrize("prover", [GIVEN_BACK], indirect=True)
def test_a_result_that_was_an_input_is_told(prover: Prover) -> None:
    proof = changed(prover, "if x.sum() > 0:\n        x = x + 1", "x = torch.where(x.sum() > 0, x + 1, x)")
    assert proof.status is Status.VERIFIED, proof
    assert "result 0 is a new tensor now" in proof.checks[-1], proof.checks


NUMBER = """\
import torch

@torch.compile
def f(x, weight, scale):
    return (x * scale).sum() * weight

for scale in (0.1, 0.2, 0.3):
    f(torch.randn(4), torch.ones(3, requires_grad=True), scale)
"""


@pytest.mark.parametrize("prover", [NUMBER], indirect=True)
@pytest.mark.parametrize(("number", "status"), [("scale", Status.VERIFIED), ("scale + 0.1", Status.DISPROVEN)])
def test_a_number_of_a_call_may_become_a_tensor(prover: Prover, number: str, status: Status) -> None:
    """It stays as it is where the other inputs are changed, as the number does."""
    proof = changed(prover, "True), scale)", f"True), torch.tensor({number}))")
    assert proof.status is status, proof


BRANCH_LINES = "if y.sum() > 0:\n        y = y + 1\n    else:\n        y = y - 1"


@pytest.mark.parametrize("prover", [BRANCH], indirect=True)
@pytest.mark.parametrize(
    ("new", "status", "words"),
    [
        ("y = torch.where(y.sum() > 0, y + 1, y - 1)", Status.VERIFIED, ""),
        ("y = y + 1", Status.DISPROVEN, "results differ"),
        ("y = y - 1", Status.DISPROVEN, "results differ"),  # one of the two is right on the run's own inputs
        ("y = torch.where(y.sum() > 0, y + 1, y - 1).detach()", Status.DISPROVEN, "results differ"),
        ("y = torch.where(y.sum() > 0, y + 1, y - 1) + 0 * torch.rand(())", Status.DISPROVEN, "results differ"),
        ("y = torch.where(y.sum() > 0, y + 1, y - 1); x.data.zero_()", Status.DISPROVEN, "results differ"),
        # AOTAutograd traces the backward of sine, which needs x as it was.
        ("y = torch.where(y.sum() > 0, y + 1, y - 1); x.detach().zero_()", Status.DISPROVEN, "fails with it"),
        ("y = torch.where(y.sum() > 0, y + 1, y - 1) + torch.where(y == 0, 0 / y, 0)", Status.DISPROVEN, "all zero"),
        ("y = torch.where(y.sum() > 0, y + 1, y - 1); __import__('random').random()", Status.DISPROVEN, "Python's"),
        ("y = torch.where(y.sum() > 0, y + 1, missing)", Status.DISPROVEN, "fails with it"),
        ("y = torch.where(y.sum() > 0, y + 1, y - 1); torch._dynamo.graph_break()", Status.UNPROVEN, "Another finding"),
        (BRANCH_LINES + "; y = y + 0", Status.DISPROVEN, "still there"),
        (
            "y = torch.where(y.sum() > 0, y + 1, y - 1) if torch.compiler.is_compiling() else y",
            Status.DISPROVEN, "Without compile: The results differ",
        ),
    ],
)  # fmt: skip
def test_what_a_change_does(prover: Prover, new: str, status: Status, words: str) -> None:
    proof = changed(prover, BRANCH_LINES, new)
    assert proof.status is status, proof
    assert words in proof.reason


@pytest.mark.parametrize("prover", [FORMS["chain"]], indirect=True)
def test_one_action_removes_all_breaks_of_a_function(prover: Prover) -> None:
    assert prover.original is not None
    finding = prover.original.findings[0]
    hand = (Edit(Range(Position(5, 8), Position(5, 22)), "x.sum().detach()"),)
    only = dataclasses.replace(finding, fixes=(Fix("Keep it a tensor", "", hand),))
    tried = Trying(prover, 100, with_rules=False).finding(only)
    best = tried.candidates[0]
    assert best.proof.status is Status.VERIFIED, best.proof
    assert "; then " in best.fix.title
    text = applied(prover.text_of(finding.file), best.fix.edits)
    assert ".item()" not in text and "if s" not in text


LIBRARY = """\
import torch


def decided(x):
    # a comment of the library
    if x.sum() > 0:
        return x + 1
    return x - 1
"""
CALLS = """\
import sys; sys.path.append({path!r})
import torch, deciding

torch.compile(lambda x: deciding.decided(x) * 2)(torch.ones(3))
"""


@pytest.mark.nightly
def test_a_break_in_a_library_has_a_patch(tmp_path: Path) -> None:
    library = write(tmp_path, LIBRARY, "site-packages/deciding.py")
    script = write(tmp_path, CALLS.format(path=str(library.parent)))
    ran = run_cli("fix", script, "--json", "--patches", tmp_path / "patches", "--apply", cwd=tmp_path)
    (found,) = json.loads(ran.stdout)["findings"]
    assert [patch["status"] for patch in found["patches"]] == ["verified"]
    assert library.read_text() == LIBRARY, "it is never written there"
    text = (tmp_path / "patches" / "0001-deciding.patch").read_text()
    assert text.startswith("Subject: [PATCH] Compute both sides") and "--- a/deciding.py\n" in text
    assert found["candidates"][0]["status"] == "verified", found["candidates"]
    assert "\ndeciding.decided.__code__ = decided_without_break.__code__\n" in script.read_text()
    applied = subprocess.run(["git", "apply", "-"], input=text, text=True, cwd=library.parent, check=False)
    assert applied.returncode == 0
    assert "# a comment of the library\n    return torch.where(" in library.read_text()


LOOPS = """\
import gc


def helped(x):
    return x.sin() + x.cos()


def looped(x):
    for _ in range(2):
        gc.get_count()
        x = helped(x)
    return x
"""


@pytest.mark.nightly
def test_a_function_of_a_library_is_left_to_python(tmp_path: Path) -> None:
    library = write(tmp_path, LOOPS, "site-packages/looping.py")
    head = f"import sys; sys.path.append({str(library.parent)!r})\nimport torch, looping\n\n"
    script = write(tmp_path, f"{head}torch.compile(looping.looped)(torch.ones(3))\n")
    with Prover(RunSpec(str(script))) as prover:
        (finding,) = prover.begin().findings
        best = Trying(prover, 100, with_rules=False).finding(finding).candidates[0]
    assert (best.fix.method, best.proof.status) == (FixMethod.LIBRARY_TO_PYTHON, Status.VERIFIED), best
    assert best.proof.gain is not None and best.proof.gain.graphs[1] == 1  # that of `helped`
    assert "leave_to_python(looping_2.looped)\n" in applied(script.read_text(), best.fix.edits)


@pytest.mark.parametrize(
    "name",
    [
        "branch_nan",
        *(pytest.param(path.stem, marks=pytest.mark.nightly) for path in sorted(fix_rates.SCRIPTS.glob("*.py"))[::12]),
    ],
)
def test_a_sample_of_the_set(name: str) -> None:
    worker = shared_worker()
    assert worker is not None
    result = fix_rates.of_script(fix_rates.SCRIPTS / f"{name}.py", worker)
    assert result["wrong"] == {}
    if name == "branch_nan":
        assert [one["fixed"] for one in result["findings"]] == [True]


@pytest.mark.nightly
@pytest.mark.parametrize(
    "name",
    ["branch_loss", "builtin_dropout", "builtin_index", "builtin_uuid", "numpy_object", "numpy_random",
     "recompile_grad_mode", "recompile_int_attribute", "recompile_list_length", "recompile_range_argument"],
)  # fmt: skip
def test_what_is_split_or_looked_up_is_repaired(name: str) -> None:
    worker = shared_worker()
    assert worker is not None
    result = fix_rates.of_script(fix_rates.SCRIPTS / f"{name}.py", worker)
    assert (result["wrong"], {one["fixed"] for one in result["findings"]}) == ({}, {True})


@pytest.fixture
def in_the_shared_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """`irscope fix` in this process starts no worker of its own."""
    worker = shared_worker()
    if worker is not None:
        monkeypatch.setattr(worker, "stop", lambda: None)
        monkeypatch.setattr(fixing, "Worker", lambda python: worker)


def test_on_the_command_line(tmp_path: Path, in_the_shared_worker: None) -> None:
    script = write(tmp_path, FORMS["branch"] + "\nprint('the end')\n")
    before = script.read_text()
    ran = run_cli_forked("fix", script, "--json", cwd=tmp_path)
    data = json.loads(ran.stdout)
    assert script.read_text() == before
    assert [one["candidates"][0]["status"] for one in data["findings"]] == ["verified"]
    assert "+    y = torch.where(" in data["diff"]
    ran = run_cli_forked("fix", script, "--apply", "--only", "graph-break", cwd=tmp_path)
    assert "1 of 1 findings have a verified fix." in ran.stdout, ran.stderr
    assert "torch.where(" in script.read_text()
    assert run_cli_forked("fix", tmp_path / "missing.py").returncode == 3


@pytest.mark.parametrize(
    ("old", "new"),
    [("a\nb\nc\n", "a\nx\ny\nc\n"), ("a\nb", "a"), ("a", "a\nb"), ("", "a\n"), ("a\nb\n", "b\n"), ("a\n\n", "\n\na")],
)
def test_edits_between_texts(old: str, new: str) -> None:
    assert applied(old, edits_between(old, new)) == new


@pytest.mark.parametrize(("old", "new"), [("a\nb\n", "a\nc\n"), ("a\nb", "a\nc"), ("a", "a\n"), ("a\n", "a")])
def test_a_diff_can_be_applied(tmp_path: Path, old: str, new: str) -> None:
    path = tmp_path / "file.py"
    path.write_text(old)
    text = "\n".join(diff_of(old, new, "file.py")) + "\n"
    subprocess.run(["git", "apply", "-"], input=text, text=True, cwd=tmp_path, check=True)
    assert path.read_text() == new


def test_edits_that_overlap_are_refused() -> None:
    edits = [Edit(Range(Position(1, 0), Position(1, n)), "") for n in (2, 3)]
    with pytest.raises(ValueError, match="overlap"):
        applied("abcdef", edits)


def test_settings_that_are_added_at_one_place_stand_together() -> None:
    """A finding's lines come with a blank line before and after them; other edits stay as they are."""
    here, text = Range(Position(2, 0), Position(2, 0)), "import torch\ndef f(): ...\n"
    edits = [Edit(here, "\na = 1\n\n\n"), Edit(Range(Position(2, 4), Position(2, 5)), "g"), Edit(here, "\nb = 2\n\n\n")]
    assert applied(text, joined_lines(edits)) == "import torch\n\na = 1\nb = 2\n\n\ndef g(): ...\n"
    definitions = [Edit(here, "\n\ndef a():\n    ...\n"), Edit(here, "\n\ndef b():\n    ...\n")]
    assert applied(text, joined_lines(definitions)) == applied(text, definitions)


PADDED = """\
import torch

def in_buckets(compiled):
    return compiled

@in_buckets
@torch.compile
def f(x, weight):
    rows = []
    for row in x:
        rows.append(row.cos() @ weight)
    return torch.stack(rows)

for n in (8, 5):
    f(torch.randn(n, 4), torch.ones(4, 4, requires_grad=True)).sum()
"""
PAD = "x = torch.nn.functional.pad(x, (0, 0, 0, -size % 8))"
IN_BUCKETS = f"""\
    @torch.compiler.disable(recursive=False)
    def call(x, weight):
        size = x.shape[0]
        {PAD}
        return compiled(x, weight)[:size]
    return call
"""


@pytest.mark.parametrize("prover", [PADDED], indirect=True)
@pytest.mark.parametrize(
    ("old", "new", "status"),
    [
        ("", "", Status.VERIFIED),
        (PAD, PAD.replace("(0, 0, 0, -size % 8)", "(0, 0, -size % 8, 0)"), Status.DISPROVEN),  # zeros before the rows
        ("[:size]", "", Status.DISPROVEN),
        (PAD, f"{PAD}; weight.detach().add_(1)", Status.DISPROVEN),  # changes an input
        ("return compiled", "compiled(x, weight); return compiled", Status.DISPROVEN),  # another call
        ("    @torch.compiler.disable(recursive=False)\n", "", Status.DISPROVEN),  # the program sees what is padded
    ],
)
def test_what_a_function_around_a_compiled_one_gives_counts(prover: Prover, old: str, new: str, status: Status) -> None:
    proof = changed(prover, "    return compiled\n", IN_BUCKETS.replace(old, new) if old else IN_BUCKETS)
    assert proof.status is status, proof


ALIKE = """\
import torch

@torch.compile
def f(x, labels):
    rows = (labels != -100).nonzero().squeeze(1)
    if rows.numel() == 0:
        return x.sum() * 0 + 1
    return x[rows].sum()

f(torch.randn(4, 3), torch.tensor([-100, 2, 1, -100]))
"""


@pytest.mark.parametrize("prover", [ALIKE], indirect=True)
@pytest.mark.parametrize(("empty", "status"), [(1, Status.VERIFIED), (0, Status.DISPROVEN)])
def test_elements_that_are_integers_may_all_be_alike(prover: Prover, empty: int, status: Status) -> None:
    """Only then no row is chosen."""
    assert prover.original is not None
    old = ALIKE[ALIKE.index("    rows") : ALIKE.index("\nf(torch")].rstrip("\n")
    new = f"""    m = labels != -100
    return torch.where(m.any(), torch.where(m[:, None], x, 0).sum(), x.sum() * 0 + {empty})"""
    assert changed(prover, old, new).status is status


RARE = """\
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)

    def forward(self, x):
        if torch.rand([]) < 0.01:
            return x
        return self.linear(x)

torch.compile(Net())(torch.randn(8, 4, requires_grad=True))
"""


@pytest.mark.parametrize("prover", [RARE], indirect=True)
@pytest.mark.parametrize(("dropped", "words"), [("x", "gets a gradient of zeros"), ("x + 1", "random numbers near 0")])
def test_what_happens_by_chance_alone_is_seen(prover: Prover, dropped: str, words: str) -> None:
    """One call in a hundred leaves the layer out, and its parameters then have no gradients."""
    old = RARE[RARE.index("        if torch.rand") : RARE.index("\n\ntorch.compile")]
    proof = changed(prover, old, f"        return torch.where(torch.rand([]) < 0.01, {dropped}, self.linear(x))")
    assert proof.status is not Status.VERIFIED and words in proof.reason, proof


TIMED = """\
import time, torch

class Net(torch.nn.Module):
    def forward(self, x):
        start = time.perf_counter()
        y = x.sin()
        self.seconds = time.perf_counter() - start
        self.calls = 2.0
        return y

torch.compile(Net())(torch.randn(8, 4))
"""


@pytest.mark.parametrize("prover", [TIMED], indirect=True)
@pytest.mark.parametrize(("calls", "status"), [("2.0", Status.VERIFIED), ("3.0", Status.DISPROVEN)])
def test_the_seconds_that_a_module_keeps_are_not_compared(prover: Prover, calls: str, status: Status) -> None:
    old = TIMED[TIMED.index("        start") : TIMED.index("        return")]
    new = f"y = x.sin()\n        self.seconds = 0.0\n        self.calls = {calls}\n"
    proof = changed(prover, old, f"        {new}")
    assert proof.status is status, proof
    assert "1 kept number that a clock gives: not compared" in proof.checks


def test_results_of_the_set_are_kept_only_while_they_are_true(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script, kept = write(tmp_path, "x = 1\n", "one.py"), tmp_path / "kept.json"
    monkeypatch.setattr(fix_rates, "HERE", tmp_path / "benchmarks")
    monkeypatch.setattr(fix_rates, "tree", lambda: "a tree")
    finding = {"kind": "graph-break", "fixed": False, "with_plain": True, "gone": False}
    result = {
        "script": "one", "set": "fix_set", "tree": "a tree", "text": fix_rates.digest([script]), "timed_out": False,
        "findings": [finding, {**finding, "fixed": True, "gone": True}], "wrong": {},
    }  # fmt: skip
    assert fix_rates.kept(kept) == []
    fix_rates.keep(kept, [result])
    assert fix_rates.kept(kept) == [result]
    assert json.loads(kept.read_text())["rates"]["both"]["graph-break"] == {
        "findings": 2, "repaired": 1, "with_plain_python": 2, "scripts": 1, "free": 0,
    }  # fmt: skip
    assert fix_rates.is_current(result, script)
    assert not fix_rates.is_current(None, script)
    assert not fix_rates.is_current({**result, "timed_out": True}, script)
    assert not fix_rates.is_current({**result, "tree": "another"}, script)
    script.write_text("x = 2\n")
    assert not fix_rates.is_current(result, script)


WARMING = """\
import torch

class Warming(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.step = 0

    def forward(self, x):
        n = {asked}
        if n > {bound}:
            x = x * 2
        return x + 1

model = torch.compile(Warming())
for _ in range(2):
    model(torch.linspace(-1, 1, 5))
"""


@pytest.mark.parametrize("bound", [0.5, 1e30], ids=["both ways", "always one way"])
def test_a_decision_that_a_chain_makes_one_of_tensors_went_both_ways(tmp_path: Path, bound: float) -> None:
    """The original asks a number, which is not seen; the text after the first fix asks a tensor."""
    script = tmp_path / "warming.py"
    script.write_text(WARMING.format(asked="x.max().item()", bound=bound))
    with Prover(RunSpec(str(script), cwd=str(tmp_path)), shared_worker()) as prover:
        (finding,) = prover.begin().findings
        trying = Trying(prover, 100)
        tensor = Fix("Keep it a tensor", "", (Edit(Range(Position(9, 12), Position(9, 26)), "x.max()"),))
        tried = trying.finding(dataclasses.replace(finding, fixes=(tensor,)))
    (chain,) = [one for one in tried.candidates if one.fix.title.startswith("Keep it a tensor; then compute both")]
    assert chain.proof.status is (Status.VERIFIED if bound < 1 else Status.UNPROVEN), chain.proof
    assert bound < 1 or "is false on all inputs" in chain.proof.reason


@pytest.mark.nightly
def test_paths_and_addresses_of_a_saved_function_are_repaired(tmp_path: Path, in_the_shared_worker: None) -> None:
    script = write(tmp_path, SAVED_PLACES)
    done = run_cli_forked("fix", script, "--apply", cwd=tmp_path)
    assert done.stdout.count("  verified: Read it into a tensor outside the function") == 2, done.stdout + done.stderr
    assert done.stdout.count("  verified: Compare the objects, not their addresses") == 2
    text = Path(script).read_text()
    assert (
        "x is y" in text
        and "return torch.where(" in text
        and text.count("__file__") == text.count(" = torch.tensor(") == 2
    )


@pytest.mark.nightly
def test_constants_of_a_saved_function_are_repaired(tmp_path: Path, in_the_shared_worker: None) -> None:
    """What the text with all fixes saves then computes with what the process that loads it has made."""
    script = write(tmp_path, SAVED)
    done = run_cli_forked("fix", script, "--apply", cwd=tmp_path)
    text = Path(script).read_text()
    assert done.stdout.count("  verified: Read it into a tensor outside the function") == 3, done.stdout + done.stderr
    for more, expected in (({}, 3.0), ({"MODE": "fast", "SCALE": "5"}, 10.0)):
        environment = {**os.environ, **more}
        process = [sys.executable, str(script)]
        done = subprocess.run(process, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert done.stdout == f"{[expected] * 4}\n", done.stderr
        Path(script).write_text(text.replace('.save_compiled_function("saved")', ""))  # the second loads the first's
