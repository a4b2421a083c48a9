"""Scripts after public reports (`tests/data/world`): what is said of them is what was found out without irscope."""

from __future__ import annotations

from pathlib import Path

import pytest
from irscope.cli.main import main
from irscope.driver.driver import RunSpec
from irscope.driver.fixing.trying import Trying
from irscope.driver.hints import Standing, tried_hints
from irscope.driver.trials.proving import Prover, Status
from irscope.protocol import Lane, RecompilationFacts, RelatedRole, Severity, causes_only
from irscope.usercode.source import text_of_range
from irscope.worker.client import Worker
from support import run_captured, write
from versions import torch_version

SCRIPTS = Path(__file__).parents[2] / "data" / "world"
STEP = "    opt.step()\n"
SKIPPED = "    if not torch.compiler.is_compiling():\n        opt.step()\n"


@pytest.mark.parametrize(
    ("name", "breaks"),
    [
        ("if_step", {"GB0008", "GB0025", "GB0123"}),
        ("if_step_silent", {"GB0007"}),
        pytest.param("if_step_sched", {"GB0007"}, marks=pytest.mark.nightly),
        pytest.param("plateau", {"GB0008", "GB0025", "GB0123"}, marks=pytest.mark.nightly),
        ("amp_step", {"GB0008"}),
    ],
)
def test_no_hint_leaves_a_step_out(name: str, breaks: set[str], tmp_path: Path, shared_worker: Worker | None) -> None:
    ran = run_captured(SCRIPTS / f"{name}.py", tmp_path / "runs.db", worker=shared_worker)
    cut = [finding for finding in ran.report.findings if finding.kind == "graph-break"]
    assert {finding.code for finding in cut} == breaks
    assert not [finding for finding in cut if "is_compiling" in str(finding) or "line of the library" in str(finding)]
    for finding in cut:
        if finding.code != "GB0123":  # PyTorch runs it outside of graphs on purpose: one grey line
            assert (finding.severity, finding.hints, finding.fixes) == (Severity.HINT, (), ())
            assert "on purpose" in finding.message and "\n" not in finding.message
        else:  # the optimizer steps after the backward, wherever that is
            assert any("loss.backward()\n    opt.step()" in hint for hint in finding.hints), finding.hints


@pytest.mark.parametrize("name", ["if_step_silent", pytest.param("if_step_sched", marks=pytest.mark.nightly)])
def test_a_step_that_is_left_out_is_never_verified(name: str, tmp_path: Path, shared_worker: Worker | None) -> None:
    """Also where the text is not looked at: the weights show it."""
    script = SCRIPTS / f"{name}.py"
    text = script.read_text()
    with Prover(RunSpec(str(script), (), Lane.FAST), shared_worker) as prover:
        original = prover.begin()
        (finding,) = [finding for finding in original.findings if finding.code == "GB0007"]
        changed = {str(script): text.replace(STEP, SKIPPED)}
        proof, _ = prover.prove(changed, finding)
        prover._left_out = lambda texts: ""  # type: ignore[method-assign]
        by_run, _ = prover.prove(changed, finding)
    assert (proof.status, by_run.status) == (Status.UNPROVEN, Status.DISPROVEN), by_run.reason
    assert "opt.step()" in proof.reason
    assert "The results differ" in by_run.reason


@pytest.mark.parametrize(
    ("name", "causes"),
    [
        (
            "nearest",
            [
                ("grad_mode", ["0/1", "0/3"]),
                ("x", ["0/2"]),
                ("num_threads", ["0/4"]),
                ("inference_mode", ["0/5"]),
                ("inference_tensor", ["0/6"]),
            ],
        ),
        ("nearest_dtype", [("x", ["0/1"]), ("flip", ["0/2", "0/4"]), ("x", ["0/3"])]),
        ("cache_len", [("x", ["0/1"])]),
    ],
)
def test_the_cause_is_the_smallest_change(
    name: str, causes: list[tuple[str, list[str]]], tmp_path: Path, shared_worker: Worker | None
) -> None:
    ran = run_captured(SCRIPTS / f"{name}.py", tmp_path / "runs.db", worker=shared_worker)
    facts = [(finding, finding.facts) for finding in ran.findings("recompilation")]
    found = [
        (known.state or known.source, list(finding.compiles))
        for finding, known in facts
        if isinstance(known, RecompilationFacts)
    ]
    assert sorted(found, key=lambda cause: cause[1]) == causes
    if name == "cache_len":
        assert "; and `cache.seen` was 0 when this was compiled" in facts[0][0].message


