"""How a graph is drawn, in the graph panel and in the pictures of ``irscope graph``.

`scripts/generate.py` makes the panel's part (``extension/src/graph/model/looks.ts``) from this.  The patterns mean the
same to Python and to JavaScript.

Every colour is beside a text that says the same.  The palettes are such that people with any kind of colour vision can
tell the colours apart (M. Okabe, K. Ito: Color Universal Design, 2008; the scale is Cividis: J. Nuñez et al., PLOS ONE
13/7, 2018), lighter or darker by the kind of theme.
"""

from __future__ import annotations

import re

from irscope.vocabulary.records import dataclass

THEMES = ("light", "dark")
CATEGORIES = {
    "dark": ("#56b4e9", "#e69f00", "#2fbf96", "#f0e442", "#d98cba", "#f0814a", "#8f9bff", "#b7b7b7"),
    "light": ("#0072b2", "#c27800", "#00795a", "#8c7c00", "#a8457f", "#b84a00", "#4a55c4", "#6b6b6b"),
}
SCALE = {
    "dark": ("#3f5a9a", "#6b7287", "#948f78", "#c4ae60", "#fde737"),
    "light": ("#d8c94f", "#aa9c62", "#7c7b78", "#4a5a78", "#00224e"),
}
CHANGES = {
    "dark": {"added": "#2fbf96", "gone": "#f0814a", "changed": "#f0e442", "same": "#7f7f7f"},
    "light": {"added": "#00795a", "gone": "#b84a00", "changed": "#8c7c00", "same": "#8f8f8f"},
}

MANY_INPUTS = 12
"""From so many inputs on, those that belong to one module are drawn with it."""

MOST_NODES = 150
"""Boxes of a picture.  Graphviz takes seconds for so many, and minutes for a few times as many."""

OPERATION_TITLE = (
    r"(?:torch\._C\._nn\.|torch\._C\._|torch\.nn\.functional\.|torch\.|operator\.)?"
    r"(?:(?:aten|prims)\.(\w+)(?:\.\w+)?|(?:aten\.|prims\.)?(.*?)(?:\.(?:Tensor|default))?)"
)
"""A name of an operation; what people call it is in one of the two groups: ``addmm`` of ``aten.addmm.default``."""

PARAMETER = r"_(?:parameters|buffers)_|^[pb]_"
"""In the name of an input that is a parameter or a buffer: as Dynamo names it, or torch.export (``p_first_weight``)."""

INPUT_SCOPE = r"^[LlGg]_"
INPUT_PATH = r"_(?:modules|parameters|buffers)_"
"""What Dynamo's names of parameters begin with, and what is between the parts of their path."""


@dataclass(frozen=True)
class Family:
    """Operations of one colour.

    Args:
        colour: Number of the colour in `CATEGORIES`.
        pattern: Found in the names of its operations; empty if something else says what belongs to it.
    """

    name: str
    colour: int
    pattern: str = ""


INPUT = Family("input", 6)
CONSTANT = Family("parameter, constant", 7, r"(?:^|\.)const(?:ant)?(?:$|\.)")
OTHERS = Family("pointwise and others", 5)
FAMILIES = (
    INPUT,
    CONSTANT,
    Family(
        "matmul, convolution",
        0,
        r"(?:^|[._])(?:mm|bmm|addmm|baddbmm|linear|einsum|dot(?!_product)|_scaled_mm)\d*(?:$|[._])"
        r"|matmul|gemm|fullyconnected|conv(?!ert)",
    ),
    Family("attention", 1, r"attention"),
    Family(
        "normalization, reduction",
        2,
        r"norm|softmax|sum|mean|amax|amin|\bvar|prod|argm|pool|logsumexp|\bmvn|\brms\b"
        r"|(?:^|\.)reduce(?!_scatter|_precision)",
    ),
    Family(
        "view, layout",
        3,
        r"view|reshape|transpose|permute|expand|squeeze|slice|(?<!hlo\.)select|getitem|clone|contiguous|cat\b|concat|split"
        r"|unbind|(?:^|[._])t(?:$|[._])|alias|detach|as_strided|copy|to_copy|stack|chunk|(?:^|[._])size|broadcast|bitcast"
        r"|flatten",
    ),
    Family("indexing, random", 4, r"embedding|gather|scatter|index|rand|dropout|bernoulli|range|full|empty|iota"),
    OTHERS,
)
"""Chosen by the operation's name, in upper or lower case; the first that fits counts.

The names are those of all pipelines: ``aten.mean``, ``onnx.ReduceMean``, ``hlo.reduce``, ``tir.fused_matmul2_add``.
"""

_TITLE = re.compile(OPERATION_TITLE, re.ASCII)
_PARAMETER = re.compile(PARAMETER)
_INPUT_SCOPE, _INPUT_PATH = re.compile(INPUT_SCOPE), re.compile(INPUT_PATH)
_PATTERNS = [(family, re.compile(family.pattern, re.ASCII | re.IGNORECASE)) for family in FAMILIES if family.pattern]


def title_of(operation: str) -> str:
    """``addmm`` of ``aten.addmm.default``."""
    found = _TITLE.fullmatch(operation)
    return (found[1] or found[2] or operation) if found else operation


def input_name(name: str) -> str:
    """The end of Dynamo's names of parameters, which are whole paths: the end tells them apart."""
    parts = _INPUT_PATH.split(_INPUT_SCOPE.sub("", name))
    return parts[-1].removesuffix("_") if len(parts) > 1 else name


def family_of(kind: str, name: str, operation: str) -> Family | None:
    """What a node is coloured as; None: an output.

    Args:
        kind: ``placeholder``, ``get_attr``, ``output``, or of an operation anything else.
    """
    if kind == "output":
        return None
    if kind == "get_attr":
        return CONSTANT
    if kind == "placeholder":
        return CONSTANT if _PARAMETER.search(name) else INPUT
    return next((family for family, pattern in _PATTERNS if pattern.search(operation)), OTHERS)
