# change: 2.9 2.11 torch._inductor.config.apply_gumbel_max_trick
"""A token that is sampled from logits: 2.11 adds Gumbel noise, where 2.9 divides the softmax by exponential noise."""

import torch


@torch.compile
def sampled(logits):
    noise = torch.empty_like(logits).exponential_(1)
    return torch.argmax(torch.nn.functional.softmax(logits, dim=-1) / noise, dim=-1, keepdim=True)


sampled(torch.rand(4, 64))
