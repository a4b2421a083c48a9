"""Breaks whose words are the same at each line; only the options are made of it."""

from __future__ import annotations

import ast
from collections.abc import Callable

from irscope.fixing.advice.common import around, custom_op, hoist, pass_in, plain_rule, setting
from irscope.fixing.advice.model import Advice, Option
from irscope.fixing.advice.spot import Spot


def traced_autograd(spot: Spot) -> Option | None:
    """Dynamo's setting; in a graph after a break it gives no gradients, since what the graph before made has a history."""
    if spot.context.resumed:
        return None
    caveat = "Not for inputs that already have an autograd history, and not for results that still require grad."
    return setting(spot, "trace_autograd_ops = True", caveat, "Let Dynamo trace autograd")


PLAIN: dict[str, Callable[[Spot], Advice]] = {
    "GB0158": plain_rule(  # ``array.tobytes()``
        "is a method of NumPy arrays that Dynamo cannot trace",
        "Dynamo turns NumPy code into torch operations; this method has no torch equivalent.",
        lambda spot: (
            hoist(spot, spot.call),
            (pass_in(spot, spot.call) if not spot.alone else None)
            or Option("Return the array, and call the method in the caller"))),
    "GB0185 GB0250": plain_rule(
        "uses an array that does not hold numbers",
        "Dynamo traces NumPy arrays as tensors, and a tensor holds numbers.",
        lambda spot: (
            hoist(spot, spot.expression if isinstance(spot.expression, (ast.Call, ast.Attribute)) else None,
                  "It is then made once."),
            Option("Keep arrays of objects and strings out of the compiled code", "", "A list or a tuple can stay."))),
    "GB3934": plain_rule(  # ``b"head" + data``
        "joins two sequences of types that Dynamo cannot join", "",
        lambda spot: (hoist(spot, spot.expression), pass_in(spot, spot.expression))),
    "GB0363": plain_rule(  # ``torch.Generator()``
        "creates an object that a graph can only receive as an input",
        "Its state lives outside of the graph, so it must exist before.",
        lambda spot: [hoist(spot, spot.call, "One generator is then used in all calls, and its state carries over.")]),
    "GB0212": plain_rule(
        "works with a profiler while tracing",
        "A profiler watches the running process; it cannot be part of a graph, nor survive a graph break.",
        lambda spot: [around(spot, "Profile in the caller", "with torch.profiler.profile() as profile:")]),
    "GB0014": plain_rule(
        "is an RNN, GRU or LSTM",
        "Dynamo leaves these modules to cuDNN and to plain Python, unless it is told to trace them.",
        lambda spot: [setting(spot, "allow_rnn = True", "It is experimental: compare the results, and the time.",
                              "Let Dynamo trace it")]),
    "GB0006": plain_rule(
        "reaches a slot of a C class through `super()`", "Dynamo follows `super()` to Python methods only.",
        lambda spot: [hoist(spot, spot.call)]),
    "GB9186": plain_rule(  # ``torch.autograd.grad(…)``
        "computes gradients while the forward is traced", "It asks for the backward of a graph that is still being made.",
        lambda spot: (
            traced_autograd(spot),
            Option("Use `torch.func.grad` on a function of the inputs", "", "Dynamo traces it without a setting."))),
    "GB0219": plain_rule(  # AOTAutograd fails with the backward of ``x[mask] = values``
        "ends a graph whose backward has a result with a shape that depends on values", "A graph must know its shapes.",
        lambda spot: (setting(spot, "capture_dynamic_output_shape_ops = True", "The size becomes a symbol of the graph."),
                      Option("Keep the shape", "torch.where(mask[..., None], values, x)", "Not `x[mask] = values`."))),
    "GB2464": plain_rule(  # ``ctx.mark_dirty(x)``
        "marks an input as changed, but `forward` does not return that input",
        "Dynamo asks that what is marked with `ctx.mark_dirty` is changed in place and returned itself.",
        lambda _: [Option("Change the input first, then return the input itself", "ctx.mark_dirty(x)\nx.add_(1)\nreturn x")]),
    "GB7000": plain_rule(  # a loop with a break in it, without the break itself
        "breaks the graph inside of a loop",
        "A graph that is cut inside of a loop cannot go on in it, so the whole function runs as plain Python.",
        lambda _: [Option("Compile what the loop does, not the loop",
                          "for ... in ...:\n    step(...)   # compiled on its own: step = torch.compile(step)")]),
    "GB2019": plain_rule(  # the ``forward`` of an autograd function
        "is traced on its own, outside of `apply`",
        "The call of `apply` broke, so Dynamo traced `forward` like any function. Fix the graph break at the call of `apply`.",
        lambda _: [Option("Fix the graph break at the call of `apply` first")]),
    "GB0104 GB0108": plain_rule(  # ``y.retain_grad()``, ``y.grad_fn``
        "asks for autograd's graph, which does not exist inside of compiled code",
        "The backward of compiled code is compiled as well; the tensors in between never get a node of autograd.",
        lambda spot: [Option("Compile what makes the tensor and what uses it as two functions, and do it between them", "",
                             "What compiled code returns gets no gradient from what the same compiled code computes of it.")
                      if spot.called.endswith(".retain_grad") else
                      around(spot, "Return the tensor and do it in the caller", "", "", spot.text(spot.expression))]),
    "GB0083": plain_rule(
        "is for a backward hook of a module", "Dynamo traces such a hook only with compiled autograd.",
        lambda spot: [setting(spot, "compiled_autograd = True", "The backward is then compiled with its hooks.")]),
    "GB0149": plain_rule(  # ``vmap``, ``grad``, ``jvp``, …
        "has a graph break inside of the function that it transforms",
        "A transform of `torch.func` must be traced as a whole. Fix the graph break inside, which is reported there.",
        lambda _: [Option("Fix the graph break inside of that function first")]),
    "GB0000 GB0103 GB0163 GB0164": plain_rule(  # ``__torch_function__``
        "works on a tensor subclass in a way that cannot be traced", "",
        lambda spot: (Option("Hand plain tensors to the compiled code", "x.as_subclass(torch.Tensor)",
                             "Its `__torch_function__` is then not called."), custom_op(spot, spot.call))),
}  # fmt: skip
"""By the ids of breaks."""
