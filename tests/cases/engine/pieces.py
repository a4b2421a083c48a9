"""A back end in the shape of vLLM's: the graph is cut at attention, and Inductor compiles what is between."""

import torch
from torch._inductor.compile_fx import compile_fx
from torch.fx.passes.split_module import split_module


def piecewise(graph, inputs):
    part, parts, attention = 0, {}, set()
    for node in graph.graph.nodes:
        if node.op == "call_function" and node.target is torch.ops.engine.attention.default:
            attention.add(f"submod_{part + 1}")
            parts[node], part = part + 1, part + 2
        else:
            parts[node] = part
    cut = split_module(graph, None, parts.__getitem__, keep_original_order=True)
    Compiler(cut, attention).run(*inputs)
    return cut


class Compiler(torch.fx.Interpreter):
    def __init__(self, cut, attention):
        super().__init__(cut)
        self.attention = attention

    def call_module(self, target, args, kwargs):
        answer = super().call_module(target, args, kwargs)
        if target not in self.attention:
            self.module.__dict__[target] = compile_fx(self.fetch_attr(target), list(args))  # piece
        return answer
