"""Train and eval mode, parameters that change, one compiled function for several modules."""
import torch


class Block(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.fc = torch.nn.Linear(width, width)
        self.norm = torch.nn.BatchNorm1d(width)

    def forward(self, x):
        return self.norm(self.fc(x))
        #      ^^^^^^^^^ recompilation recompile-training-mode
        #                ^^^^^^^^^^ specialization specialize-value


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = torch.nn.ModuleList([Block(4), Block(4)])

    def forward(self, x):
        for block in self.blocks:
        #            ^^^^^^^^^^^ recompilation recompile-requires-grad
            x = block(x)
        return x


@torch.compile
def apply(block, x):
#                ^ recompilation recompile-size
    return block(x)


x = torch.ones(3, 4)
net = Net()
compiled = torch.compile(net)
compiled(x)
net.eval()
compiled(x)
net.blocks[1].fc.weight.requires_grad_(False)
compiled(x)
apply(Block(4), x)
apply(Block(6), torch.ones(3, 6))
