"""Results in the text as it is now: diagnostics, lenses and hovers are made from this."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from irscope.driver.hints import Standing, TriedHint
from irscope.protocol import (
    CompileOutcome,
    Finding,
    Lane,
    Origin,
    OutcomeKind,
    Position,
    Range,
    Related,
    RelatedRole,
)
from irscope_server.base import words
from irscope_server.base.texts import FileKey, Texts, file_key, split_lines
from irscope_server.language.finding_text import finding_text, told_apart
from irscope_server.language.hovers import function_text
from irscope_server.language.lenses import lens_title
from irscope_server.language.views import PlacedFinding, Views
from irscope_server.running.results import Live, Results
from made import SCRIPT, compile_of, ended, finding, kernel, related, stage

PATH = file_key("/w/script.py")
OTHER = file_key("/w/module.py")


class Desk:
    """Results and views over texts that a test changes as it likes."""

    def __init__(self, **texts: str) -> None:
        self.texts = {PATH: SCRIPT, **texts}
        self.results = Results()
        self.views = Views(self.results, Texts(self.texts.get))

    def places(self, path: FileKey = PATH) -> list[tuple[str, int, int]]:
        return [(one.finding.kind, one.line, one.column) for one in self.views.findings(path)]

    def lenses(self, path: FileKey = PATH) -> list[tuple[int, str]]:
        return [(function.first_line, lens_title(function)) for function in self.views.functions(path)]


def test_a_finding_moves_with_its_line_and_goes_when_the_line_is_changed() -> None:
    desk = Desk()
    desk.results.end(None, ended(PATH, {PATH: SCRIPT}, findings=[finding(PATH, 6, 4, 15)]))
    assert desk.places() == [("graph-break", 5, 4)]
    desk.texts[PATH] = "# new\n" + SCRIPT
    assert desk.places() == [("graph-break", 6, 4)]
    desk.texts[PATH] = SCRIPT.replace("print", "return print")
    assert desk.places() == [("graph-break", 5, 11)], "an edit beside it moves it"
    desk.texts[PATH] = SCRIPT.replace('print("hi")', 'print("ho")')
    assert desk.places() == []
    desk.texts[PATH] = SCRIPT
    assert desk.places() == [("graph-break", 5, 4)]


def test_findings_of_a_new_run_join_the_old_ones_until_it_ends() -> None:
    desk = Desk()
    old = [finding(PATH, 5), finding(PATH, 6)]
    desk.results.end(None, ended(PATH, {PATH: SCRIPT}, findings=old))
    live = Live(PATH, Lane.FAST, "", {PATH: split_lines(SCRIPT)}, "new")
    desk.results.begin(live)
    assert len(desk.places()) == 2
    desk.results.add_finding(live, finding(PATH, 6, message="again"))
    desk.results.add_finding(live, finding(PATH, 7))
    assert [line for _, line, _ in desk.places()] == [4, 5, 6]
    assert [one.finding.message for one in desk.views.findings(PATH)][1] == "again"
    desk.results.end(live, ended(PATH, {PATH: SCRIPT}, findings=[finding(PATH, 7)]))
    assert [line for _, line, _ in desk.places()] == [6]


def test_a_cancelled_run_replaces_nothing() -> None:
    desk = Desk()
    desk.results.end(None, ended(PATH, {PATH: SCRIPT}, findings=[finding(PATH, 5)]))
    desk.results.end(None, ended(PATH, {PATH: SCRIPT}, outcome=OutcomeKind.CANCELLED))
    assert len(desk.places()) == 1


def test_a_cancelled_run_is_better_than_none() -> None:
    desk = Desk()
    desk.results.end(None, ended(PATH, {PATH: SCRIPT}, findings=[finding(PATH, 5)], outcome=OutcomeKind.CANCELLED))
    assert len(desk.places()) == 1


def test_one_diagnostic_per_place_and_cause_over_all_runs() -> None:
    desk = Desk(**{OTHER: "x = 1\n"})
    shared = finding(OTHER, 1, 0, 5)
    for script in (PATH, "/w/b.py"):
        desk.results.end(None, ended(script, {OTHER: "x = 1\n"}, findings=[shared]))
    assert desk.places(OTHER) == [("graph-break", 0, 0)]


def test_a_newer_fast_run_keeps_what_only_the_deep_lane_sees() -> None:
    desk = Desk()
    deep = [finding(PATH, 5, kind="graph-break"), finding(PATH, 7, kind="missed-fusion")]
    desk.results.end(None, ended(PATH, {PATH: SCRIPT}, lane=Lane.DEEP, source="a", findings=deep))
    desk.results.end(None, ended(PATH, {PATH: SCRIPT}, source="a", findings=[finding(PATH, 6)]))
    assert desk.places() == [("graph-break", 5, 0), ("missed-fusion", 6, 0)]
    desk.results.end(None, ended(PATH, {PATH: SCRIPT}, source="b", findings=[finding(PATH, 6)]))
    assert desk.places() == [("graph-break", 5, 0)]


@pytest.mark.parametrize("kind", ["host-sync", "slow-guards"])
def test_a_newer_fast_run_takes_the_place_of_what_it_can_see_of_a_deep_run(kind: str) -> None:
    desk = Desk()
    deep = [finding(PATH, 5, kind=kind), finding(PATH, 7, kind="fallback")]
    desk.results.end(None, ended(PATH, {PATH: SCRIPT}, lane=Lane.DEEP, source="a", findings=deep))
    desk.results.end(None, ended(PATH, {PATH: SCRIPT}, source="a"))
    assert desk.places() == [("fallback", 6, 0)]


def test_a_full_run_corrects_a_fast_one_that_may_differ() -> None:
    desk = Desk()
    once, often = finding(PATH, 6, kind="recompilation"), finding(PATH, 5, kind="recompile-limit")
    fast = ended(PATH, {PATH: SCRIPT}, source="a", findings=[once])
    fast = dataclasses.replace(fast, report=dataclasses.replace(fast.report, may_differ=("sizes vary",)))
    desk.results.end(None, fast)
    (shown,) = desk.views.findings(PATH)
    assert "May differ from a full run: sizes vary." in finding_text(shown, [], "not tried", str, rich=False)
    desk.results.end(None, ended(PATH, {PATH: SCRIPT}, lane=Lane.DEEP, source="a", findings=[often]))
    assert desk.places() == [("recompile-limit", 4, 0)], "what the full run has found takes its place"
    desk.results.end(None, fast)
    (shown,) = desk.views.findings(PATH)
    assert shown.finding.kind == "recompile-limit", "the same texts again: the full run is still true"
    assert "May differ" not in finding_text(shown, [], "not tried", str, rich=False)
    desk.results.end(None, dataclasses.replace(fast, source="b"))
    assert desk.places() == [("recompilation", 5, 0)]


def test_a_fast_run_does_not_judge_a_deep_runs_comments() -> None:
    desk = Desk()
    deep = [finding(PATH, 5, kind="unused-ignore")]
    desk.results.end(None, ended(PATH, {PATH: SCRIPT}, lane=Lane.DEEP, source="a", findings=deep))
    desk.results.end(None, ended(PATH, {PATH: SCRIPT}, source="a"))
    assert desk.places() == [("unused-ignore", 4, 0)]


def test_a_place_that_is_not_in_the_text_is_shown_at_its_end() -> None:
    desk = Desk()
    desk.results.end(None, ended(PATH, {PATH: SCRIPT}, findings=[finding(PATH, 999)]))
    assert [line for _, line, _ in desk.places()] == [len(split_lines(SCRIPT)) - 1]


BREAK = finding(PATH, 6, 4, 15, compiles=("0/0", "0/1"), count=2)
RECOMPILE = finding(PATH, 4, 6, 7, kind="recompilation", code="recompile-size", compiles=("0/1",), message="`x` grew")
COMPILES = [
    compile_of(PATH, "0/0", "f", 3, outcome=CompileOutcome.GRAPH_BREAK, seconds=1.0),
    compile_of(PATH, "1/0", "torch_dynamo_resume_in_f_at_6", 6, seconds=0.5),
    compile_of(PATH, "0/1", "f", 3, seconds=0.3),
]


@pytest.mark.parametrize(
    ("compiles", "findings", "title"),
    [
        (COMPILES, [BREAK, RECOMPILE], "2 graphs · 1 break · 1 recompile · 1.8 s"),
        (COMPILES[:1], [], "1 graph · 1.0 s"),
        ([compile_of(PATH, graph_ops=0, seconds=0.0)], [BREAK], "0 graphs · 1 break"),
        ([compile_of(PATH, graph_ops=0, stages=(stage("0/0", "dynamo-graph"),))], [], "1 graph · 500 ms"),
        (COMPILES, [finding(PATH, 6, compiles=("7/0",))], "2 graphs · 1 recompile · 1.8 s"),
    ],
)
def test_a_lens_counts(compiles: list[Any], findings: list[Any], title: str) -> None:
    desk = Desk()
    desk.results.end(None, ended(PATH, {PATH: SCRIPT}, compiles=compiles, findings=findings))
    assert desk.lenses() == [(2, title)]


MOE = """\
import torch

