"""The text of a kernel as something that may be executed: only what the language of kernels has.

A store may come from elsewhere, and Triton's interpreter executes a kernel as Python.  So a kernel may use the names of
Triton's language, of Inductor's helpers and its own, and nothing else: no import, no private name, no method that a
block does not have.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

_STATEMENTS = (
    ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.For, ast.While, ast.If, ast.Return, ast.Pass, ast.Break,
    ast.Continue, ast.Assert,
)  # fmt: skip
_EXPRESSIONS = (
    ast.Name, ast.Attribute, ast.Call, ast.keyword, ast.Constant, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare,
    ast.Subscript, ast.Slice, ast.Tuple, ast.List, ast.IfExp, ast.Starred, ast.JoinedStr, ast.FormattedValue,
    ast.operator, ast.unaryop, ast.boolop, ast.cmpop, ast.expr_context,
)  # fmt: skip
_BUILTINS = ("range", "min", "max", "abs", "int", "float", "bool", "len")
_OF_BLOCKS = frozenset([
    "to", "cast", "T", "shape", "dtype", "type", "value", "element_ty", "scalar", "primitive_bitwidth", "trans", "permute",
    "reshape", "view", "broadcast_to", "expand_dims", "split", "ravel", "sum", "max", "min", "argmax", "argmin", "reduce",
    "associative_scan", "cumsum", "cumprod", "sort", "softmax", "sigmoid", "flip", "xor_sum", "cdiv", "is_floating", "is_int",
    "numel", "rank", "logical_and", "logical_or", "abs", "advance", "gather", "histogram", "load", "store",
])  # fmt: skip
_MODULES = ("tl", "tl.math", "tl.extra", "tl.extra.cuda", "triton", "triton.language", "tl_math", "libdevice", "triton_helpers", "tl.PropagateNan")  # fmt: skip


_OF_TRITON = ("cdiv", "next_power_of_2", "language")
_CLOSED = ("tl.core", "tl.standard", "tl.semantic", "triton.language.core", "triton.language.standard", "triton.language.semantic")  # fmt: skip


class NotAKernel(ValueError):
    """The text has something that no kernel has; the message names it and its line."""


def kernel_tree(text: str) -> ast.Module:
    """The functions of a kernel's text, at their lines, without decorators, imports and what Inductor runs beside them.

    Raises NotAKernel.
    """
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError) as error:
        raise NotAKernel(f"The kernel is not Python: {error}.") from None
    kept: list[ast.stmt] = []
    for statement in tree.body:
        if isinstance(statement, ast.FunctionDef):
            statement.decorator_list, statement.returns = [], None
            kept.append(statement)
        elif isinstance(statement, ast.Assign | ast.AnnAssign):
            kept.append(statement)
    for statement in kept:
        _check(statement)
    return ast.Module(kept, [])


def _check(node: ast.AST) -> None:
    for each in ast.walk(node):
        line = getattr(each, "lineno", 0)
        if isinstance(each, ast.FunctionDef | ast.arguments | ast.arg):
            continue
        if not isinstance(each, (*_STATEMENTS, *_EXPRESSIONS)):
            raise NotAKernel(f"Line {line} of the kernel has what no kernel has: {type(each).__name__}.")
        if isinstance(each, ast.Name) and each.id.startswith("__"):
            raise NotAKernel(f"Line {line} of the kernel uses the name {each.id}.")
        if isinstance(each, ast.Attribute):
            _check_attribute(each, line)


def _check_attribute(node: ast.Attribute, line: int) -> None:
    text, value = ast.unparse(node), ast.unparse(node.value)
    if (value == "triton" and node.attr not in _OF_TRITON) or node.attr.startswith("_") or text in _CLOSED:
        raise NotAKernel(f"Line {line} of the kernel uses {text}, which no kernel has.")
    if value not in _MODULES and node.attr not in _OF_BLOCKS:
        raise NotAKernel(f"Line {line} of the kernel uses .{node.attr}, which no block has.")


def builtin_names() -> Mapping[str, object]:
    """The only built-in functions that a kernel gets."""
    import builtins

    return {name: getattr(builtins, name) for name in (*_BUILTINS, "tuple", "list", "str")}


def names_of_statement(node: ast.stmt) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names that a statement assigns, and those that it reads."""
    head = node.iter if isinstance(node, ast.For) else node.test if isinstance(node, ast.While | ast.If) else node
    written = [each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)]
    if isinstance(node, ast.For):
        written = [each.id for each in ast.walk(node.target) if isinstance(each, ast.Name)]
    elif isinstance(node, ast.While | ast.If):
        written = []
    read = [each.id for each in ast.walk(head) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load)]
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        read.append(node.target.id)
    return tuple(dict.fromkeys(written)), tuple(dict.fromkeys(read))
