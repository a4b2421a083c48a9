# source: https://github.com/pytorch/pytorch/pull/108120
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 6)
        self.cell = nn.GRU(6, 5, batch_first=True)
        self.head = nn.Linear(5, 2)

    def forward(self, ids, lengths):
        packed = pack_padded_sequence(self.embed(ids), lengths, batch_first=True, enforce_sorted=False)
        hidden, _ = pad_packed_sequence(self.cell(packed)[0], batch_first=True)
        return self.head(hidden.relu().mean(1))


torch.manual_seed(0)
reader = torch.compile(Reader())
for _ in range(2):
    print(f"{reader(torch.randint(0, 20, (3, 7)), torch.tensor([7, 4, 2])).sum().item():.4f}")
