"""NumPy, storages, sparse tensors: data that is not a plain tensor."""

from __future__ import annotations

import ast
import dataclasses

from irscope.fixing.advice import randomness
from irscope.fixing.advice.common import around, custom_op, hoist, pass_in, replacing, some
from irscope.fixing.advice.model import Advice, Option
from irscope.fixing.advice.spot import Spot
from irscope.fixing.source import bound_names, loaded_names

_MADE_ONCE = "It is then made once."


def numpy_function(spot: Spot) -> Advice:
    """Advice for a NumPy function without a torch counterpart."""
    if spot.call is not None and spot.qualified(spot.call.func).startswith("numpy.random."):
        return randomness.number_drawn(spot)
    what = f"{spot.short(spot.expression)} is a NumPy function that Dynamo cannot trace"
    why = "Dynamo turns NumPy code into torch operations; this function has no torch equivalent."
    return Advice(what, why, numpy_options(spot))


def array_method(spot: Spot) -> Advice:
    """``array.tobytes()`` and other methods of NumPy arrays without a torch counterpart."""
    call = spot.call
    what = f"{spot.short(spot.expression)} is a method of NumPy arrays that Dynamo cannot trace"
    why = "Dynamo turns NumPy code into torch operations; this method has no torch equivalent."
    outside = Option("Return the array, and call the method in the caller")
    passed = pass_in(spot, call) if not spot.alone else None
    return Advice(what, why, some(hoist(spot, call), passed or outside))


def numpy_options(spot: Spot) -> tuple[Option, ...]:
    """Ways to get NumPy code out of the graph, from the simplest on."""
    call = spot.call
    if spot.alone and call is not None:
        outside = around(spot, "Do it in the caller, with what the compiled code returns", "", after=spot.text(call))
        return (outside,)
    return some(hoist(spot, call), custom_op(spot, call))


def fake_tensor_failure(spot: Spot) -> Advice:
    """An operator that fails on the tensors without values that tracing uses; NumPy arrays of objects among them."""
    name = spot.qualified(spot.call.func) if spot.call is not None else ""
    if name.startswith("numpy."):
        what = f"{spot.short(spot.call)} makes an array that has no tensor equivalent"
        return Advice(what, "Its elements are not all numbers.", some(hoist(spot, spot.call, _MADE_ONCE)))
    what = f"{spot.short(spot.expression)} fails on the shapes, dtypes or devices that it gets here"
    option = None
    if spot.call is not None and not name.startswith("torch."):
        option = custom_op(spot, spot.call)
    return Advice(what, spot.cause.explanation, some(option))


_MEMORY = ("storage", "untyped_storage", "storage_offset", "data_ptr")


def asks_for_memory(node: ast.AST | None) -> ast.Call | None:
    """The call in an expression that asks where a tensor is: ``x.data_ptr() % 16``."""
    for inner in ast.walk(node) if node is not None else ():
        if isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute) and inner.func.attr in _MEMORY:
            return inner
    return None


def storage(spot: Spot) -> Advice:
    """Addresses and storages of tensors."""
    call = asks_for_memory(spot.expression)
    what = f"{spot.short(call or spot.expression)} asks for the memory of a tensor, which does not exist while tracing"
    why = "The compiler decides later where tensors are placed, or that they are never made."
    if call is not None and isinstance(call.func, ast.Attribute) and call.func.attr == "storage":
        flat, caveat = f"{spot.tight(call.func.value)}.flatten()", "For contiguous tensors that are not views."
        option = replacing(spot, call, flat, "Use the elements, not the storage", caveat)
        return Advice(what, why, (option,))
    if spot.alone:
        return Advice(
            what, why, (around(spot, "Ask for it in the caller", spot.text(call or spot.node or ast.Pass())),)
        )
    passed = pass_in(spot, spot.expression)
    return Advice(what, why, some(passed or Option("Ask for it in the caller, and pass in what it decides")))


def sparse(spot: Spot) -> Advice:
    """Advice for a sparse tensor in compiled code."""
    what = f"{spot.short(spot.expression)} uses a sparse tensor, which cannot be put into a graph"
    why = "Compiled graphs hold dense tensors only."
    call = spot.call
    option = None
    if call is None:
        return Advice(what, why)
    parts = _parts_of_sparse(spot, call)
    if isinstance(call.func, ast.Attribute) and call.func.attr in ("to_sparse", "to_sparse_csr"):
        if not call.args and parts is None and not _read_as_sparse(spot):
            text = spot.text(call.func.value)
            option = replacing(spot, call, text, "Stay dense inside of compiled code", "Uses more memory.")
    elif isinstance(parent := spot.parent(call), ast.Attribute) and parent.attr == "to_dense":
        dense_call = spot.parent(parent)
        option = hoist(spot, dense_call, _MADE_ONCE) if isinstance(dense_call, ast.Call) else None
    dense = _passed_dense(spot, parts) if parts is not None else None
    apart = Option("Do the sparse part in the caller, and pass dense tensors to the compiled code")
    return Advice(what, why, some(option, dense or apart))


