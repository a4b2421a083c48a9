# source: https://github.com/Lightning-AI/pytorch-lightning/issues/16822
import torch
from torch import nn


class AutoEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(12, 3)
        self.decoder = nn.Linear(3, 12)
        self.logged = {}

    def log(self, name, value):
        self.logged.setdefault(name, []).append(round(float(value), 4))

    def training_step(self, batch):
        code = torch.relu(self.encoder(batch))
        loss = nn.functional.mse_loss(self.decoder(code), batch)
        self.log("train_loss", loss)
        return loss


torch.manual_seed(0)
module = AutoEncoder()
step = torch.compile(module.training_step)
optimizer = torch.optim.SGD(module.parameters(), lr=0.5)
for _ in range(4):
    step(torch.randn(3, 12)).backward()
    optimizer.step()
    optimizer.zero_grad()
print(module.logged)
