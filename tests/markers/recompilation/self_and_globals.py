"""Guards on attributes of self, on globals, on closures and on defaults: the place where they are read."""
import torch

FACTOR = 2
SETTINGS = {"bias": 1.0}
TABLE = torch.ones(4)


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.steps = 1
        self.fc = torch.nn.Linear(4, 4)
        self.drop = torch.nn.Dropout(0.5)
        self.cache = None

    def forward(self, x):
        for _ in range(self.steps):
        #              ^^^^^^^^^^ recompilation recompile-value
            x = self.fc(x)
        if self.cache is not None:
        #  ^^^^^^^^^^ recompilation recompile-value
            x = x + self.cache
        return self.drop(x)
        #      ^^^^^^^^^ recompilation recompile-training-mode


@torch.compile
def by_global(x):
    return x * FACTOR
    #          ^^^^^^ recompilation recompile-value


@torch.compile
def by_entry(x):
    return x + SETTINGS["bias"]
    #          ^^^^^^^^^^^^^^^^ recompilation recompile-value


@torch.compile
def by_table(x):
    return x + TABLE
    #          ^^^^^ recompilation recompile-dtype


def make(limit):
    def inner(x):
        return x.clamp(max=limit)
        #                  ^^^^^ recompilation recompile-value

    def set_limit(value):
        nonlocal limit
        limit = value

    return torch.compile(inner), set_limit


x = torch.ones(2, 4)
model = Model()
compiled = torch.compile(model)
with torch.no_grad():
    compiled(x)
    model.steps = 2
    compiled(x)
    model.eval()
    compiled(x)
    model.cache = x
    compiled(x)
by_global(x)
FACTOR = 3
by_global(x)
by_entry(x)
SETTINGS["bias"] = 2.0
by_entry(x)
by_table(x)
TABLE = torch.ones(4, dtype=torch.float64)
by_table(x)
inner, set_limit = make(1)
inner(x)
set_limit(5)
inner(x)
