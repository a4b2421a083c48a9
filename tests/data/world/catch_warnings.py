# Source: https://github.com/pytorch/pytorch/issues/102339
import warnings

import torch


class Quiet(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)

    def forward(self, x):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self.layer(x)


torch.manual_seed(0)
print(torch.compile(Quiet())(torch.ones(2, 4)).sum().item())
