# lane: deep
"""Operations that Inductor does not generate, a sort, and matrix products that nobody expects it to generate."""
import torch


@torch.compile
def f(x):
    y = x @ x
    values, _ = y.relu().sort(dim=-1, stable=True)
    #           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ fallback fallback-no-lowering
    z = torch.cumsum(values, 0)
    #   ^^^^^^^^^^^^^^^^^^^^^^^ fallback fallback-no-lowering
    return torch.special.zeta(z.abs() + 2, 3.0), torch.histc(z, 4)
    #                                            ^^^^^^^^^^^^^^^^^ fallback fallback-no-lowering


f(torch.ones(8, 8))
