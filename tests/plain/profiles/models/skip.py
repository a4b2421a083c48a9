import torch, torch.nn as nn, torch.nn.functional as F
torch.manual_seed(0)
D='cuda' if torch.cuda.is_available() else 'cpu'
S=1 if D=='cuda' else 8

def f(x, scale):
    y = x.relu() * scale
    return y.softmax(-1)
fast = torch.compile(f, mode="reduce-overhead")
with torch.no_grad():
    for _ in range(3):
        fast(torch.randn(512, 512, device=D), torch.tensor(2.0))
