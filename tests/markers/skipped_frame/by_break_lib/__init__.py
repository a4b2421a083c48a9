"""What `by_break.py` calls."""
import torch


def wild(x):
    print("wild")
    #^^^^^^^^^^^^ graph-break GB0059 ×3
    return x + 1


class Noisy(torch.nn.Module):
    def forward(self, x):
    #   ^^^^^^^ skipped-frame skipped-by-break
        for _ in range(2):
            x = wild(x)
        return x
