# lane: deep
# env: IRSCOPE_SLOW_GUARDS_US=0
"""Guards over a threshold that is set to nothing, and a graph that the compile caches cannot keep."""
import torch

torch._inductor.config.post_grad_custom_pre_pass = lambda graph: None


class Shift(torch.nn.Module):
    def forward(self, x):
    #   ^^^^^^^ cache-miss aotautograd-cache-bypass
    #   ^^^^^^^ cache-miss fx-graph-cache-bypass
    #   ^^^^^^^ slow-guards slow-guards
        return x.sin() + 1


torch.compile(Shift())(torch.ones(4))
