"""Which tests execute a line: a map, made once for the sources as they are."""

from __future__ import annotations

import ast
import gzip
import importlib
import json
import sys
import threading
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from mutants import Mutant
from mutation_copy import ROOT, Copy

OF_THE_FILE = ""
"""The context of lines that run while a file is imported, or in another process: any of its tests may need them."""


class Map:
    """What is known of each test file; kept in a folder, a line of JSON a test file."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._unbroken_file, self._lines_file = folder / "unbroken.jsonl", folder / "lines.jsonl.gz"
        self.tests: dict[str, dict[str, float]] = {}
        """Of each test file the tests that pass unbroken, and their seconds."""
        self._by_source: dict[str, list[tuple[str, dict[str, list[int]]]]] = defaultdict(list)
        if self._unbroken_file.exists():
            for line in self._unbroken_file.read_text(encoding="utf-8").splitlines():
                entry = json.loads(line)
                self.tests[entry["file"]] = entry["passed"]
        self._imports: Any = None
        self.mapped: set[str] = set()
        if self._lines_file.exists():
            with gzip.open(self._lines_file, "rt", encoding="utf-8") as lines:
                for line in lines:
                    self._add_lines(json.loads(line))

    def measure(self, copy: Copy, file: str, options: list[str], limit: float, lock: threading.Lock) -> str:
        """Runs a test file, then again under coverage; a sentence on what came of it."""
        if file not in self.tests:
            ended = copy.run([file], options, limit)
            passed = {test: float(seconds) for test, (outcome, seconds) in (ended or {}).items() if outcome == "passed"}  # type: ignore[arg-type]
            with lock, self._unbroken_file.open("a", encoding="utf-8") as kept:
                kept.write(
                    json.dumps({"file": file, "passed": passed, "of": None if ended is None else len(ended)}) + "\n"
                )
            self.tests[file] = passed
        if self.tests[file]:
            copy.run([file], options, 3 * limit, lines=True)
            entry: dict[str, Any] = {"file": file, "lines": lines_in(copy)}
            with lock:
                with gzip.open(self._lines_file, "at", encoding="utf-8") as kept:
                    kept.write(json.dumps(entry, separators=(",", ":")) + "\n")
                self._add_lines(entry)
            return f"{file}: {len(self.tests[file])} tests pass"
        return f"{file}: no test passes unbroken\n{copy.printed()}"

    def _add_lines(self, entry: dict[str, Any]) -> None:
        self.mapped.add(str(entry["file"]))
        for source, by_context in entry["lines"].items():
            self._by_source[source].append((str(entry["file"]), by_context))

    def tests_of(self, mutant: Mutant, source: str) -> dict[str, list[str]]:
        """The tests that execute its line, by test file; first those files that are through first."""
        line = mutant.line_in(source) or mutant.line
        at_import = not is_in_function(source, line)
        tests: dict[str, list[str]] = {}
        running: dict[str, int] = {}
        for file, by_context in self._by_source[mutant.file]:
            contexts = {context for context, lines in by_context.items() if line in lines}
            if contexts and (at_import or OF_THE_FILE in contexts):
                chosen: Iterable[str] = self.tests[file]
            else:
                chosen = contexts & set(self.tests[file])
            if chosen:
                tests[file] = sorted(chosen, key=self.tests[file].__getitem__)
                # Where a line runs at every import, those that also run what is in its module come first.
                running[file] = sum(context != OF_THE_FILE for context in by_context)
        return dict(sorted(tests.items(), key=lambda item: (running[item[0]] == 0, self.seconds(*item))))

    def tests_by_imports(self, file: str) -> dict[str, list[str]]:
        """The tests whose file imports a source file, for a line that no test is seen to execute: the narrowest first."""
        if self._imports is None:
            sys.path.append(str(ROOT / "scripts"))
            self._imports = importlib.import_module("changed_tests").Imports()
        reached = {test: self._imports.reached_from(test) for test in self.tests}
        importing = sorted((len(files), test) for test, files in reached.items() if file in files)
        return {test: list(self.tests[test]) for _, test in importing}

    def seconds(self, file: str, tests: list[str]) -> float:
        return sum(self.tests[file][test] for test in tests)


def lines_in(copy: Copy) -> dict[str, dict[str, list[int]]]:
    """The lines that the processes of a run have executed, by source file and test."""
    coverage: Any = importlib.import_module("coverage")  # `pip install coverage`: only this needs it
    found: dict[str, dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
    for path in copy.data.glob("data*"):
        data = coverage.CoverageData(str(path))
        try:
            data.read()
            for measured in data.measured_files():
                for line, contexts in data.contexts_by_lineno(measured).items():
                    for context in contexts:
                        found[Path(measured).relative_to(copy.folder).as_posix()][context].add(line)
        except (coverage.CoverageException, ValueError):
            continue  # of a process that was killed while it wrote
    return {source: {test: sorted(lines) for test, lines in by_test.items()} for source, by_test in found.items()}


def is_in_function(source: str, line: int) -> bool:
    """Whether a line is in the body of a function, and so is not executed when the module is imported."""
    return any(
        isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and node.body[0].lineno <= line <= (node.end_lineno or 0)
        for node in ast.walk(ast.parse(source))
    )
