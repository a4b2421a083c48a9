"""NumPy, storages, sparse tensors: data that is not a plain tensor."""

from __future__ import annotations

import ast
import itertools

from irscope.fixing.advice import randomness
from irscope.fixing.advice.common import around, custom_op, hoist, pass_in, plain_rule, replacing, some
from irscope.fixing.advice.model import Advice, Option
from irscope.fixing.advice.spot import Spot
from irscope.fixing.source import bound_names, loaded_names
from irscope.usercode.bindings import last_word

_MADE_ONCE = "It is then made once."


def numpy_options(spot: Spot) -> tuple[Option, ...]:
    """Ways to get NumPy code out of the graph, from the simplest on."""
    if spot.alone and spot.call is not None:
        do = "Do it in the caller, with what the compiled code returns"
        return (around(spot, do, "", after=spot.text(spot.call)),)
    return some(hoist(spot, spot.call), custom_op(spot, spot.call))


numpy_call = plain_rule(
    "is a NumPy function that Dynamo cannot trace",
    "Dynamo turns NumPy code into torch operations; this function has no torch equivalent.",
    numpy_options,
)


def numpy_function(spot: Spot) -> Advice:
    """Advice for a NumPy function without a torch counterpart."""
    return randomness.number_drawn(spot) if spot.called.startswith("numpy.random.") else numpy_call(spot)


def fake_tensor_failure(spot: Spot) -> Advice:
    """An operator that fails on the tensors without values that tracing uses; NumPy arrays of objects among them."""
    if spot.called.startswith("numpy."):
        what = f"{spot.short(spot.call)} makes an array that has no tensor equivalent"
        return Advice(what, "Its elements are not all numbers.", some(hoist(spot, spot.call, _MADE_ONCE)))
    what = f"{spot.short(spot.expression)} fails on the shapes, dtypes or devices that it gets here"
    option = custom_op(spot, spot.call) if not spot.called.startswith("torch.") else None
    return Advice(what, spot.cause.explanation, some(option))


_MEMORY = ("storage", "untyped_storage", "storage_offset", "data_ptr")


def asks_for_memory(node: ast.AST | None) -> ast.Call | None:
    """The call in an expression that asks where a tensor is: ``x.data_ptr() % 16``."""
    for inner in ast.walk(node) if node is not None else ():
        match inner:
            case ast.Call(func=ast.Attribute(attr=word)) if word in _MEMORY:
                return inner
    return None


def storage(spot: Spot) -> Advice:
    """Addresses and storages of tensors."""
    call = asks_for_memory(spot.expression)
    what = f"{spot.short(call or spot.expression)} asks for the memory of a tensor, which does not exist while tracing"
    why = "The compiler decides later where tensors are placed, or that they are never made."
    if call is not None and last_word(call.func) == "storage" and isinstance(call.func, ast.Attribute):
        flat, caveat = f"{spot.tight(call.func.value)}.flatten()", "For contiguous tensors that are not views."
        option = replacing(spot, call, flat, "Use the elements, not the storage", caveat)
        return Advice(what, why, (option,))
    if spot.alone:
        return Advice(what, why, (around(spot, "Ask for it in the caller", spot.text(call or spot.node)),))
    decided = Option("Ask for it in the caller, and pass in what it decides")
    return Advice(what, why, (pass_in(spot, spot.expression) or decided,))


_OF_SPARSE = ("values", "indices", "coalesce", "_values", "_indices", "crow_indices", "col_indices", "is_coalesced")


def sparse(spot: Spot) -> Advice:
    """Advice for a sparse tensor in compiled code."""
    what = f"{spot.short(spot.expression)} uses a sparse tensor, which cannot be put into a graph"
    why = "Compiled graphs hold dense tensors only."
    call, option = spot.call, None
    if call is None:
        return Advice(what, why)
    parts = _parts_of_sparse(spot, call)
    match call, spot.source.parent(call):
        case ast.Call(func=ast.Attribute(value=value, attr="to_sparse" | "to_sparse_csr"), args=[]), _:
            if parts is None and not _read_as_sparse(spot, call):
                do = "Stay dense inside of compiled code"
                option = replacing(spot, call, spot.text(value), do, "Uses more memory.")
        case _, ast.Attribute(attr="to_dense") as attribute:
            dense = spot.source.parent(attribute)
            option = hoist(spot, dense, _MADE_ONCE) if isinstance(dense, ast.Call) else None
    # Dynamo does not accept a view of a sparse tensor as an argument.
    caveat = "The clone is needed: without it, the argument is a view of a sparse tensor."
    passed = pass_in(spot, parts, caveat, "{}.clone()")
    apart = Option("Do the sparse part in the caller, and pass dense tensors to the compiled code")
    return Advice(what, why, some(option, passed or apart))


