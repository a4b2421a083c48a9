"""The page: what was found, what was compiled, the stages of each compile, and where it ran."""

from __future__ import annotations

import base64
import hashlib
import os
import time
from collections.abc import Iterator

from irscope.comparing.piece_matrix import piece_matrix
from irscope.findings.registry import kind_of
from irscope.findings.standing import NEXT, sentence, standing_of
from irscope.measures.compiled import compiled_tree
from irscope.measures.tree import folded, text_rows
from irscope.pipelines.registry import pipeline_named, role_of, stage_kind
from irscope.protocol import PREDICTED, Compile, Finding, Range, Report, StageRef, causes_only
from irscope.reporting.graphs import Pictures
from irscope.reporting.markup import Markup, element, grid, link, text_of
from irscope.reporting.ranks import job_parts
from irscope.reporting.redaction import LEFT_OUT, REDACTIONS, Redaction
from irscope.reporting.style import STYLE
from irscope.store.store import Store, StoreError
from irscope.vocabulary.stages import Role
from irscope.vocabulary.units import count, duration, ranks_named, size

_LONGEST_STAGE = 200_000
_MOST_TEXT = 20_000_000
"""Characters of all stages."""
_MOST_FINDINGS, _MOST_COMPILES = 500, 500
_MOST_RELATED = 8
_MOST_MODULES = 60
_MOST_PIECES, _MOST_SIZES = 200, 40


def page_of(store: Store, report: Report, redaction: Redaction, pictures: bool = True) -> str:
    """The whole page.

    Args:
        pictures: Whether graphs are drawn.
    """
    return _Page(store, report, redaction, pictures).text()


