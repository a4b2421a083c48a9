"""Compiled once and used in a loop with an optimizer outside; grad mode and train mode stay as they are."""
import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Dropout(0.2), torch.nn.Linear(8, 1))
optimizer = torch.optim.Adam(model.parameters())
step = torch.compile(lambda x, y: torch.nn.functional.mse_loss(model(x), y))
for _ in range(4):
    optimizer.zero_grad()
    loss = step(torch.randn(8, 4), torch.zeros(8, 1))
    loss.backward()
    optimizer.step()
print(loss.item() >= 0)
