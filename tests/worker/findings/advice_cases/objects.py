"""Cases of breaks: objects."""

from __future__ import annotations

from advice_cases.table import case

case(
    "deepcopy_tensor",
    "GB4198",
    """
    import copy
    import torch


    def f(x):
        y = copy.deepcopy(x)
        y += 1
        return x, y
    """,
)
case(
    "deepcopy_list",
    "GB4198",
    """
    from copy import deepcopy
    import torch


    def f(x):
        kept = deepcopy([x, x + 1])
        return kept[1]
    """,
)
case(
    "deepcopy_module",
    "GB4198",
    """
    import copy
    import torch

    layer = torch.nn.Linear(4, 4)


    def f(x):
        twin = copy.deepcopy(layer)
        return twin(x)
    """,
)
case(
    "asdict",
    "GB4198",
    """
    import dataclasses
    import torch


    @dataclasses.dataclass
    class State:
        x: torch.Tensor
        n: int = 2


    def f(x):
        state = State(x)
        fields = dataclasses.asdict(state)
        return fields["x"] * fields["n"]
    """,
)
case(
    "class_made",
    "GB8977",
    """
    def f(x):
        class Options:
            factor = 3

        return x * Options.factor
    """,
)
case(
    "parameter_made",
    "GB0264",
    """
    def f(x):
        p = torch.nn.Parameter(torch.ones(4))
        return x * p
    """,
    proven=2,
)
case(
    "module_made",
    "GB0264",
    """
    class M(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first = torch.nn.ReLU()

        def forward(self, x):
            self.second = torch.nn.Linear(4, 4)
            return self.second(self.first(x))


    f = M()
    """,
    same=False,
)
case(
    "lstm",
    "GB0014",
    """
    layer = torch.nn.LSTM(4, 4)


    def f(x):
        return layer(x)[0]
    """,
    args="torch.ones(2, 4),",
)
case(
    "hook_registered",
    "GB0467",
    """
    layer = torch.nn.Linear(4, 4)


    def f(x):
        handle = layer.register_forward_hook(lambda *a: None)
        return layer(x)
    """,
    proven=0,
)
case(
    "super_slot",
    "GB0006",
    """
    class Counter:
        pass


    counter = Counter()


    def f(x):
        return x * (super(Counter, counter).__hash__() * 0 + 2)
    """,
)
