"""Reads what ``torch.export.save`` writes; its graph is printed as PyTorch prints it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any

from irscope.ir.artifacts.contents import Artifact, ArtifactError
from irscope.ir.artifacts.reading import MOST_NAME, digest_of, json_of, members, number_of, text_of
from irscope.usercode.user_files import is_torch_file
from irscope.vocabulary.dtypes import SHORT


def read_program(path: str, artifact: Artifact) -> None:
    """Fills in what is in a program.  Raises ArtifactError."""
    artifact.digest, artifact.size = digest_of(path), os.path.getsize(path)
    for name, data in members(path, artifact, re.compile(r"/models/[^/]+\.json$")):
        facts = json_of(data)
        if not isinstance(facts, dict):
            raise ArtifactError(f"{name} is not JSON")
        if isinstance(facts.get("torch_version"), str):
            artifact.made_for["PyTorch"] = facts["torch_version"]
        try:
            artifact.constraints += _constraints(facts)
            _take_program(facts, artifact)
            printed = "\n".join(_printed("GraphModule", facts["graph_module"]["graph"], ""))
            artifact.graphs[os.path.basename(name)] = f"{printed}\n"
        except (KeyError, TypeError, ValueError, IndexError, AttributeError, RecursionError) as error:
            artifact.problems.append(f"the graph of the program is not as expected ({type(error).__name__})")


_MOST_STACK = 4000
_OF_NUMBER = (
    "", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "complex32", "complex64", "complex128",
    "bool", "bfloat16",
)  # fmt: skip
"""The dtypes of torch.export's schema by their numbers."""


def _take_program(facts: Any, artifact: Artifact) -> None:
    """The inputs of the user and the lines of each node, from the graph of a program."""
    graph, ranges = facts["graph_module"]["graph"], facts["range_constraints"]
    for spec in facts["graph_module"]["signature"]["input_specs"]:
        weight = spec.get("parameter") or spec.get("buffer")
        argument = weight["arg"] if weight else spec.get("user_input", {}).get("arg", {}).get("as_tensor")
        if argument is None:
            continue
        name = (weight.get("parameter_name") or weight.get("buffer_name")) if weight else argument["name"]
        facts_of_tensor = _of_program(graph["tensor_values"][argument["name"]], ranges)
        (artifact.weights if weight else artifact.inputs)[text_of(name)[:MOST_NAME]] = facts_of_tensor
    for node in graph["nodes"]:
        model = _MODEL.search(text_of(node.get("metadata", {}).get("nn_module_stack")))
        frames = _frames(node)
        if model and frames and not artifact.functions:
            artifact.functions.append((f"{model[1]}.{frames[0][2]}", frames[0][0], 0))
        artifact.code += frames


def _constraints(facts: Any) -> Iterator[str]:
    """The ranges of a program's sizes, and the guards that it checks at each call."""
    for symbol, limits in facts["range_constraints"].items():
        low, high = limits.get("min_val"), limits.get("max_val")
        before, after = ("" if low is None else f"{low} <= "), ("" if high is None else f" <= {high}")
        if before or after:
            yield f"{before}{symbol}{after}"[:MOST_NAME]
    yield from (code[:MOST_NAME] for code in facts.get("guards_code") or () if isinstance(code, str))


def _frames(node: Any) -> list[tuple[str, int, str, str]]:
    trace = text_of(node.get("metadata", {}).get("stack_trace"))[:_MOST_STACK]
    return [(one["file"], int(one["line"]), one["function"], one["code"]) for one in _FRAME.finditer(trace)]


def _of_program(tensor: Any, ranges: Any) -> dict[str, str]:
    """A tensor of a program as cache keys print it."""
    shape = ", ".join(_extent(one, ranges) for one in tensor["sizes"])
    stride = ", ".join(str(one.get("as_int", "..")) for one in tensor["strides"])
    return {
        "shape": f"torch.Size([{shape}])",
        "dtype": f"torch.{_OF_NUMBER[tensor['dtype']]}",
        "device": f"device(type={text_of(tensor['device']['type'])!r})",
        "stride": f"({stride}{',' * (len(tensor['strides']) == 1)})",
    }


_SYMBOL = re.compile(r"(?:Symbol|Integer)\('?(\w+)'?[^()]*\)")
_MODEL = re.compile(r"L__self__,,[\w.]*?(\w+)(?:;|$)")
_FRAME = re.compile(r'File "(?P<file>[^"\n]+)", line (?P<line>\d{1,7}), in (?P<function>[^\n]+)\n +(?P<code>[^\n]+)')