def test_a_transform_over_compiled_code_is_compiled_outside(tmp_path: Path, shared_worker: Worker | None) -> None:
    ran = run_captured(SCRIPTS / "vmapjvp.py", tmp_path / "runs.db", worker=shared_worker)
    (finding,) = ran.findings("graph-break")
    assert (finding.code, finding.range.start.line, finding.compiles) == ("GB0149", 13, ("0/0", "1/0"))
    assert "calls a compiled function" in finding.message and "all of `slope` runs as plain Python" in finding.message
    assert finding.hints == ("Compile outside of the transform: `torch.compile(torch.vmap(slope))(xs, vs)`.",)
    (skipped,) = ran.findings("skipped-frame")
    assert skipped.message.startswith("`slope` is not compiled") and causes_only(ran.report.findings) == [finding]
    followed = tmp_path / "followed.py"
    text = (SCRIPTS / "vmapjvp.py").read_text()
    followed.write_text(text.replace("torch.vmap(slope)(xs, vs)", "torch.compile(torch.vmap(slope))(xs, vs)"))
    for good in (SCRIPTS / "vmapjvp_good.py", followed):
        again = run_captured(good, tmp_path / "runs.db", worker=shared_worker)
        assert again.report.findings == () and len(again.report.compiles) == 1
        assert again.stdout == ran.stdout


def test_the_function_under_disable_is_named(tmp_path: Path, shared_worker: Worker | None) -> None:
    ran = run_captured(SCRIPTS / "wrappers.py", tmp_path / "runs.db", worker=shared_worker)
    said = {finding.range.start.line: finding for finding in ran.report.findings}
    assert {line: finding.hints[0].partition(". ")[0] for line, finding in said.items()} == {
        19: "Remove `@torch.compiler.disable` from `Counter.forward` (line 8)",
        37: "Remove `@torch._dynamo.disable` from `histogram` (line 30)",
        49: "Remove the `torch.compiler.disable` around `plain` (line 44)",
        54: "Remove the `torch.compiler.disable` around `plain` (line 44)",
    }
    assert len(ran.report.findings) == len(said), "one break in a wrapper is one finding"
    assert "calls `Counter.forward`, which is marked" in said[19].message
    assert not any(
        "empty_like" in str(finding) or "def list_op" in str(finding) or "self.counter(x)\n" in str(finding.hints)
        for finding in said.values()
    )


@pytest.mark.parametrize(("name", "argument"), [("own_backward", "grad"), ("mask_any", "mask")])
def test_a_value_comes_from_its_tensor(name: str, argument: str, tmp_path: Path, shared_worker: Worker | None) -> None:
    ran = run_captured(SCRIPTS / f"{name}.py", tmp_path / "runs.db", worker=shared_worker)
    (finding,) = ran.findings("graph-break")
    assert finding.explanation.endswith(f"The value comes from the argument `{argument}`.")
    if name == "mask_any":
        assert "the value of the tensor `(mask == 0).any()` while" in finding.message
    if name == "mask_any":  # the second operand of `mask is not None and (mask == 0).any()`
        assert text_of_range(finding.file, finding.range) == "(mask == 0).any()"
        assert ran.findings("recompilation") and causes_only(ran.report.findings) == [finding]


def test_a_fake_kernel_that_lacks_an_argument_is_the_users(tmp_path: Path, shared_worker: Worker | None) -> None:
    ran = run_captured(SCRIPTS / "op_signature.py", tmp_path / "runs.db", worker=shared_worker)
    (finding,) = ran.report.findings
    assert "the fake implementation of `world2::tile` (line 9)" in finding.message
    assert finding.hints == ("Give it the arguments of the operator: `def _(x, times):`.",)
    (cause,) = (place for place in finding.related if place.role is RelatedRole.CAUSE)
    assert (cause.file, cause.range.start.line) == (finding.file, 9)


