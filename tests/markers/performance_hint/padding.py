# lane: deep
"""Of Inductor's performance hints all but one come with Triton kernels; on a CPU it takes these settings to see one."""
import torch

torch._inductor.config.disable_padding_cpu = False
torch._inductor.config.aot_inductor.use_runtime_constant_folding = True


@torch.compile
def f(x):
#   ^ cache-miss aotautograd-cache-bypass
#   ^ cache-miss fx-graph-cache-bypass
#   ^ performance-hint performance-hint
    return x @ x


f(torch.ones(8, 8))
