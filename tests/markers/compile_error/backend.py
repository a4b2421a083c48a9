"""A backend of the user's own that fails: the error stands where the graph ends and is handed over."""
import torch


def broken(gm, inputs):
    raise NotImplementedError("no such target")


def picky(gm, inputs):
    for node in gm.graph.nodes:
        if "cos" in str(node.target):
            raise ValueError(f"cannot lower {node.target}")
    return gm.forward


def fails_when_it_runs(gm, inputs):
    def run(*args):
        raise RuntimeError("device lost")

    return run


@torch.compile(backend=broken)
def f(x):
    return x.sin() + 1
    #^^^^^^^^^^^^^^^^^ compile-error BackendCompilerFailed


@torch.compile(backend=picky)
def g(x):
    y = x.sin()
    return y.cos()
    #^^^^^^^^^^^^^ compile-error BackendCompilerFailed


@torch.compile(backend=fails_when_it_runs)
def h(x):
    return x + 1


for function in (f, g, h):
    try:
        function(torch.ones(4))
    except Exception as error:
        print(type(error).__name__)