def test_a_failure_inside_of_pytorch_is_said_to_be_one(tmp_path: Path, shared_worker: Worker | None) -> None:
    ran = run_captured(SCRIPTS / "njt_norm.py", tmp_path / "runs.db", "deep", worker=shared_worker)
    (finding,) = ran.findings("compile-error")
    assert finding.message.startswith("Compilation failed inside PyTorch: ")
    assert "PyTorch's own code raised this" in finding.explanation
    assert finding.range.start.line == 17
    assert any("--check-without-compile" in hint for hint in finding.hints)
    (uncached,) = ran.findings("cache-miss")  # by a nested tensor, and not by an operator
    assert uncached.code == "aotautograd-cache-bypass" and uncached.hints == ()


LIBRARY = """\
def first(x):
    for _ in range(2):
        print("in a library")
        x = second(x)
    return x

def second(x):
    if x.sum() > 0:
        x = x + 1
    return x * 2
"""
"""Of its two breaks the first has all of `first` run as plain Python, so that `second` is compiled by itself."""


def test_two_breaks_below_one_call_of_a_library_are_two(tmp_path: Path) -> None:
    """Without the first one the second would break, too."""
    library = tmp_path / "site-packages"
    library.mkdir()
    (library / "given_up.py").write_text(LIBRARY)
    text = "import torch\nfrom given_up import first\n\ntorch.compile(first)(torch.ones(4))\n"
    ran = run_captured(write(tmp_path, text), tmp_path / "runs.db", env={"PYTHONPATH": str(library)})
    assert len(causes_only(ran.findings("graph-break"))) == len(ran.findings("graph-break")) == 2


def test_a_break_in_what_was_traced_follows_from_the_break_after_it(
    tmp_path: Path, shared_worker: Worker | None
) -> None:
    """PyTorch cannot compile the backward of this `while_loop`, and then runs it as plain Python: the place is the loop."""
    text = """\
        import torch
        from torch._higher_order_ops.while_loop import while_loop

        @torch.compile
        def f(x):
            _, y = while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y.sin()), (torch.tensor(0), x.t()))
            return y.sum()

        f(torch.randn(3, 5, requires_grad=True))
        """
    ran = run_captured(write(tmp_path, text), tmp_path / "runs.db", worker=shared_worker)
    (cause,) = causes_only(ran.findings("graph-break"))
    (follower,) = (found for found in ran.findings("graph-break") if found.follows is not None)
    assert (cause.code, cause.range.start.line, follower.range.start.line) == ("GB0219", 6, 6)
    assert "failed with the backward of `while_loop(" in cause.message and "capture_dynamic" not in str(cause.hints)


@pytest.mark.nightly
@pytest.mark.until_torch("2.14", "the issue may be closed")
def test_a_known_issue_of_pytorch_is_linked(tmp_path: Path, shared_worker: Worker | None) -> None:
    script = write(
        tmp_path,
        """\
        import torch

        @torch.compile
        def f():
            return torch.tensor(5.0).cumsum(0)

        f()
        """,
    )
    (finding,) = run_captured(script, tmp_path / "runs.db", "deep", worker=shared_worker).findings("compile-error")
    assert finding.link == "https://github.com/pytorch/pytorch/issues/193265"
    assert "It looks like issue 193265 of PyTorch, seen on torch 2.12 to 2.14." in finding.explanation


@pytest.mark.parametrize(
    ("name", "line", "hint"),
    [("export_item", 12, "torch._check(...)"), ("pick", 11, "torch.stack(rows)[which]")],
)
def test_an_export_of_the_scripts_own(
    name: str, line: int, hint: str, tmp_path: Path, shared_worker: Worker | None
) -> None:
    ran = run_captured(SCRIPTS / f"{name}.py", tmp_path / "runs.db", worker=shared_worker)
    (finding,) = ran.report.findings
    assert (finding.kind, finding.code, finding.range.start.line) == ("export-error", "data-dependent-guard", line)
    assert any(hint in told for told in finding.hints)
    assert not any("two functions" in told or "capture_scalar_outputs" in told for told in finding.hints)


@pytest.mark.nightly
def test_a_package_that_is_called_with_another_size(tmp_path: Path, shared_worker: Worker | None) -> None:
    ran = run_captured(SCRIPTS / "aoti_batch.py", tmp_path / "runs.db", worker=shared_worker, cwd=str(tmp_path))
    (finding,) = ran.report.findings
    assert (finding.kind, finding.code, finding.range.start.line) == ("specialization", "package-size", 21)
    assert "size 4 of `x` in dimension 0, and is called with 2" in finding.message
    assert [one.id for one in ran.report.compiles] == ["exported-0/0"], "the exported program is there"


