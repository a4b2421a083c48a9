"""Line tables of what Triton compiled on a real H100: instructions that can come from one source line only, do."""

from __future__ import annotations

import re

import pytest
from irscope.ir.line_tables import KernelText, library_calls, lines_of, source_lines
from irscope.lowering.sass import clean_sass
from irscope.pipelines.registry import stage_kind
from triton_kernels import AXPY, EXAMPLES, KINDS, Example, strangers


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_instructions_come_from_their_lines(example: Example, kind: str) -> None:
    text = example.text(kind)
    lines = lines_of(stage_kind(kind).language, text, example.place)
    assert strangers(text, lines, example, kind) == []
    assert lines == sorted(lines)
    assert {line for _, line in lines} <= set(range(1, len(example.source) + 1))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_machine_code(example: Example) -> None:
    listing = example.text("nvdisasm")
    text, lines = clean_sass(listing, example.place, library_calls(example.text("ptx"), example.place))
    assert strangers(text, lines, example, "nvdisasm") == []
    instructions = re.findall(r"^\s*/\*[0-9a-f]{4}\*/", listing, re.MULTILINE)
    assert text.count("/*") == len(instructions) > 30
    assert text.startswith(f"{example.name}:\n")
    assert "//##" not in text and ".section" not in text
    rows = text.splitlines()
    assert [" ".join(row.split()) for row in rows] == [
        " ".join(row.split()) for row in listing.splitlines() if "/*0" in row or (row.endswith(":") and row in rows)
    ]
    of_code = [row for row in rows if not row.endswith(":")]
    assert {re.match(r"/\*[0-9a-f]{4}\*/ (?: {6}| *@!?U?P\w )(?=[A-Z])", row) is not None for row in of_code} == {True}
    words = [re.search(r"\b[A-Z]", re.sub(r"@\S+", lambda at: "_" * len(at[0]), row)) for row in of_code]
    assert {word and word.start() for word in words} == {15}


def test_what_a_library_does_counts_as_the_line_that_called_it() -> None:
    calls = library_calls(AXPY.text("ptx"), AXPY.place)
    names = {place[0].rpartition("/")[2] for place in calls}
    assert names == {"standard.py", "gpu.py"}  # tl.sum, and a function of the user's above the kernel
    of_library = {line for place, lines in calls.items() if place[0].endswith("standard.py") for line in lines}
    assert [AXPY.source[line - 1].strip() for line in of_library] == ["total = tl.sum(x, axis=0)"]


def test_another_file_of_the_kernels_lines_is_no_place_in_it() -> None:
    elsewhere = KernelText("/another/file.py", AXPY.first_line, len(AXPY.source))
    assert all(lines_of(stage_kind(kind).language, AXPY.text(kind), elsewhere) == [] for kind in KINDS)
    past = KernelText(AXPY.file, 1 << 30, len(AXPY.source))
    assert all(lines_of(stage_kind(kind).language, AXPY.text(kind), past) == [] for kind in KINDS)


def test_stages_without_a_table() -> None:
    assert lines_of("irscope-guards", "x", AXPY.place) == []


def test_source_lines_of_one_line() -> None:
    table = [[3, 1], [5, 2], [5, 7], [6, 2]]
    assert [source_lines(table, line) for line in (1, 3, 5, 6, 9)] == [[], [1], [2, 7], [2], []]


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("ttir", "#loc1 = loc(callsite(#loc1 at #loc2))\n#loc2 = loc(#loc1)\n  %0 = x loc(#loc1)"),
        ("llir", "  ret void, !dbg !1\n!1 = !DILocation(line: 1, scope: !2, inlinedAt: !1)\n!2 = !DILexicalBlock(scope: !2)"),
        ("ptx", "\t.loc 1 2 3, function_name $x, inlined_at 1 2 3\n\tret;\n"),
        ("ptx", "\t.file 1 \"/a\n\t.loc 1\n\t.loc 99999999999999999999 1 1\n\tret;"),
        ("ttgir", "loc(" * 3000 + " loc(#loc)"),
    ],
)  # fmt: skip
def test_damaged_tables_end(kind: str, text: str) -> None:
    assert lines_of(stage_kind(kind).language, text, AXPY.place) == []
