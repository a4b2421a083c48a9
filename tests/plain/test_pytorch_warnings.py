"""What PyTorch's compilers warn of: which warnings are theirs, and their words and codes."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator

import pytest
from facts import a_range
from irscope.events.stack import FramePlace, Told, at
from irscope.events.trace import Record
from irscope.findings.kinds.pytorch_warning import LogOfCompilers, code_of, detect, first_sentence
from irscope.findings.moment import look
from irscope.internals.compiler_warnings import warnings_hook

TF32 = (
    "TensorFloat32 tensor cores for float32 matrix multiplication available but not enabled. "
    "Consider setting `torch.set_float32_matmul_precision('high')` for better performance."
)


@pytest.fixture
def heard() -> Iterator[list[tuple[str, bool]]]:
    found: list[tuple[str, bool]] = []
    attached: list[str] = []
    hook = warnings_hook(lambda: lambda: attached.append("undone"), lambda text, after: found.append((text, after)))
    shown = warnings._showwarnmsg  # type: ignore[attr-defined]
    undo = hook.apply(warnings)
    yield found
    undo()
    assert warnings._showwarnmsg is shown and attached == ["undone"]  # type: ignore[attr-defined]


def warn_from(file: str, text: str, stacklevel: int = 1) -> None:
    code = compile(f"warnings.warn({text!r}, stacklevel={stacklevel})", file, "exec")
    exec(code, {"warnings": warnings, "__name__": file})


def test_warnings_of_compilers_are_heard_and_still_shown(heard: list[tuple[str, bool]]) -> None:
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        warn_from("/env/site-packages/torch/_dynamo/utils.py", "of Dynamo")
        warn_from("/env/site-packages/torch/_inductor/lowering.py", "of Inductor", 3)
        warn_from("/env/site-packages/torch/serialization.py", "of torch")
        warn_from("/home/me/train.py", "mine")
        warn_from("/env/site-packages/torch/_dynamo/utils.py", "of ATen (Triggered internally at TensorBody.h:488.)")
    assert heard == [("of Dynamo", False), ("of Inductor", True)]
    assert [str(warning.message) for warning in shown][:4] == ["of Dynamo", "of Inductor", "of torch", "mine"]
    assert len(shown) == 5


def test_what_a_filter_drops_is_not_heard(heard: list[tuple[str, bool]]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warn_from("/env/site-packages/torch/_dynamo/utils.py", "of Dynamo")
    assert heard == []


def test_logs_without_what_is_a_finding_already() -> None:
    found: list[tuple[str, bool]] = []
    handler = LogOfCompilers(lambda text, after: found.append((text, after)))
    for name in (
        "torch._inductor.utils",
        "torch._dynamo.convert_frame",
        "torch._inductor.cudagraph_utils.__cudagraphs",
        "torch._dynamo.variables.torch",
    ):
        handler.handle(logging.LogRecord(name, logging.WARNING, "", 1, "%s of %s", ("a warning", name), None))
    assert found == [
        ("a warning of torch._inductor.utils", True),
        ("a warning of torch._dynamo.variables.torch", False),
    ]


def test_a_warning_of_a_graph_break_is_not_a_second_finding() -> None:
    places = (FramePlace("/home/me/train.py", "step", a_range(3), traced=True),)
    with at(Told(traced=places)):
        moment = look(Record("compiler-warned", {}, "0/0", 0, ""), None)
        assert list(detect(moment, "Graph break from `Tensor.item()`, consider setting:\n    x = True", False)) == []
        assert list(detect(moment, "Backend compiler exception\n\n  Developer debug context: Backend: a", False)) == []
        (finding,) = detect(moment, TF32, False)
    assert (finding.file, finding.range, finding.compiles) == ("/home/me/train.py", a_range(3), ("0/0",))
    assert finding.explanation == TF32


def test_a_warning_about_torchs_own_code_is_no_finding() -> None:
    user = FramePlace("/home/me/train.py", "step", a_range(3), traced=True)
    torch = FramePlace("/env/site-packages/torch/optim/optimizer.py", "wrapper", a_range(514), traced=True)
    with at(Told(traced=(user, torch))):
        assert list(detect(look(Record("compiler-warned", {}, None, 0, ""), None), "Ignored.", False)) == []


def test_words_and_code() -> None:
    assert first_sentence(TF32) == TF32.partition(" Consider")[0]
    assert code_of(TF32) == "tensorfloat32-tensor-cores-for-float32"
    assert first_sentence("Two\nlines:\n\tmore") == "Two lines"
    assert code_of("took 3.5 s in /tmp/a.py and") == code_of("took 7 s in /tmp/b.py and") == "took-s-in-and"
    assert code_of("Profiler function <class 'torch.profiler.profile'> will be ignored") == (
        "profiler-function-will-be-ignored"
    )