def test_a_method_around_the_compiled_module(tmp_path: Path, shared_worker: Worker | None) -> None:
    ran = run_captured(SCRIPTS / "other_method.py", tmp_path / "runs.db", worker=shared_worker)
    (finding,) = ran.report.findings
    assert (finding.kind, finding.code, finding.range.start.line) == ("bypassed", "method", 20)
    assert "`training_step` is a method of the `Net`" in finding.message
    assert ran.report.outcome is not None and "other_method.py:20 says why" in ran.report.outcome.message
    text = (SCRIPTS / "other_method.py").read_text()
    followed = tmp_path / "followed.py"
    followed.write_text(text.replace("for _", "model.training_step = torch.compile(model.training_step)\nfor _"))
    again = run_captured(followed, tmp_path / "runs.db", worker=shared_worker)
    assert again.report.findings == () and len(again.report.compiles) == 1


FITTING = {
    "dyncache": ("recompile-size", "`if cache is not None: torch._dynamo.decorators.mark_unbacked(cache, 1)`", ""),
    "hint_site": ("recompile-size", "Before the call on line 16: `torch._dynamo.mark_dynamic(first, 0)`", "`;"),
    "many_shapes": ("recompile-size", "`update`, a parameter or buffer", "which a module owns"),
    "cache_len": ("recompile-size", "`cache.seen` changed in the same call, too", "One compile for"),
    "own_backward": ("GB0170", "Take `ClipGrad.clipped += 1` out of the compiled code", "torch.where"),
    "mask_any": ("GB0170", "Decide before the compiled function is called", "in the caller"),
    "enum_mode": ("recompile-object", "`phase` is a member of an enum", "once, outside of the loop"),
    "np_scalar": ("GB4315", "`math` (`math.floor`)", "may result in an error when running in eager"),
    "topk_sampling": ("recompile-condition", "valid only if this is true", "Use few values of `50`"),
    "denoise": ("GB0170", "while_loop(going_on, step, (x, t))", "capture_scalar_outputs"),
    "llama_cache": ("recompile-value", "Pass the same keyword arguments in each call", "a loop over it is unrolled"),
    "slow_guards": ("slow-guards", "4,000 of these are on the numbers in lists named `scales`", "whole model"),
}
SLOW = ("llama_cache", "slow_guards")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.nightly if name in SLOW else ()) for name in FITTING]
)
def test_a_hint_fits_its_script(name: str, tmp_path: Path, shared_worker: Worker | None) -> None:
    """Each is what was found out by hand, and none is of another situation."""
    code, hint, never = FITTING[name]
    ran = run_captured(SCRIPTS / f"{name}.py", tmp_path / "runs.db", worker=shared_worker)
    hints = [told for finding in ran.report.findings if finding.code == code for told in finding.hints]
    assert any(hint in told for told in hints), hints
    assert not never or not any(never in told for finding in ran.report.findings for told in finding.hints)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("float_schedule", "Make `decay` a tensor"),
        pytest.param("if_step_sched", "`lr=torch.tensor(...)`", marks=pytest.mark.nightly),
        pytest.param("onecycle_plain", "`cycle_momentum=False`", marks=pytest.mark.nightly),
    ],
)
def test_a_number_that_is_fixed_and_compiled_again_is_one_cause(
    name: str, hint: str, tmp_path: Path, shared_worker: Worker | None
) -> None:
    ran = run_captured(SCRIPTS / f"{name}.py", tmp_path / "runs.db", worker=shared_worker)
    assert ran.findings("specialization") and not [
        finding for finding in causes_only(ran.report.findings) if finding.kind == "specialization"
    ]
    (finding,) = ran.findings("recompilation")
    assert hint in finding.hints[0]


def test_a_backward_that_is_left_out(tmp_path: Path, shared_worker: Worker | None) -> None:
    """Compiled, its gradient is 0; of a function that computes its gradient outside, it is 2."""
    ran = run_captured(SCRIPTS / "straight_through.py", tmp_path / "runs.db", worker=shared_worker)
    (finding,) = ran.report.findings
    assert (finding.kind, finding.code, finding.range.start.line) == ("bypassed", "own-backward", 18)
    assert finding.link == "https://github.com/pytorch/pytorch/issues/193279"
    text = (SCRIPTS / "straight_through.py").read_text().replace("torch.compile(g)(w)", "outside(w)")
    outside = "def outside(w):\n    w = w.clone().requires_grad_()\n    return torch.autograd.grad(torch.compile(loss)(w), w)[0]\n\n"
    followed = tmp_path / "followed.py"
    followed.write_text(text.replace("torch.manual_seed", f"{outside}torch.manual_seed"))
    again = run_captured(followed, tmp_path / "runs.db", worker=shared_worker)
    assert again.report.findings == () and again.stdout.count("[2.0, 2.0, 2.0, 2.0]") == 2


