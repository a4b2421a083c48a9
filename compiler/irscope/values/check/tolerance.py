"""When two numbers that should be the same are not: the criterion of a divergence, and why it is this one.

Compiled code may differ from eager mode in the last bits and be right: it keeps intermediate results in wider registers,
adds in another order, uses other approximations.  So compiled code is not compared with eager mode alone; both are
compared with the same operations in float64, on the very inputs that the compiled kernel read (*local* error: what was
wrong before does not count again).  An element of compiled code differs where

    |compiled - float64|  >  SLACK * max(eager, rounding) + rtol * (|float64| + rms)

eager
    the largest error of eager mode against float64, in the dtype of the graph: what is normal for this operation.
rounding
    how far the float64 result moves when each intermediate is disturbed by one rounding of its dtype: what an
    ill-conditioned operation (a sum that cancels) may be off by even where eager mode happened to be exact.
rms
    root mean square of the float64 result: an element near zero is as exact as its neighbours are, not relatively.
rtol
    by dtype, as below: the tolerances of ``torch.testing``, with float32 a little wider for vectorized transcendental
    functions.

NaN and infinities are compared as patterns: one that neither eager mode nor float64 has, or that both have and compiled
code lacks, differs.  Truth values and integers differ if more elements differ than SLACK times those in which eager
mode or the disturbed result differ from float64, and one in a thousand (a comparison at a tie); if no floating-point
number is above them in the kernel, they must be equal.
"""

from __future__ import annotations

from typing import Any

SLACK = 8.0
RTOL = {
    "float64": 1e-7, "float32": 1e-5, "float16": 2e-3, "bfloat16": 1.6e-2, "float8_e4m3fn": 0.13, "float8_e5m2": 0.26,
    "complex64": 1e-5, "complex128": 1e-7,
}  # fmt: skip
"""By dtype; others are compared as integers."""
PASS_RTOL = 1e-7
"""Between a graph before and after a pass, both in float64: rewriting moves such results by about 1e-15."""


def tolerance_data() -> dict[str, Any]:
    """The tolerances as they are in the data of a stage ``divergence``."""
    return {"slack": SLACK, "rtol": RTOL}
