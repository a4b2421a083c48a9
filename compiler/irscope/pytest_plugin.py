"""The mark ``irscope`` of pytest: ``@pytest.mark.irscope(max_recompiles=0, max_graphs=1)``.

pytest loads this module in every session of an environment that has irscope.  It imports nothing; what it needs is
imported for the first test that has the mark.  PYTEST_DONT_REWRITE
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_MARK = (
    "irscope(fresh=True, max_graph_breaks=N, max_recompiles=N, max_graphs=N): "
    "fail the test if torch.compile has more of them in it; without arguments, if a graph is cut"
)


def pytest_configure(config: Any) -> None:
    """Declare the mark, for ``--strict-markers`` and ``--markers``."""
    config.addinivalue_line("markers", _MARK)


def pytest_runtest_setup(item: Any) -> None:
    """Put a check around the call of a test that has the mark; fixtures are not part of it."""
    if item.get_closest_marker("irscope") is not None:
        from irscope.testing.marked import put_check_around

        put_check_around(item)