CHECKS = """\
import functools

class TypeCheckError(TypeError):
    pass

class _Rows(type):
    def __instancecheck__(cls, value):
        return value.ndim == 2

class Rows(metaclass=_Rows):
    pass

def checked(function):
    @functools.wraps(function)
    def wrapper(x):
        if not isinstance(x, Rows):
            print("reported")
            raise TypeCheckError("x is not of this type")
        return function(x)
    return wrapper
"""
"""A library of type checks as people use them: a type has an `__instancecheck__` of its own, which Dynamo does not ask."""


def test_a_type_check_that_fails_below_compiled_code(tmp_path: Path) -> None:
    """The graph breaks in what reports the failure follow from it."""
    library = tmp_path / "site-packages" / "jaxtyping"
    library.mkdir(parents=True)
    (library / "__init__.py").write_text(CHECKS)
    text = "import torch\nfrom jaxtyping import checked\n\ndef f(x):\n    return x.sin()\n\n{}(torch.ones(2, 2))\n"
    env = {"PYTHONPATH": str(library.parent)}
    script = write(tmp_path, text.format("torch.compile(checked(f))"))
    ran = run_captured(script, tmp_path / "runs.db", env=env)
    (cause,) = causes_only(ran.report.findings)
    breaks = torch_version() >= (2, 14)  # there a check breaks the graph
    assert (cause.code, cause.range.start.line) == ("GB2736" if breaks else "type-check", 7)
    assert len(ran.report.findings) > 1 or breaks
    assert "put `@torch.compile` directly above the function" in cause.hints[0]
    followed = write(tmp_path, text.format("checked(torch.compile(f))"), "followed.py")
    again = run_captured(followed, tmp_path / "runs.db", env=env)
    assert again.report.findings == () and len(again.report.compiles) == 1


@pytest.mark.parametrize(
    ("name", "code", "line", "hint"),
    [
        ("range_args", "recompile-value", 6, "The loop over a `range` of `start` is unrolled"),
        ("forward_replaced", "recompile-object", 10, "Set `layer.forward` before the first call"),
        ("catch_warnings", "GB0007", 14, "if not torch.compiler.is_compiling():"),
        ("backward_hook", "GB0083", 17, "torch._dynamo.config.compiled_autograd = True"),
    ],
)
def test_one_cause_with_a_hint_that_fits(
    name: str, code: str, line: int, hint: str, tmp_path: Path, shared_worker: Worker | None
) -> None:
    ran = run_captured(SCRIPTS / f"{name}.py", tmp_path / "runs.db", worker=shared_worker)
    (cause,) = causes_only(ran.report.findings)
    assert (cause.code, cause.range.start.line) == (code, line)
    assert hint in cause.hints[0], cause.hints


def test_one_compile_for_ten_blocks(tmp_path: Path, shared_worker: Worker | None) -> None:
    ran = run_captured(SCRIPTS / "region_processor.py", tmp_path / "runs.db", worker=shared_worker)
    assert ran.report.findings == () and len(ran.report.compiles) == 1


@pytest.mark.nightly
def test_an_operator_whose_fake_has_another_layout(tmp_path: Path) -> None:
    ran = run_captured(SCRIPTS / "op_layout.py", tmp_path / "runs.db", "deep")
    (finding,) = ran.findings("compiled-code-error")
    assert finding.range.start.line == 13 and "opcheck" in finding.explanation


def test_grad_mode_is_told_once_in_one_line(tmp_path: Path, shared_worker: Worker | None) -> None:
    script = tmp_path / "script.py"
    text = (SCRIPTS / "hint_site.py").read_text()
    more = "\n\n@torch.compile\ndef other(x):\n    return x + 1\n\n\nfor grad in (True, False):\n    with torch.set_grad_enabled(grad):\n        other(torch.ones(4))\n"
    script.write_text(text + more)
    ran = run_captured(script, tmp_path / "runs.db", worker=shared_worker)
    modes = [finding for finding in ran.report.findings if finding.code == "recompile-global-state"]
    assert len(modes) == 2
    (told,) = [finding for finding in causes_only(ran.report.findings) if finding.code == "recompile-global-state"]
    assert (told.severity, told.hints) == (Severity.HINT, ())
    assert "At most two compiles, one with grad mode and one without. This is normal" in told.message