def _parts_of_sparse(spot: Spot, call: ast.Call) -> ast.Call | None:
    """``x.to_sparse().coalesce().values()`` for ``x.to_sparse()`` in it; None if no such part is taken at once."""
    _, *methods = spot.methods(call)
    parts = list(itertools.takewhile(lambda outer: last_word(outer.func) in _OF_SPARSE, methods))
    return parts[-1] if parts and last_word(parts[-1].func) != "coalesce" else None


def _read_as_sparse(spot: Spot, call: ast.Call) -> bool:
    """Whether what is made here is taken apart later, by methods that dense tensors do not have."""
    if isinstance(parent := spot.source.parent(call), ast.Attribute):
        return parent.attr in _OF_SPARSE
    names = bound_names(spot.statement) if isinstance(spot.statement, ast.Assign) else set[str]()
    reads = spot.source.all(ast.Attribute, spot.functions[:1])
    return any(read.attr in _OF_SPARSE and names & set(loaded_names(read.value)) for read in reads)


def resized(spot: Spot) -> Advice:
    """``x.resize_(…)``, ``x.set_(…)``: a tensor whose shape or storage is changed in place."""
    call = spot.call
    what = f"{spot.short(spot.expression)} changes the shape or the storage of a tensor in place"
    why = "A graph gives each tensor one shape and one storage."
    if call is None or not isinstance(call.func, ast.Attribute):
        return Advice(what, why)
    receiver, method, given = call.func.value, call.func.attr, [spot.text(arg) for arg in call.args]
    if not isinstance(receiver, ast.Name) or not spot.alone:
        return Advice(what, why, (), receiver)
    if method == "resize_":
        sizes = [a for arg in call.args for a in (arg.elts if isinstance(arg, (ast.Tuple, ast.List)) else [arg])]
        shape = ", ".join(map(spot.text, sizes))
        count = " * ".join(f"({spot.text(s)})" if isinstance(s, ast.BinOp) else spot.text(s) for s in sizes)
        code, do = f"{receiver.id}.flatten()[: {count}].view({shape})", "Rebind the name to a part of it"
        caveat = "For a smaller shape; the tensor of the caller keeps its shape."
    elif method == "set_" and len(given) == 4:
        code, do = f"{given[0]}.as_strided({given[2]}, {given[3]}, {given[1]})", "Rebind the name to that part"
        caveat = "For a tensor as the source, not a storage."
    elif method == "set_" and len(given) == 1:
        code, do, caveat = given[0], "Bind the name to the other tensor", ""
    else:
        return Advice(what, why, (), receiver)
    return Advice(what, why, (replacing(spot, call, f"{receiver.id} = {code}", do, caveat),), receiver)


def non_tensor_result(spot: Spot) -> Advice:
    """A call that is put into the graph, but does not give a tensor."""
    call, name = spot.call, spot.called
    if call is not None and name == "copy.copy" and len(call.args) == 1:
        code = f"{spot.tight(call.args[0])}.view_as({spot.text(call.args[0])})"
        what = f"{spot.short(call)} copies the Python object of a tensor"
        option = replacing(spot, call, code, "Take a view of the same data", "Or `.clone()` for a separate copy.")
        return Advice(what, "Its inner state is not in the graph.", (option,), call.args[0])
    if call is not None and asks_for_memory(call) is call:
        return storage(spot)
    what = f"{spot.short(spot.expression)} returns something that is not a tensor"
    if name.startswith(("torch.cuda.", "torch.mps.", "torch.xpu.")):
        return Advice(what, "It asks the device, and the answer is not part of a graph.", some(pass_in(spot, call)))
    why = "What an operator of the graph returns must be a tensor, a number or a collection of these."
    return Advice(what, why, some(hoist(spot, call, _MADE_ONCE)))
