import torch, torch.nn as nn, torch.nn.functional as F
torch.manual_seed(0)
D='cuda' if torch.cuda.is_available() else 'cpu'
S=1 if D=='cuda' else 8

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Conv2d(3, 32, 3, padding=1), nn.Conv2d(32, 32, 3, padding=1)
        self.n, self.m = nn.BatchNorm2d(32), nn.BatchNorm2d(32)
        self.out = nn.Linear(32, 10)
    def forward(self, x):
        x = F.relu(self.n(self.a(x)))
        x = F.relu(self.m(self.b(x)) + x)
        return self.out(x.mean((2, 3)))

net = torch.compile(Net().to(D))
net(torch.randn(64 // S, 3, 64, 64, device=D)).square().mean().backward()