@pytest.mark.parametrize(
    ("name", "code", "standing", "why"),
    [
        ("dyncache", "recompile-size", Standing.HELPS, "1 finding fewer, 2 graphs (was 3)"),
        pytest.param("unrolled", "unrolled-loop", Standing.HELPS, "1 finding fewer", marks=pytest.mark.nightly),
        pytest.param("cache_len", "recompile-size", Standing.NO_HELP, "`cache.seen` was 0", marks=pytest.mark.nightly),
        pytest.param("many_shapes", "recompile-size", Standing.PARTLY, "2 graphs (was 8)", marks=pytest.mark.nightly),
    ],
)
def test_a_hint_is_tried_by_its_fix(
    name: str, code: str, standing: Standing, why: str, shared_worker: Worker | None
) -> None:
    """The trial of its fix says whether it helps in this script; what helps is first, what does not is last."""
    with Prover(RunSpec(str(SCRIPTS / f"{name}.py"), (), Lane.FAST), shared_worker) as prover:
        (finding,) = [finding for finding in prover.begin().findings if finding.code == code]
        untried = tried_hints(finding, None)
        hints = tried_hints(finding, Trying(prover, 100, with_rules=False).finding(finding))
    (fix,) = finding.fixes
    assert fix.hint is not None
    (hint,) = [hint for hint in hints if hint.text == finding.hints[fix.hint]]
    assert (hint.standing, why in hint.why) == (standing, True), hint
    assert hints.index(hint) == (len(hints) - 1 if standing is Standing.NO_HELP else 0)
    assert {hint.standing for hint in untried} == {Standing.NOT_TRIED}


KEYS = """
class TensorDict:
    def __init__(self, tensors, batch_size):
        self._tensordict, self.batch_size = dict(tensors), batch_size

    def __getitem__(self, key):
        return self._tensordict[key]

    def __setitem__(self, key, value):
        self._tensordict[key] = value
"""
"""What a TensorDict keeps its tensors in."""


def test_the_number_of_keys_of_a_dictionary_that_is_written(tmp_path: Path) -> None:
    library = tmp_path / "site-packages" / "tensordict"
    library.mkdir(parents=True)
    (library / "__init__.py").write_text(KEYS)
    script = SCRIPTS / "td_keys.py"
    ran = run_captured(script, tmp_path / "runs.db", env={"PYTHONPATH": str(library.parent)})
    (finding,) = [finding for finding in ran.report.findings if finding.kind == "recompilation"]
    assert (finding.code, finding.count, finding.range.start.line) == ("recompile-value", 5, 6)
    assert "number of keys" in finding.message and "`select(...)`" in finding.hints[0]
    assert not any("loop" in hint or "torch.stack" in hint for hint in finding.hints)


@pytest.mark.nightly
def test_a_compile_that_explodes(tmp_path: Path) -> None:
    """Each step inlines the two before it, so Inductor goes through the first ones again and again."""
    ran = run_captured(SCRIPTS / "ladder.py", tmp_path / "runs.db", lane=Lane.DEEP)
    (finding,) = [finding for finding in ran.report.findings if finding.code == "inlined-expression"]
    assert 7 <= finding.range.start.line <= 11, finding.range
    assert any("realize_opcount_threshold" in hint for hint in finding.hints), finding.hints


@pytest.mark.nightly
@pytest.mark.parametrize(("name", "line"), [("encoder_lines", 7), ("llama_lines", 12)])
def test_the_call_of_a_librarys_model_leads_to_its_kernels(
    name: str, line: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The user's line has no operation of its own: all are in modules of torch.nn, or in a library's model."""
    script, store = SCRIPTS / f"{name}.py", tmp_path / "runs.db"
    ran = run_captured(script, store, lane=Lane.DEEP)
    assert main(["show", ran.report.run, "--line", f"{script}:{line}", "--store", str(store)]) == 0
    text = capsys.readouterr().out
    assert "cpp_fused_" in text and "0/0" in text