def _extent(size: Any, ranges: Any) -> str:
    if "as_int" in size:
        return str(number_of(size["as_int"]))
    text = size["as_expr"]["expr_str"]
    symbol = _SYMBOL.fullmatch(text)
    limits = ranges.get(symbol[1] if symbol else text, {})
    low, high = limits.get("min_val"), limits.get("max_val")
    return f"{'' if low is None else number_of(low)}..{'' if high is None or high >= 1 << 31 else number_of(high)}"


# --- its graph, as `torch.fx.GraphModule.print_readable` prints it ----------------------------------------------------------


def _printed(name: str, graph: Any, before: str) -> Iterator[str]:
    """The class of a graph, and those of the graphs of its higher-order operators in it."""
    inner: list[tuple[str, Any]] = []
    inputs = ", ".join(_declared(_code(one, inner), graph) for one in graph["inputs"])
    yield f"{before}class {name}(torch.nn.Module):"
    yield f"{before}    def forward(self, {inputs}):"
    place = None
    for number, node in enumerate(graph["nodes"]):
        if (origin := _origin(node)) not in (place, None):
            yield f"{before}        # File: {origin}"
        place, known = origin, len(inner)
        lines = _statements(node, number, graph, inner)
        yield from (
            f"{before}        {line}" for line in [*(f"{one} = self.{one}" for one, _ in inner[known:]), *lines]
        )
    yield f"{before}        return ({''.join(f'{_code(one, inner)}, ' for one in graph['outputs'])})"
    for each, subgraph in inner:
        yield from _printed(each, subgraph, f"{before}    ")


def _statements(node: Any, number: int, graph: Any, inner: list[tuple[str, Any]]) -> list[str]:
    """A node, and what is taken out of its result if it gives several."""
    keywords = [f"{_text(one['name'])} = " if one.get("kind") == 2 else "" for one in node["inputs"]]
    words = [keyword + _code(one["arg"], inner) for keyword, one in zip(keywords, node["inputs"], strict=True)]
    results = _names(node["outputs"])
    own = _text(node.get("name")) or (results[0] if len(results) == 1 else f"several_{number}")
    lines = [f"{_declared(own, graph)} = {_text(node['target']).removeprefix('_')}({', '.join(words)})"]
    return (
        lines
        if results == [own]
        else lines + [f"{_declared(one, graph)} = {own}[{at}]" for at, one in enumerate(results)]
    )


def _declared(name: str, graph: Any) -> str:
    """A value with its dtype and size, if it is a tensor, or its expression."""
    if tensor := graph["tensor_values"].get(name):
        dtype = _OF_NUMBER[tensor["dtype"]]
        return f'{name}: "{SHORT.get(dtype, dtype)}[{", ".join(map(_symbolic, tensor["sizes"]))}]"'
    size = graph["sym_int_values"].get(name)
    return f'{name}: "Sym({_symbolic(size)})"' if size else name


def _symbolic(size: Any) -> str:
    return (
        str(size["as_int"]) if "as_int" in size else _text(_SYMBOL.sub(r"\1", size["as_expr"]["expr_str"]), "., ()<>=")
    )


def _names(value: Any) -> list[str]:
    """The names of what a node gives."""
    if isinstance(value, list):
        return [name for each in value for name in _names(each)]
    if isinstance(value, dict):
        name = value.get("name", value.get("as_name"))
        return [_text(name)] if isinstance(name, str) else [one for each in value.values() for one in _names(each)]
    return []


def _code(value: Any, inner: list[tuple[str, Any]], kind: str = "") -> str:
    """An argument as code; the graphs in it are taken into ``inner``."""
    if isinstance(value, list):
        return f"[{', '.join(_code(each, inner, kind) for each in value)}]"
    if not isinstance(value, dict):
        known = {"as_none": "None", "as_scalar_type": f"torch.{_OF_NUMBER[value]}" if kind == "as_scalar_type" else ""}
        return known.get(kind) or repr(value)
    if kind == "as_graph":
        inner.append((_text(value["name"]), value["graph"]))
    if kind == "as_device":
        return f"device(type={_text(value['type'])!r})"
    if isinstance(name := value.get("name", value.get("as_name")), str):
        return _text(name)
    (kind, part), *_ = value.items()
    return _code(part, inner, kind)


def _text(value: Any, kept: str = ".") -> str:
    """A name as code, or with more characters that are kept an expression."""
    return re.sub(rf"[^\w{kept}]+", "_", text_of(value)[:_MOST_STACK])


def _origin(node: Any) -> str | None:
    """The innermost line that is not of PyTorch, as PyTorch prints it; else one of PyTorch."""
    frames = [one for one in _frames(node) if not one[0].startswith("<")]
    own = [one for one in frames if not is_torch_file(one[0])]
    return next(
        (f"{file}:{line} in {function}, code: {code}" for file, line, function, code in (own or frames)[::-1]), None
    )
