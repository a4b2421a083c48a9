"""Sizes that vary, padded to the next bucket before the compiled call, and the result cut to its size.

For code that a dynamic size does not help: a loop over it, or a shape that is written down.  It comes after `sizes`.
What is padded is outside of the compiled code, in a decorator; `irscope.runner.evidence` compares what the decorated
function gives, so the trial says whether zeros at the end change anything.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst
from irscope.protocol import Finding, RecompilationFacts

from irscope_server.fixing.families.sizes import compiling
from irscope_server.fixing.imports import above
from irscope_server.fixing.marking import varying_sizes
from irscope_server.fixing.model import Family, Proposal
from irscope_server.fixing.source import Source, statements

_TITLE = "Pad the size to a multiple of {bucket} before the call{cut}"
_CUT = ", and cut the result"
_CAVEAT = "What is padded is computed, too. Sizes up to {bucket} share one compile; each further multiple is one more compile."
_LEAST = 8


def _propose(source: Source, finding: Finding) -> Iterator[Proposal]:
    torch, node = source.module_name("torch"), source.at(finding.range)
    function = source.function(node) if node is not None else None
    compiled = compiling(source)
    if torch is None or function is None or len(compiled) != 1 or isinstance(source.parent(compiled[0]), cst.Expr):
        return
    names = _parameters(source, function)
    varying = dict(varying_sizes(finding))
    dimensions = {one for found in varying.values() for one in found}
    if names is None or not varying or not varying.keys() <= set(names) or len(dimensions) != 1:
        return
    bucket = _bucket(finding)
    if bucket is None:
        return
    for cut in (_CUT, ""):
        made = _decorator(source, function, torch, names, list(varying), dimensions.copy().pop(), bucket, bool(cut))
        text = _with(source, compiled[0], made, _is_method(source, function))
        if text is not None:
            yield Proposal(_TITLE.format(bucket=bucket, cut=cut), _CAVEAT.format(bucket=bucket), text)


def _parameters(source: Source, function: cst.FunctionDef) -> list[str] | None:
    """The parameters that a caller gives; None if there are others than plain ones."""
    params = function.params
    if params.kwonly_params or params.star_kwarg is not None or isinstance(params.star_arg, cst.Param):
        return None
    names = [one.name.value for one in (*params.posonly_params, *params.params)]
    return names[1:] if _is_method(source, function) else names


def _is_method(source: Source, function: cst.FunctionDef) -> bool:
    return isinstance(source.parent(source.parent(function) or function), cst.ClassDef)


def _bucket(finding: Finding) -> int | None:
    """The power of two that all sizes fit in that compiles were made for; None if they are not told, or one is 0 or 1,
    which padding changes most of all."""
    sizes = finding.facts.sizes if isinstance(finding.facts, RecompilationFacts) else ()
    return max(_LEAST, 1 << (max(sizes) - 1).bit_length()) if sizes and min(sizes) > 0 else None


def _decorator(
    source: Source, function: cst.FunctionDef, torch: str, names: list[str], padded: list[str], dimension: int,
    bucket: int, cut: bool,
) -> tuple[str, str]:  # fmt: skip
    """The name of a decorator, and its text."""
    name, call = source.fresh("in_buckets"), ", ".join(names)
    own = [one for one in (*function.params.posonly_params, *function.params.params) if one.name.value in names]
    given = ", ".join(source.code(one.with_changes(comma=cst.MaybeSentinel.DEFAULT, annotation=None)) for one in own)
    whole = "(0, 0) * " + (f"({{0}}.dim() - {dimension + 1})" if dimension else "({0}.dim() - 1)")
    pads = "".join(
        f"        {one} = {torch}.nn.functional.pad({one}, {whole.format(one)} + (0, -{one}.shape[{dimension}] % {bucket}))\n"
        for one in padded
    )
    size = f"        size = {padded[0]}.shape[{dimension}]\n" if cut else ""
    end = f".narrow({dimension}, 0, size)" if cut else ""
    words = ", and cuts the result to its size" if cut else ""
    return name, (
        f"def {name}(compiled):\n"
        f'    """Pads dimension {dimension} of {" and ".join(padded)} to a multiple of {bucket}{words}."""\n\n'
        f"    @{torch}.compiler.disable(recursive=False)\n"
        f"    def call({given}):\n"
        f"{size}{pads}"
        f"        return compiled({call}){end}\n\n"
        f"    return call\n"
    )


def _with(source: Source, compiled: cst.CSTNode, made: tuple[str, str], is_module: bool) -> str | None:
    """The text with the decorator, at the one compile that there is; a compiled module stays a module.  None if it has
    no name."""
    name, text = made
    decorator = compiled if isinstance(compiled, cst.Decorator) else source.parent(compiled)
    function = source.parent(decorator) if isinstance(decorator, cst.Decorator) else None
    if isinstance(decorator, cst.Decorator) and isinstance(function, cst.FunctionDef):
        one = cst.Decorator(cst.Name(name), leading_lines=decorator.leading_lines)
        where = list(function.decorators).index(decorator)
        now = [*function.decorators]
        now[where : where + 1] = [one, decorator.with_changes(leading_lines=[])]
        return above(source, function, text, {function: function.with_changes(decorators=now)})
    assert isinstance(compiled, cst.Call)
    if not is_module:
        call = cst.Call(cst.Name(name), [cst.Arg(compiled)])
        return above(source, compiled, text, {compiled: call})
    line, assign = source.statement(compiled), source.parent(compiled)
    if not isinstance(line, cst.SimpleStatementLine) or not isinstance(assign, cst.Assign) or len(line.body) > 1:
        return None
    net = source.code(assign.targets[0].target)
    after = statements(f"{net}.forward = {name}({net}.forward)\n")
    return above(source, compiled, text, {line: cst.FlattenSentinel([line, *after])})


FAMILY = Family("sizes in buckets", ("recompilation",), _propose, ("recompile-size",))