class _Page:
    def __init__(self, store: Store, report: Report, redaction: Redaction, pictures: bool) -> None:
        self._store, self._report, self._redaction = store, report, redaction
        self._sources = {} if redaction.takes_source else store.sources(report.run)
        self._pictures = Pictures(store, report.run) if pictures and not redaction.takes_source else None
        self._room = _MOST_TEXT

    def text(self) -> str:
        """The page."""
        title = f"irscope: {os.path.basename(self._report.script)}"
        digest = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
        policy = f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"
        stages = (
            element("h2", "Stages"),
            *(self._compile(one) for one in self._report.with_predictions[:_MOST_COMPILES]),
        )
        body = [
            *self._head(),
            *self._modules(),
            *self._findings(),
            *self._compiles(),
            *self._pieces(),
            *job_parts(self._report, self._redaction),
            *stages,
        ]
        body += self._environment()
        return "".join(
            [
                '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n',
                f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n',
                '<meta name="viewport" content="width=device-width, initial-scale=1">\n',
                element("title", title), f"\n<style>{STYLE}</style>\n</head>\n<body>\n",
                "\n".join(body), "\n</body>\n</html>\n",
            ]
        )  # fmt: skip

    def _head(self) -> Iterator[Markup]:
        report = self._report
        causes = causes_only(report.findings)
        kernels = sum(kernel.is_generated for kernel in report.kernels)
        yield element("h1", self._redaction.path(report.script))
        yield element(
            "p", self._redaction.words(sentence(standing_of(report), report.outcome.message, NEXT)), class_="words"
        )
        yield element(
            "p", f"{count(len(causes), 'finding')}, {count(len(report.compiles) + report.compiles_of_processes, 'compile')}, {count(kernels, 'kernel')} · "
            f"{report.outcome.message} · {duration(report.outcome.seconds)}", class_="dim",
        )  # fmt: skip

    def _modules(self) -> Iterator[Markup]:
        """What was compiled, by module."""
        tree = folded(compiled_tree(self._report))
        if len(tree.nodes) < 2:
            return
        yield element("h2", "What was compiled")
        yield grid(["", *(measure.name for measure in tree.measures)], list(text_rows(tree, _MOST_MODULES)), 1)
        if len(tree.nodes) > _MOST_MODULES:
            yield element("p", f"{len(tree.nodes) - _MOST_MODULES} more modules are left out.", class_="dim")

    # --- findings -----------------------------------------------------------------------------------------------------

    def _findings(self) -> Iterator[Markup]:
        yield element("h2", "Findings")
        findings = causes_only(self._report.findings)
        if not findings:
            yield element("p", "There are none.")
        for finding in findings[:_MOST_FINDINGS]:
            yield self._finding(finding)
        if len(findings) > _MOST_FINDINGS:
            yield element("p", f"{len(findings) - _MOST_FINDINGS} more are left out.", class_="dim")

    def _finding(self, finding: Finding) -> Markup:
        words, where = self._redaction.words, self._place(finding.file, finding.range)
        times = f" ×{finding.count}" if finding.count > 1 else ""
        head = element("span", f"{kind_of(finding.kind).label} {finding.code}{times}", class_="kind")
        parts = [element("h3", head, Markup(" · "), where), element("p", words(finding.message))]
        parts += self._excerpt(finding)
        # What PyTorch says of a failure may quote any line.
        if not self._redaction.takes_source and (explanation := words(finding.explanation).strip()):
            parts.append(element("pre", explanation, class_="words dim"))
        if hints := [hint for hint in map(words, finding.hints) if hint.strip()]:
            parts.append(element("ul", *(element("li", element("pre", hint, class_="words")) for hint in hints)))
        parts += [
            element("p", f"{self._place(one.file, one.range)}: {words(one.message)}", class_="dim")
            for one in finding.related[:_MOST_RELATED]
        ]
        if finding.compiles:
            parts.append(element("p", f"In {', '.join(finding.compiles[:20])}", class_="dim"))
        if finding.ranks:
            parts.append(element("p", f"On {ranks_named(finding.ranks, *self._report.members)}", class_="dim"))
        if finding.link:
            parts.append(element("p", link(finding.link, finding.link)))
        return element("section", *parts, class_=f"finding {finding.severity.value}")

    def _place(self, file: str, where: Range) -> str:
        return f"{self._redaction.path(file)}:{where.start.line}"

    def _excerpt(self, finding: Finding) -> Iterator[Markup]:
        lines = self._sources.get(finding.file, "").split("\n")
        start, end = finding.range.start, finding.range.end
        shown = []
        for number in range(start.line, min(end.line, start.line + 3) + 1):
            if not 1 <= number <= len(lines) or not (text := lines[number - 1].expandtabs(4)).strip():
                continue
            begin = start.column if number == start.line else len(text) - len(text.lstrip())
            until = end.column if number == end.line else len(text.rstrip())
            shown += [text_of(f"{number:>5} │ {text}\n      │ {' ' * begin}"),
                      element("span", "^" * max(1, until - begin), class_="carets"), Markup("\n")]  # fmt: skip
        if shown:
            yield element("pre", *shown)

    # --- compiles and stages ------------------------------------------------------------------------------------------

    def _compiles(self) -> Iterator[Markup]:
        yield element("h2", "Compiles")
        by_compile: dict[str, int] = {}
        for kernel in (*self._report.kernels, *self._report.predicted_kernels):
            by_compile[kernel.compile] = by_compile.get(kernel.compile, 0) + kernel.is_generated
        rows = [
            [one.id, one.title, f"{self._redaction.path(one.file)}:{one.line}", one.outcome.value,
             str(one.graph_ops), str(by_compile.get(one.id, 0)), str(one.restarts), duration(one.seconds)]
            for one in self._report.with_predictions[:_MOST_COMPILES]
        ]  # fmt: skip
        yield grid(["compile", "function", "at", "outcome", "operations", "kernels", "restarts", "time"], rows, 4)
        if self._report.predictions:
            yield element("p", PREDICTED, class_="dim")
        if len(self._report.with_predictions) > _MOST_COMPILES:
            more = len(self._report.with_predictions) - _MOST_COMPILES
            yield element("p", f"{more} more compiles are left out.", class_="dim")

    def _pieces(self) -> Iterator[Markup]:
        found = piece_matrix(self._report.pieces, _MOST_PIECES, _MOST_SIZES)
        if not found.rows:
            return
        yield element("h2", "Pieces by size")
        yield grid(["piece", *found.sizes], [[row.title, *row.cells] for row in found.rows], 1 + len(found.sizes))
        yield element("p", found.note, class_="dim")
        if found.hidden_rows or found.hidden_sizes:
            more = f"{found.hidden_rows} more pieces and {found.hidden_sizes} more sizes are left out."
            yield element("p", more, class_="dim")

    def _compile(self, compile: Compile) -> Markup:
        stages = [self._stage(compile, stage) for stage in compile.stages if not stage.passed]
        title = f"{compile.id} {compile.title}"
        return element("details", element("summary", title), *stages)

    def _stage(self, compile: Compile, stage: StageRef) -> Markup:
        kind = stage_kind(stage.name)
        name = stage.id.rpartition("/")[2]
        title = f"{kind.title} {name}" if role_of(stage.name) is Role.KERNEL else f"{kind.title} ({stage.id})"
        drawn = Markup()
        if self._redaction.takes_source and not (kind.is_graph or role_of(stage.name) in (Role.CODE, Role.KERNEL)):
            return element("details", element("summary", title), element("p", LEFT_OUT, class_="dim"))
        try:
            text = self._store.stage_text(self._report.run, stage.id)
        except (LookupError, StoreError) as error:
            return element("details", element("summary", title), element("p", str(error.args[0]), class_="dim"))
        if kind.is_graph and self._pictures is not None and not self._redaction.takes_paths:
            drawn = self._pictures.of(compile, stage)
        kept = text[: min(_LONGEST_STAGE, self._room)]
        self._room -= len(kept)
        cut = [element("p", f"Cut: it has {size(len(text))}.", class_="dim")] if len(kept) < len(text) else []
        more = self._reproducer(stage) if role_of(stage.name) is Role.DIVERGENCE else ()
        return element(
            "details", element("summary", title), drawn, element("pre", self._redaction.text(kept)), *cut, *more
        )

    def _reproducer(self, stage: StageRef) -> Iterator[Markup]:
        """The script that shows a divergence by itself."""
        data = self._store.stage_data(self._report.run, stage.id)
        made = data.get("reproducer") if isinstance(data, dict) else None
        if not isinstance(made, dict) or not isinstance(script := made.get("script"), str):
            return
        yield element("h4", "Minimal reproducer")
        if made.get("inputs"):
            said = "It loads the inputs of the run: irscope diverge --reproducer FILE writes them beside it."
            yield element("p", said, class_="dim")
        yield element("pre", self._redaction.text(script[:_LONGEST_STAGE]))

    # --- environment --------------------------------------------------------------------------------------------------

    def _environment(self) -> Iterator[Markup]:
        report = self._report
        how, _ = self._store.how_run(report.run)
        args = how.get("args")
        facts = [
            ["Run", report.run],
            ["Script", self._redaction.path(report.script)],
            ["Arguments", LEFT_OUT if self._redaction.takes_paths else " ".join(map(str, args or ()))],
            ["PyTorch", report.torch or "unknown"],
            ["Pipeline", pipeline_named(report.pipeline).title],
            ["Lane", self._store.lane_of(report.run).value],
            ["GPU", str(how.get("device") or "none was used")],
            ["Outcome", f"{report.outcome.kind.value}: {self._redaction.words(report.outcome.message)}"],
            ["Reported", time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())],
        ]
        yield element("h2", "Environment")
        yield grid([], [row for row in facts if row[1]], 2)
        gaps = [(one.what, one.why) for one in report.capture_gaps]
        if self._pictures is not None and self._pictures.problem:
            gaps.append(("pictures of graphs", self._pictures.problem))
        if gaps:
            yield element("h2", "Not captured")
            yield element("ul", *(element("li", self._redaction.words(f"{what}: {why}")) for what, why in gaps))
        if self._redaction.takes_paths or self._redaction.takes_source:
            taken = [one for one in REDACTIONS if one in self._redaction.parts]
            yield element("p", f"Left out of this report: {', '.join(taken)}.", class_="dim")