class MoE(torch.nn.Module):
    def forward(self, x):
        for expert in self.experts:
            torch.where(x == 1)

@torch.compile
def f(x):
    return MoE()(x)
"""
WHERE = Range(Position(6, 12), Position(6, 31))
IN_LOOP = finding(PATH, 6, range=WHERE, compiles=("0/0", "1/0"))


def skipped(compile: str, line: int, cause: Any = WHERE, code: str = "skipped-by-break") -> Any:
    where = () if cause is None else (Related(PATH, cause, "this graph break is the cause"),)
    return finding(PATH, line, 8, 15, kind="skipped-frame", code=code, compiles=(compile,), related=where)


def skipped_compile(id: str, function: str, line: int) -> Any:
    return compile_of(PATH, id, function, line, outcome=CompileOutcome.SKIPPED, graph_ops=0)


def test_a_lens_says_why_a_function_is_not_compiled_and_where_the_cause_is_now() -> None:
    desk = Desk(**{PATH: MOE})
    compiles = [skipped_compile("0/0", "f", 8), skipped_compile("1/0", "forward", 4)]
    findings = [IN_LOOP, skipped("0/0", 9), skipped("1/0", 4)]
    desk.results.end(None, ended(PATH, {PATH: MOE}, compiles=compiles, findings=findings))
    why = "runs as plain Python: break at line 6 in MoE.forward"
    assert desk.lenses() == [(3, why), (7, why)]
    desk.texts[PATH] = "# new\n" + MOE
    assert desk.lenses() == [(4, why.replace("line 6", "line 7")), (8, why.replace("line 6", "line 7"))]
    assert [one.not_compiled and one.not_compiled.line for one in desk.views.functions(PATH)] == [6, 6]


@pytest.mark.parametrize(
    ("compiles", "findings", "title"),
    [
        (
            [skipped_compile("1/0", "forward", 4)],
            [skipped("1/0", 4, None, "skipped-frame")],
            "runs as plain Python: it has nothing to compile",
        ),
        (
            [skipped_compile("1/0", "forward", 4)],
            [IN_LOOP],  # as in a run of an older version
            "runs as plain Python: break at line 6 in MoE.forward",
        ),
        (
            [compile_of(PATH, "1/0", "forward", 4), skipped_compile("1/1", "forward", 4)],
            [finding(PATH, 6, range=WHERE, compiles=("1/1",))],
            "1 graph · 1 break · 1 recompile · 1.0 s",
        ),
        ([skipped_compile("1/0", "forward", 4)], [], "0 graphs · 500 ms"),
    ],
)
def test_a_lens_of_a_function_without_a_graph(compiles: list[Any], findings: list[Any], title: str) -> None:
    desk = Desk(**{PATH: MOE})
    desk.results.end(None, ended(PATH, {PATH: MOE}, compiles=compiles, findings=findings))
    assert desk.lenses() == [(3, title)]


def test_a_lens_names_the_file_of_a_cause_elsewhere() -> None:
    lib = "\n" * 4 + "def wild(x):\n    print(x)\n"
    desk = Desk(**{PATH: MOE, OTHER: lib})
    cause = Related(OTHER, Range(Position(6, 4), Position(6, 12)), "this graph break is the cause")
    found = finding(PATH, 4, kind="skipped-frame", code="skipped-by-break", compiles=("1/0",), related=(cause,))
    one = ended(PATH, {PATH: MOE, OTHER: lib}, compiles=[skipped_compile("1/0", "forward", 4)], findings=[found])
    desk.results.end(None, one)
    assert desk.lenses() == [(3, "runs as plain Python: break at module.py:6 in wild")]


def test_kernels_are_those_of_a_deep_run_of_this_very_text() -> None:
    desk = Desk()
    kernels = [kernel("k0", "0/0", (PATH, 5)), kernel("k1", "1/0", (PATH, 7)), kernel("k2", "9/0")]
    desk.results.end(None, ended(PATH, {PATH: SCRIPT}, lane=Lane.DEEP, source="a", compiles=COMPILES, kernels=kernels))
    desk.results.end(None, ended(PATH, {PATH: SCRIPT}, source="a", compiles=COMPILES[:2]))
    assert desk.lenses() == [(2, "2 graphs · 2 kernels · 1.5 s")]
    desk.texts[PATH] = SCRIPT + "# edited\n"
    assert desk.lenses() == [(2, "2 graphs · 1.5 s")]


def test_a_lens_moves_with_its_function_even_when_its_line_is_edited() -> None:
    desk = Desk()
    desk.results.end(None, ended(PATH, {PATH: SCRIPT}, compiles=COMPILES[:1]))
    desk.texts[PATH] = "# new\n" + SCRIPT.replace("@torch.compile", "@torch.compile()")
    assert desk.lenses() == [(3, "1 graph · 1.0 s")]


def test_what_was_compiled_elsewhere_stands_at_the_call() -> None:
    text = "import torch, lib\n\nmodel = torch.compile(lib.Model())\nmodel(1)\n"
    desk = Desk(**{PATH: text})
    library = compile_of("/w/site-packages/lib.py", "0/0", "forward", 10)
    desk.results.end(None, ended(PATH, {PATH: text}, compiles=[library]))
    assert desk.lenses() == [(2, "compiled in other files · no breaks · 1 graph · 500 ms")]


def test_a_librarys_model_has_its_name_at_its_own_call_of_torch_compile() -> None:
    text = (
        "import torch, lib\n\nmodel = torch.compile(lib.Model())\nother = torch.compile(lib.Other())\nmodel(other(1))\n"
    )
    desk = Desk(**{PATH: text})
    library = "/w/site-packages/lib.py"
    places = {"Model": (5, 3), "Other": (5, 4)}
    compiles = [
        compile_of(library, f"{number}/0", "wrapper", 10, program=name, callers=tuple(Origin(PATH, at) for at in lines))
        for number, (name, lines) in enumerate(places.items())
    ]
    kernels = [
        kernel("k0", "0/0", (library, 11)),
        kernel("k1", "1/0", (library, 12)),
        kernel("k2", "1/0", (library, 12)),
    ]
    deep = ended(PATH, {PATH: text}, lane=Lane.DEEP, compiles=compiles, kernels=kernels)
    desk.results.end(None, deep)
    assert desk.lenses() == [
        (2, "Model · no breaks · 1 graph · 1 kernel · 500 ms"),
        (3, "Other · no breaks · 1 graph · 2 kernels · 500 ms"),
    ]
    desk.texts[PATH] = "# new\n" + text
    assert [line for line, _ in desk.lenses()] == [3, 4], "they move with their lines"


@pytest.mark.parametrize(
    ("parts", "last", "title"),
    [
        (["1 graph", "1.8 s"], [], "1 graph · 1.8 s"),
        (["12 graphs (was 1)", "3 breaks (was 0)", "2 recompiles", "140 kernels", "1.8 s"], ["running…"],
         "12 graphs (was 1) · 3 breaks (was 0) · running…"),
        (["runs as plain Python: break at modeling_llama.py:1234 in LlamaDecoderLayer.forward"], ["before your edit"],
         "runs as plain Python: break at modeling_… · before your edit"),
    ],
)  # fmt: skip
def test_a_lens_has_at_most_60_letters(parts: list[str], last: list[str], title: str) -> None:
    assert words.of_lens(parts, *last) == title
    assert len(title) <= 60


def test_a_module_shows_what_a_script_compiled_in_it() -> None:
    module = "def g(x):\n    return x\n"
    desk = Desk(**{OTHER: module})
    desk.results.end(None, ended(PATH, {PATH: SCRIPT, OTHER: module}, compiles=[compile_of(OTHER, "0/0", "g", 1)]))
    assert desk.lenses(OTHER) == [(0, "1 graph · 500 ms")]
    desk.results.end(None, ended(OTHER, {OTHER: module}))  # run by itself it compiles nothing
    assert desk.lenses(OTHER) == [(0, "1 graph · 500 ms")]


def test_a_lambda_and_module_level_code_have_a_lens_at_their_line() -> None:
    text = "import torch\ng = torch.compile(lambda x: x + 1)\nexec('...')\n"
    desk = Desk(**{PATH: text})
    compiles = [compile_of(PATH, "0/0", "<lambda>", 2), compile_of(PATH, "1/0", "<module>", 3)]
    desk.results.end(None, ended(PATH, {PATH: text}, compiles=compiles))
    assert [line for line, _ in desk.lenses()] == [1, 2]


def placed(one: Finding) -> PlacedFinding:
    return PlacedFinding(one, "run", 0, 0, 0, 1, related=one.related)


LED_HERE = (
    related(PATH, 12, 0, 4, "called at module level", RelatedRole.CALLER),
    related(OTHER, 7, 0, 1, "called in `g`", RelatedRole.CALLER),
    related(OTHER, 2, 0, 1, "the cause lies here, in `h` of a library", RelatedRole.CAUSE),
)


HINTS = [
    TriedHint("Move it.", Standing.HELPS, "1 finding fewer"),
    TriedHint("Keep it.", Standing.NOT_TRIED),
    TriedHint("Leave it out.", Standing.NO_HELP, "it fails."),
]


def test_the_hover_of_a_finding() -> None:
    text = finding_text(
        placed(
            finding(
                PATH,
                6,
                message="It `breaks` <b>here</b>.",
                count=3,
                compiles=("0/0", "0/1"),
                related=LED_HERE,
            )
        ),
        HINTS,
        "being tried",
        lambda path: f"file://{path}",
        rich=False,
    )
    assert text == (
        "**Graph break** [GB0059](https://example.org/gb0059.html)\n\n"
        "It `breaks` \\<b\\>here\\</b\\>.\n\n"
        "**What to do:**\n\n- Move it.\n\n  **tried: helps (1 finding fewer)**\n- Keep it.\n\n  *not tried*\n- Leave it out.\n\n"
        "  *tried: does not help here, because: it fails.*\n\n"
        "Dynamo does not know how to trace it.\n\n"
        "Seen 3 times, in compiles `0/0`, `0/1`.\n\n"
        "See also:\n\n"
        "- [script.py:12](file:///w/script.py#L12): called at module level\n"
        "- [module.py:7](file:///w/module.py#L7): called in `g`\n"
        "- [module.py:2](file:///w/module.py#L2): the cause lies here, in `h` of a library"
    )


def test_a_hover_beside_the_diagnostic_repeats_nothing() -> None:
    text = finding_text(
        placed(finding(PATH, 6, message="It breaks.", explanation="<img src=x>", related=LED_HERE)),
        [TriedHint("Move it.", Standing.NOT_TRIED)],
        "being tried",
        lambda path: f"file://{path}",
        rich=True,
    )
    assert text == (
        "**What to do** (being tried): Move it.\n\n"
        "\\<img src=x\\>\n\n"
        "In compile `0/0`.\n\n"
        "<details><summary>1 call above it</summary>\n\n"
        "- [script.py:12](file:///w/script.py#L12): called at module level\n\n"
        "</details>"
    )
    shown, above = told_apart(LED_HERE, rich=True)
    assert (shown, above) == ([*LED_HERE[1:]], [LED_HERE[0]])


def test_related_places_move_with_edits() -> None:
    desk = Desk()
    here = finding(
        PATH,
        6,
        related=(related(PATH, 8, 4, 9, "called at module level", RelatedRole.CALLER), related(PATH, 1, 0, 5, "gone")),
    )
    desk.results.end(None, ended(PATH, {PATH: SCRIPT}, findings=[here]))
    lines = SCRIPT.split("\n")
    desk.texts[PATH] = "\n".join(["# changed", *lines[1:5], "# new", *lines[5:]])
    (moved,) = desk.views.findings(PATH)
    assert moved.line == 6
    assert [each.range.start for each in moved.related] == [Position(9, 4), Position(1, 0)]


def test_a_link_that_is_none_is_not_followed() -> None:
    text = finding_text(placed(finding(PATH, 6, link="command:evil")), [], "not tried", str, rich=False)
    assert "command:" not in text


def test_the_hover_of_a_function() -> None:
    desk = Desk()
    desk.results.end(None, ended(PATH, {PATH: SCRIPT}, compiles=COMPILES, findings=[BREAK, RECOMPILE]))
    assert function_text(desk.views.functions(PATH)[0]) == (
        "**`f`** 2 graphs · 1 break · 1 recompile · 1.8 s\n\n"
        "| compile | function | outcome | ops | restarts | time |\n"
        "|---|---|---|---:|---:|---:|\n"
        "| `0/0` | `f` | graph break | 2 | 0 | 1.0 s |\n"
        "| `1/0` | `f, after line 6` | compiled | 2 | 0 | 500 ms |\n"
        "| `0/1` | `f` | compiled | 2 | 0 | 300 ms |\n\n"
        "Why it was compiled again:\n\n- `x` grew (line 4, 1 time)"
    )


def test_a_range_over_two_lines() -> None:
    desk = Desk()
    broad = finding(PATH, 5, range=Range(Position(5, 4), Position(6, 15)))
    desk.results.end(None, ended(PATH, {PATH: SCRIPT}, findings=[broad]))
    (one,) = desk.views.findings(PATH)
    assert (one.line, one.column, one.end_line, one.end_column) == (4, 4, 5, 15)
