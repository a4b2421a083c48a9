"""The user's own exceptions, raised and caught inside and outside of compiled code."""
import torch


class Bad(Exception):
    def __init__(self, size, note=""):
        super().__init__(f"bad {size} {note}")
        #^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ graph-break GB0006 ×3
        self.size = size


def check(x):
    if x.shape[0] != 4:
        raise Bad(x.shape[0], note="four wanted")
    return x


@torch.compile
def checks(x):
    return check(x) + 1


@torch.compile
def catches(x):
#   ^^^^^^^ skipped-frame skipped-by-break
    try:
        return check(x) * 2
    except Bad as bad:
        return x * bad.size


@torch.compile
def looks_up(x):
#   ^^^^^^^^ skipped-frame skipped-by-break
    return x + {"a": 1}[KEY]
    #          ^^^^^^^^^^^^^ graph-break GB0088


KEY = "b"
catches(torch.ones(3))
for f in (checks, looks_up):
    try:
        f(torch.ones(3))
    except (Bad, KeyError) as error:
        print(type(error).__name__)
