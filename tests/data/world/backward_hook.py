# Source: https://github.com/pytorch/pytorch/issues/133303
import torch


class Sub(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(2, 2)
        self.register_full_backward_hook(lambda module, given, got: None)

    def forward(self, x):
        return self.fc(x)


torch.manual_seed(0)
model = torch.compile(torch.nn.Sequential(Sub(), torch.nn.Linear(2, 2)))
loss = model(torch.ones(3, 2, requires_grad=True)).sum()
loss.backward()
print(loss.item())
