import torch, torch.nn as nn, torch.nn.functional as F
torch.manual_seed(0)
D='cuda' if torch.cuda.is_available() else 'cpu'
S=1 if D=='cuda' else 8

class Block(nn.Module):
    def __init__(self, width=256, heads=4):
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.one, self.two = nn.LayerNorm(width), nn.LayerNorm(width)
    def attention(self, x):
        b, t, c = x.shape
        q, k, v = (y.view(b, t, self.heads, -1).transpose(1, 2) for y in self.qkv(x).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(b, t, c))
    def forward(self, x):
        x = x + self.attention(self.one(x))
        return x + self.down(F.gelu(self.up(self.two(x))))

net = torch.compile(Block().to(D), mode="reduce-overhead")
with torch.no_grad():
    for _ in range(3):
        net(torch.randn(8, 256 // S, 256, device=D))
