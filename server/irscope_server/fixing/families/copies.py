"""``copy.deepcopy`` in forms that Dynamo traces."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst
import libcst.matchers as m
from irscope.protocol import Finding, FixMethod

from irscope_server.fixing.imports import with_import
from irscope_server.fixing.model import Family, Proposal
from irscope_server.fixing.source import Source

_COPY = m.Call(func=m.Attribute(attr=m.Name("deepcopy")) | m.Name("deepcopy"))
_LEAF = "A tensor that requires grad is a plain tensor after it."


def _propose(source: Source, finding: Finding) -> Iterator[Proposal]:
    torch = source.module_name("torch")
    for call in source.on_line(finding.range.start.line, cst.Call):
        if source.full_name(call.func) != "copy.deepcopy" or len(call.args) != 1 or torch is None:
            continue
        what = call.args[0].value
        made = _made(source, what)
        if isinstance(made, cst.Dict):
            yield _changed(source, call, f"{{key: {_copied('value', torch)} for key, value in {source.code(what)}.items()}}",
                           FixMethod.CLONE_TENSORS.title, _LEAF, FixMethod.CLONE_TENSORS)  # fmt: skip
        elif isinstance(made, (cst.List, cst.Tuple)):
            kind = ("[", "]") if isinstance(made, cst.List) else ("tuple(", ")")
            yield _changed(source, call, f"{kind[0]}{_copied('item', torch)} for item in {source.code(what)}{kind[1]}",
                           FixMethod.CLONE_TENSORS.title, _LEAF, FixMethod.CLONE_TENSORS)  # fmt: skip
        else:
            yield from _of_object(source, call, what, torch)


def _of_object(source: Source, call: cst.Call, what: cst.BaseExpression, torch: str) -> Iterator[Proposal]:
    text = source.code(what)
    if m.matches(what, m.Attribute(value=m.Name("self"))):
        clones = f"{{name: value.detach().clone() for name, value in {text}.named_parameters()}}"
        functional = f"functools.partial({torch}.func.functional_call, {text}, {clones})"
        yield Proposal(
            "Call the module with copies of its parameters", "For a copy that is only called.",
            with_import(source.changed({call: cst.parse_expression(functional)}), "functools"),
        )  # fmt: skip
    module = source.code(call.func).rpartition(".")[0]
    if module:
        yield _changed(source, call, f"{module}.copy({text})", "Copy the object, and share what it holds",
                       "A change of a tensor in place is then seen in both.")  # fmt: skip
    yield _changed(source, call, text, "Use it without a copy", "For an object that is not changed after it.")


def _copied(name: str, torch: str) -> str:
    return f"{name}.detach().clone() if isinstance({name}, {torch}.Tensor) else {name}"


def _changed(
    source: Source, call: cst.Call, text: str, title: str, caveat: str, method: FixMethod | None = None
) -> Proposal:
    return Proposal(title, caveat, source.changed({call: cst.parse_expression(text)}), method=method)


def _made(source: Source, what: cst.BaseExpression) -> cst.BaseExpression | None:
    """The display that a local name was made with, if it is assigned once; of an argument an empty one of its kind."""
    function = source.function(what)
    if not isinstance(what, cst.Name) or function is None:
        return what
    found = [
        one.value
        for one in m.findall(function, m.Assign(targets=[m.AssignTarget(target=m.Name(what.value))]))
        if isinstance(one, cst.Assign) and not m.matches(one.value, _COPY)
    ]
    return found[0] if len(found) == 1 else None if found else _as_used(source, function, what.value)


def _as_used(source: Source, function: cst.FunctionDef, name: str) -> cst.BaseExpression | None:
    """What an argument is, by how the function uses it or its copy: entries by texts, or by numbers."""
    copied = m.Assign(targets=[m.AssignTarget(target=m.Name())], value=m.Call(args=[m.Arg(value=m.Name(name))]))
    names = {
        name,
        *(source.code(cst.ensure_type(one, cst.Assign).targets[0].target) for one in m.findall(function, copied)),
    }
    for one in m.findall(function.body, m.Subscript(value=m.Name(), slice=[m.SubscriptElement(slice=m.Index())])):
        entry = cst.ensure_type(one, cst.Subscript)
        key = cst.ensure_type(entry.slice[0].slice, cst.Index).value
        if source.code(entry.value) in names and isinstance(key, (cst.SimpleString, cst.Integer)):
            return cst.Dict([]) if isinstance(key, cst.SimpleString) else cst.List([])
    return None


FAMILY = Family("copies", ("graph-break",), _propose)
