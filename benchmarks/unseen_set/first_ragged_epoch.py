# source: https://github.com/Lightning-AI/litgpt/pull/794
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
data = TensorDataset(torch.randn(11, 6), torch.randint(0, 3, (11,)))
model = nn.Sequential(nn.Linear(6, 16), nn.GELU(), nn.Linear(16, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
compiled = torch.compile(model)
for epoch in range(2):
    for inputs, labels in DataLoader(data, batch_size=5):
        loss = nn.functional.cross_entropy(compiled(inputs), labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    print(epoch, f"{loss.item():.4f}")
