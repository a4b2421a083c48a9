"""A size marked dynamic that the code fixes, and one that is out of the range that was promised."""
import torch


@torch.compile
def fixed(x):
    return x.view(2, 3)
    #      ^^^^^^^^^^^^ compile-error ConstraintViolationError


@torch.compile
def compared(x, y):
    return x + y
    #      ^^^^^ compile-error ConstraintViolationError


@torch.compile
def ranged(x):
    if x.shape[0] > 5:
        return x * 2
    return x


x = torch.ones(6)
torch._dynamo.mark_dynamic(x, 0)
y = torch.ones(6)
torch._dynamo.mark_dynamic(y, 0, min=2, max=10)
for call in (lambda: fixed(x), lambda: compared(x, torch.ones(6)), lambda: ranged(y)):
#                                                                          ^^^^^^^^^ compile-error ConstraintViolationError
    try:
        call()
    except Exception as error:
        print(type(error).__name__, str(error)[:80])
