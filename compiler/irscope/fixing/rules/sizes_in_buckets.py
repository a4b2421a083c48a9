"""Sizes that vary, padded to the next bucket before the compiled call, and the result cut to its size.

For code that a dynamic size does not help: a loop over it, or a shape that is written down.  It comes after `sizes`.
What is padded is outside of the compiled code, in a decorator; `irscope.runner.evidence` compares what the decorated
function gives, so the trial says whether zeros at the end change anything.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from irscope.fixing.compile_calls import compiling
from irscope.fixing.marking import varying_sizes
from irscope.fixing.model import Example, Proposal, Rule
from irscope.fixing.source import Source
from irscope.fixing.splitting import given_parameters, is_method
from irscope.fixing.syntax import Function
from irscope.protocol import Finding, RecompilationFacts

_TITLE = "Pad the size to a multiple of {bucket} before the call{cut}"
_CUT = ", and cut the result"
_CAVEAT = "What is padded is computed, too. Sizes up to {bucket} share one compile; each further multiple is one more compile."
_LEAST = 8


def _propose(source: Source, finding: Finding) -> Iterator[Proposal]:
    function, compiled = source.function_at(finding.range), compiling(source)
    if len(compiled) != 1 or isinstance(source.parent(compiled[0]), ast.Expr):
        return
    names, varying, bucket = given_parameters(source, function), varying_sizes(finding), _bucket(finding)
    dimensions = {dimension for several in varying.values() for dimension in several}
    if names is None or not varying or not varying.keys() <= set(names) or len(dimensions) != 1 or bucket is None:
        return
    name, given = source.fresh("in_buckets"), _with_defaults(source, function, names)
    for cut in (_CUT, ""):
        code = _decorator(name, source.torch, given, list(varying), dimensions.copy().pop(), bucket, bool(cut))
        text = _with(source, compiled[0], name, code, is_method(source, function))
        if text is not None:
            yield Proposal(_TITLE.format(bucket=bucket, cut=cut), _CAVEAT.format(bucket=bucket), text)


def _bucket(finding: Finding) -> int | None:
    """The power of two that all sizes fit in that compiles were made for; None if they are not told, or one is 0 or 1,
    which padding changes most of all."""
    sizes = finding.facts.sizes if isinstance(finding.facts, RecompilationFacts) else ()
    return max(_LEAST, 1 << (max(sizes) - 1).bit_length()) if sizes and min(sizes) > 0 else None


def _with_defaults(source: Source, function: Function, names: list[str]) -> dict[str, str]:
    """The parameters as they are declared, without types."""
    defaults = [source.code(default) for default in function.args.defaults]
    start = len(names) - len(defaults)
    return {name: name if n < start else f"{name}={defaults[n - start]}" for n, name in enumerate(names)}


def _decorator(
    name: str, torch: str, parameters: dict[str, str], padded: list[str], dimension: int, bucket: int, cut: bool
) -> str:
    """The code of the decorator."""
    lines = [f"size = {padded[0]}.shape[{dimension}]"] if cut else []
    for path in padded:
        sides = f"(0, 0) * ({path}.dim() - {dimension + 1}) + (0, -{path}.shape[{dimension}] % {bucket})"
        lines.append(f"{path} = {torch}.nn.functional.pad({path}, {sides})")
    returned = f"compiled({', '.join(parameters)})" + (f".narrow({dimension}, 0, size)" if cut else "")
    words = f"dimension {dimension} of {' and '.join(padded)} to a multiple of {bucket}"
    body = "\n        ".join([*lines, f"return {returned}"])
    return f'''def {name}(compiled):
    """Pads {words}{", and cuts the result to its size" if cut else ""}."""

    @{torch}.compiler.disable(recursive=False)
    def call({", ".join(parameters.values())}):
        {body}

    return call'''


def _with(source: Source, compiled: ast.expr, name: str, code: str, is_module: bool) -> str | None:
    """The text with the decorator, at the one compile that there is; a compiled module stays a module.  None if it has
    no name."""
    outer = source.parent(compiled)
    changes: dict[ast.AST, str | None]
    if isinstance(outer, ast.FunctionDef) and compiled in outer.decorator_list:
        changes = {compiled: f"{name}\n{' ' * outer.col_offset}@{source.code(compiled)}"}
    elif not is_module:
        changes = {compiled: f"{name}({source.code(compiled)})"}
    elif isinstance(outer, ast.Assign) and source.owns_lines(outer):
        net = source.code(outer.targets[0])
        changes = {outer: f"{source.code(outer)}\n{net}.forward = {name}({net}.forward)"}
    else:
        return None
    return source.changed(changes, [source.above(compiled, code)])


_EXAMPLES = (
    Example.script('''
          import torch

        +
        + def in_buckets(compiled):
        +     """Pads dimension 1 of x to a multiple of 8, and cuts the result to its size."""
        +
        +     @torch.compiler.disable(recursive=False)
        +     def call(x):
        +         size = x.shape[1]
        +         x = torch.nn.functional.pad(x, (0, 0) * (x.dim() - 2) + (0, -x.shape[1] % 8))
        +         return compiled(x).narrow(1, 0, size)
        +
        +     return call
        +
        +
        + @in_buckets
          @torch.compile(backend="eager")
          def f(x):
              return x * 2

          for size in (4, 5):
              f(torch.ones(2, size))
    '''),
    Example.script('''
          import torch

          class Net(torch.nn.Module):
              def forward(self, x):
                  return x.sum(1)

        +
        + def in_buckets(compiled):
        +     """Pads dimension 1 of x to a multiple of 8."""
        +
        +     @torch.compiler.disable(recursive=False)
        +     def call(x):
        +         x = torch.nn.functional.pad(x, (0, 0) * (x.dim() - 2) + (0, -x.shape[1] % 8))
        +         return compiled(x)
        +
        +     return call
        +
        +
          net = torch.compile(Net(), backend="eager")
        + net.forward = in_buckets(net.forward)
          for size in (4, 5):
              net(torch.ones(2, size))
    '''),
)
RULE = Rule("sizes in buckets", ("recompilation",), _propose, ("recompile-size",), examples=_EXAMPLES)