def _passed_dense(spot: Spot, parts: ast.Call) -> Option | None:
    """The values or indices as an argument: a copy, since Dynamo does not accept a view of a sparse tensor."""
    option = pass_in(spot, parts, "The clone is needed: without it, the argument is a view of a sparse tensor.")
    if option is None:
        return None
    text = spot.text(parts)
    return dataclasses.replace(option, code=option.code.replace(text, f"{text}.clone()", 1))


_OF_SPARSE = ("values", "indices", "coalesce", "_values", "_indices", "crow_indices", "col_indices", "is_coalesced")


def _parts_of_sparse(spot: Spot, call: ast.Call) -> ast.Call | None:
    """``x.to_sparse().coalesce().values()`` for ``x.to_sparse()`` in it; None if no such part is taken at once."""
    whole = call
    while isinstance(attribute := spot.parent(whole), ast.Attribute) and attribute.attr in _OF_SPARSE:
        outer = spot.parent(attribute)
        if not isinstance(outer, ast.Call):
            break
        whole = outer
    last = whole.func.attr if isinstance(whole.func, ast.Attribute) else ""
    return whole if last in _OF_SPARSE and last != "coalesce" else None


def _read_as_sparse(spot: Spot) -> bool:
    """Whether what is made here is taken apart later, by methods that dense tensors do not have."""
    statement = spot.statement
    if spot.call is not None and isinstance(parent := spot.parent(spot.call), ast.Attribute):
        return parent.attr in _OF_SPARSE
    names = bound_names(statement) if isinstance(statement, ast.Assign) else set[str]()
    return any(
        isinstance(node, ast.Attribute) and node.attr in _OF_SPARSE and names & set(loaded_names(node.value))
        for function in spot.functions[:1]
        for node in ast.walk(function)
    )


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
    option = None
    if method == "resize_":
        sizes = [a for arg in call.args for a in (arg.elts if isinstance(arg, (ast.Tuple, ast.List)) else [arg])]
        shape = ", ".join(spot.text(size) for size in sizes)
        count = " * ".join(f"({spot.text(s)})" if isinstance(s, ast.BinOp) else spot.text(s) for s in sizes)
        code = f"{receiver.id} = {receiver.id}.flatten()[: {count}].view({shape})"
        caveat = "For a smaller shape; the tensor of the caller keeps its shape."
        option = replacing(spot, call, code, "Rebind the name to a part of it", caveat)
    elif method == "set_" and len(given) == 4:
        code = f"{receiver.id} = {given[0]}.as_strided({given[2]}, {given[3]}, {given[1]})"
        option = replacing(
            spot, call, code, "Rebind the name to that part", "For a tensor as the source, not a storage."
        )
    elif method == "set_" and len(given) == 1:
        option = replacing(spot, call, f"{receiver.id} = {given[0]}", "Bind the name to the other tensor")
    return Advice(what, why, some(option), receiver)


def non_tensor_result(spot: Spot) -> Advice:
    """A call that is put into the graph, but does not give a tensor."""
    call = spot.call
    name = spot.qualified(call.func) if call is not None else ""
    method = call.func.attr if call is not None and isinstance(call.func, ast.Attribute) else ""
    if call is not None and name == "copy.copy" and len(call.args) == 1:
        code = f"{spot.tight(call.args[0])}.view_as({spot.text(call.args[0])})"
        what = f"{spot.short(call)} copies the Python object of a tensor"
        option = replacing(spot, call, code, "Take a view of the same data", "Or `.clone()` for a separate copy.")
        return Advice(what, "Its inner state is not in the graph.", (option,), call.args[0])
    if method in _MEMORY:
        return storage(spot)
    what = f"{spot.short(spot.expression)} returns something that is not a tensor"
    if name.startswith(("torch.cuda.", "torch.mps.", "torch.xpu.")):
        why = "It asks the device, and the answer is not part of a graph."
        return Advice(what, why, some(pass_in(spot, call)))
    why = "What an operator of the graph returns must be a tensor, a number or a collection of these."
    return Advice(what, why, some(hoist(spot, call, _MADE_ONCE)))


def array_of_objects(spot: Spot) -> Advice:
    """NumPy arrays of objects or strings."""
    what = f"{spot.short(spot.expression or spot.statement)} uses an array that does not hold numbers"
    why = "Dynamo traces NumPy arrays as tensors, and a tensor holds numbers."
    out = Option("Keep arrays of objects and strings out of the compiled code", "", "A list or a tuple can stay.")
    node = spot.call or (spot.expression if isinstance(spot.expression, ast.Attribute) else None)
    return Advice(what, why, some(hoist(spot, node, _MADE_ONCE), out))
