"""Which special methods Python calls for an expression."""

from __future__ import annotations

import ast


def _names(words: str) -> frozenset[str]:
    return frozenset(f"__{word}__" for word in words.split())


_ARITHMETIC = _names("""
add and divmod floordiv lshift matmul mod mul or pow radd rand rdivmod rfloordiv rlshift rmatmul rmod rmul ror rpow rrshift
rshift rsub rtruediv rxor sub truediv xor
""")
_BY_NODE: dict[type[ast.AST], frozenset[str]] = {
    ast.Attribute: _names("get getattr getattribute"),
    ast.BinOp: _ARITHMETIC | _names("torch_function torch_dispatch array_function array_ufunc"),
    ast.BoolOp: _names("bool len"),
    ast.Compare: _names("contains eq ge gt iter le len lt ne getitem bool"),
    ast.If: _names("bool len"),
    ast.IfExp: _names("bool len"),
    ast.Starred: _names("iter next len getitem"),
    ast.Subscript: _names("class_getitem getitem missing"),
    ast.UnaryOp: _names("abs bool invert len neg pos"),
    ast.comprehension: _names("bool getitem iter len next"),
}
_OF_ARGUMENTS = _names("""
abs array array_function array_ufunc bool bytes call ceil complex contains copy deepcopy dir divmod eq float floor format
fspath ge getattr getattribute getitem gt hash index int iter le len lt next repr reversed round str torch_dispatch
torch_function trunc
""")
"""What a function may call on what it is given: to show it, to count it, to compare it."""
_TEXTS = _names("format repr str")
SPECIAL = frozenset().union(*_BY_NODE.values(), _OF_ARGUMENTS)


def operands(node: ast.AST) -> tuple[list[ast.expr], frozenset[str]]:
    """The parts of an expression whose special methods it calls by itself, and which methods these may be."""
    methods = _BY_NODE.get(type(node), frozenset())
    if isinstance(node, ast.Call):
        return [*node.args, *(keyword.value for keyword in node.keywords)], _OF_ARGUMENTS
    if isinstance(node, ast.FormattedValue):
        return [node.value], _TEXTS
    if isinstance(node, (ast.Attribute, ast.Subscript, ast.Starred)):
        return [node.value], methods
    if isinstance(node, ast.UnaryOp):
        return [node.operand], methods
    if isinstance(node, (ast.If, ast.IfExp)):
        return [node.test], methods
    if isinstance(node, ast.comprehension):
        return [node.iter, *node.ifs], methods
    if isinstance(node, ast.Compare):
        return [node.left, *node.comparators], methods
    return ([node.left, node.right] if isinstance(node, ast.BinOp) else getattr(node, "values", [])), methods
