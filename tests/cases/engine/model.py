import torch


@torch.library.custom_op("engine::attention", mutates_args=())
def attention(query: torch.Tensor) -> torch.Tensor:
    return query * 0.5


@attention.register_fake
def _(query):
    return torch.empty_like(query)


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = torch.nn.Linear(16, 32), torch.nn.Linear(32, 16)

    def forward(self, tokens):
        heads = attention(torch.relu(self.up(tokens)))  # recompiles
        return self.down(heads)
