"""Cases of breaks: randomness."""

from __future__ import annotations

from advice_cases.table import case

case(
    "random_in_place",
    "GB0107",
    """
    def f(x):
        noise = torch.empty(4)
        noise.random_(0, 3)
        return x + noise * 0
    """,
)
case(
    "generator_made",
    "GB0363",
    """
    def f(x):
        g = torch.Generator()
        return x + 1
    """,
)
case(
    "generator_argument",
    "GB0055",
    """
    g = torch.Generator()


    def f(x):
        return x + torch.rand(4, generator=g)
    """,
    same=False,
)
case(
    "generator_seeded",
    "GB7650",
    """
    g = torch.Generator()


    def f(x):
        g.manual_seed(3)
        return x + 1
    """,
    proven=0,
)
