"""What is written by a mask is read by it in the backward: AOTAutograd refuses that, in any lane, and once more after a restart."""

import torch


@torch.compile
def f(h, mask, v):
#   ^ skipped-frame skipped-by-break
    h = h * 2
    h[mask] = v
    h[0, mask[0]] = v
    return h.index_put((mask,), v)
    #^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ graph-break GB0219


f(torch.randn(2, 6, 4), torch.tensor([[True, False] * 3] * 2), torch.ones(4, requires_grad=True))
