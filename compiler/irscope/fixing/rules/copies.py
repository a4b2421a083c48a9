"""``copy.deepcopy`` in forms that Dynamo traces."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from irscope.fixing.model import Example, Proposal, Rule
from irscope.fixing.source import Source, tight
from irscope.protocol import Finding, FixMethod

_LEAF = "A tensor that requires grad is a plain tensor after it."
_FORMS: dict[type[ast.expr] | None, str] = {
    ast.Dict: "{{key: {clone} for key, value in {copied}.items()}}",
    ast.List: "[{clone} for item in {copied}]",
    ast.Tuple: "tuple({clone} for item in {copied})",
}


def _propose(source: Source, finding: Finding) -> Iterator[Proposal]:
    torch = source.torch
    for call in source.on_line(finding.range.start.line, ast.Call):
        if not _copies(source, call) or len(call.args) != 1 or call.keywords:
            continue
        copied = call.args[0]
        form = _FORMS.get(_kind(source, copied))
        if form is None:
            yield from _of_object(source, call, torch)
        else:
            name = "value" if "value" in form else "item"
            clone = f"{name}.detach().clone() if isinstance({name}, {torch}.Tensor) else {name}"
            code = form.format(clone=clone, copied=tight(source.code(copied)))
            yield Proposal(FixMethod.CLONE_TENSORS, _LEAF, source.changed({call: code}))


def _of_object(source: Source, call: ast.Call, torch: str) -> Iterator[Proposal]:
    (copied,) = call.args
    text = source.code(copied)
    if isinstance(copied, ast.Attribute) and isinstance(copied.value, ast.Name) and copied.value.id == "self":
        clones = f"{{name: value.detach().clone() for name, value in {text}.named_parameters()}}"
        functional = f"functools.partial({torch}.func.functional_call, {text}, {clones})"
        changed = source.changed({call: functional}, source.importing("import functools"))
        yield Proposal("Call the module with copies of its parameters", "For a copy that is only called.", changed)
    if isinstance(call.func, ast.Attribute):
        yield Proposal(
            "Copy the object, and share what it holds", "A change of a tensor in place is then seen in both.",
            source.changed({call: f"{source.code(call.func.value)}.copy({text})"}),
        )  # fmt: skip
    changed = source.changed({call: tight(text)})
    yield Proposal("Use it without a copy", "For an object that is not changed after it.", changed)


def _kind(source: Source, copied: ast.expr) -> type[ast.expr] | None:
    """The display that a local name was made with, if it is assigned once; or the one that an argument is used as."""
    function = source.function(copied)
    if not isinstance(copied, ast.Name) or function is None:
        return type(copied)
    values, names = list[ast.expr](), {copied.id}
    for assign in source.all(ast.Assign, function):
        match assign:
            case ast.Assign(targets=[ast.Name(id=target)], value=value) if target == copied.id:
                values += [value] if not _copies(source, value) else []
            case ast.Assign(targets=[ast.Name(id=target)], value=ast.Call(args=[ast.Name(id=passed)], keywords=[])):
                names |= {target} if passed == copied.id else set()
    if values:
        return type(values[0]) if len(values) == 1 else None
    for entry in source.all(ast.Subscript, function.body):  # entries by texts, or by numbers
        match entry:
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=str() | int() as key)):
                if name in names:
                    return ast.Dict if isinstance(key, str) else ast.List
    return None


def _copies(source: Source, value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and source.full_name(value.func) == "copy.deepcopy"


_COPIES = 'state = {"h": x}\nsaved = copy.deepcopy(state)\nreturn saved["h"] + 1'
_EXAMPLES = (
    Example(
        _COPIES,
        _COPIES.replace(
            "copy.deepcopy(state)",
            "{key: value.detach().clone() if isinstance(value, torch.Tensor) else value for key, value in state.items()}",
        ),
        above="import copy",
    ),
    Example(
        "return x * copy.deepcopy(FACTORS)[0]",
        "return x * FACTORS[0]",
        above="import copy\n\nFACTORS = [torch.ones(4)]",
    ),
)
RULE = Rule("copies", ("graph-break",), _propose, examples=_EXAMPLES)
