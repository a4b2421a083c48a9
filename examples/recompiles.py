"""Three reasons to compile again, and one place where the graph breaks on every call.

Run `irscope run examples/recompiles.py --lane fast`: no C++ compiler is needed for that.
"""

import torch


@torch.compile
def scale(x: torch.Tensor, factor: int) -> torch.Tensor:
    return x.sin() * factor


@torch.compile
def normalize(x: torch.Tensor) -> torch.Tensor:
    total = x.sum().item()
    return x / total


def main() -> None:
    x = torch.linspace(0.1, 1.0, 12).reshape(3, 4)
    scale(x, 2)
    scale(x, 3)  # another int: a constant of the compiled code has changed
    scale(x[:2], 3)  # another size
    with torch.no_grad():
        scale(x[:2], 3)  # another grad mode
    print(normalize(x).shape)


if __name__ == "__main__":
    main()
