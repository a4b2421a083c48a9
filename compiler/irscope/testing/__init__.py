"""Graph breaks and recompilations as failures of tests, inside the test's own process.

    from irscope.testing import no_graph_breaks

    def test_forward():
        with no_graph_breaks():
            compiled(x)

With pytest the same is a mark: ``@pytest.mark.irscope(max_graph_breaks=0)``.  See docs/ci.md.
"""

from __future__ import annotations

from irscope.testing.bounded import CompileBounds as CompileBounds
from irscope.testing.bounded import CompileCheckError as CompileCheckError
from irscope.testing.bounded import compile_bounds as compile_bounds
from irscope.testing.bounded import max_recompiles as max_recompiles
from irscope.testing.bounded import no_graph_breaks as no_graph_breaks
