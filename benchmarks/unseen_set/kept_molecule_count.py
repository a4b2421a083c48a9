# source: https://github.com/isayevlab/aimnetcentral/pull/109
import torch
from torch import nn


class Energy(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 8), nn.SiLU(), nn.Linear(8, 1))

    def forward(self, atoms, molecule):
        per_atom = self.net(atoms).squeeze(-1)
        count = int(molecule[-1].item()) + 1
        return torch.zeros(count).index_add(0, molecule, per_atom)


torch.manual_seed(0)
energy = torch.compile(Energy())
for molecule in ([0, 0, 1, 1, 1], [0, 1, 1, 2, 2], [0, 0, 0, 0, 0]):
    print([round(v, 4) for v in energy(torch.randn(5, 3), torch.tensor(molecule)).tolist()])
