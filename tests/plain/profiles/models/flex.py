import torch, torch.nn as nn, torch.nn.functional as F
torch.manual_seed(0)
D='cuda' if torch.cuda.is_available() else 'cpu'
S=1 if D=='cuda' else 8

from torch.nn.attention.flex_attention import flex_attention
def score(s, b, h, q, k):
    return s + (q - k) * 0.1
def f(q, k, v):
    y = flex_attention(q * 2, k, v, score_mod=score)
    return y.relu()
fast = torch.compile(f)
with torch.no_grad():
    fast(*(torch.randn(2, 4, 256, 64, device=D) for _ in range(3)))
