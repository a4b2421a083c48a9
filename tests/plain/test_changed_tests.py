"""Which tests `npm test -- --changed` selects."""

from __future__ import annotations

import pytest
from changed_tests import Imports, Selection, select

IMPORTS = Imports()


def selected(*changed: str) -> Selection:
    return select(changed, IMPORTS)


def test_a_change_leads_to_the_tests_that_import_it_over_other_modules() -> None:
    chosen = selected("compiler/irscope/store/disk.py").pytest
    assert {"tests/plain/test_store.py", "tests/worker/process/test_forkserver.py"} <= set(chosen)
    assert "tests/plain/test_guardtext.py" not in chosen


def test_who_starts_a_process_imports_what_runs_in_it() -> None:
    worker = selected("compiler/irscope/worker/server.py").pytest
    capture = selected("compiler/irscope/pipeline_captures/inductor/deep_lane.py").pytest
    test = "tests/worker/process/test_forkserver.py"
    assert test in worker and test in capture
    assert "tests/plain/test_symbols.py" not in worker + capture


def test_a_registry_imports_what_it_finds() -> None:
    assert "tests/worker/findings/test_markers.py" in selected("compiler/irscope/findings/kinds/graph_break.py").pytest


def test_a_fixture_imports_what_its_conftest_does() -> None:
    """These files take `run_script` and import nothing of irscope that runs scripts."""
    assert "tests/worker/stages/test_kernels_lower.py" in selected("compiler/irscope/driver/watch.py").pytest


def test_data_leads_to_the_tests_that_name_its_folder() -> None:
    chosen = selected("tests/markers/graph_break/new.py").pytest
    assert "tests/worker/findings/test_markers.py" in chosen and "tests/plain/test_symbols.py" not in chosen


def test_a_script_or_a_page_leads_to_the_tests_that_name_it() -> None:
    assert "tests/plain/test_plain_english.py" in selected("scripts/plain_english.py").pytest
    assert "tests/plain/test_rooms.py" in selected("docs/ARCHITECTURE.md").pytest


def test_typescript_leads_to_the_editor() -> None:
    assert selected("extension/src/units.ts") == Selection(None, [], True, len(IMPORTS.tests))
    assert not selected("docs/ARCHITECTURE.md").editor


@pytest.mark.parametrize("path", ["pyproject.toml", "package.json", "tests/conftest.py", "scripts/test.mjs"])
def test_everything_runs_if_what_all_need_has_changed(path: str) -> None:
    assert selected("README.md", path) == Selection(f"{path} has changed", IMPORTS.tests, True, len(IMPORTS.tests))
