"""A graph convolution network, trained on a random graph.  Needs torch_geometric."""

import sys
import time

import torch
from torch_geometric.nn import GCNConv

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 40


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = GCNConv(64, 64), GCNConv(64, 7)

    def forward(self, x, edges):
        return self.second(self.first(x, edges).relu(), edges)


torch.manual_seed(0)
model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
x, labels = torch.randn(2000, 64), torch.randint(0, 7, (2000,))
edges = torch.randint(0, 2000, (2, 10000))
model = torch.compile(model)

times = []
for step in range(steps):
    start = time.perf_counter()
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(x, edges), labels)
    loss.backward()
    optimizer.step()
    times.append(time.perf_counter() - start)
print(f"loss {loss.item():.4f}, {1000 * sorted(times)[len(times) // 2]:.3f} ms a step")
