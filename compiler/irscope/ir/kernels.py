"""The kernels in Inductor's output code, and the user lines that each came from."""

from __future__ import annotations

import ast
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping

from irscope.ir.graphs import Graph
from irscope.protocol import Origin
from irscope.usercode.user_files import is_package_file, is_user_file
from irscope.vocabulary.records import dataclass

_LANGUAGES = {"cpp_pybinding": "cpp", "cpp": "cpp"}
_DEFINITION = re.compile(r"^(?P<name>\w+) = async_compile\.\w+\(", re.MULTILINE)
_QUOTES = re.compile(r"\'\'\'|\"\"\"")
# A comment, or the name of what is called; names inside of strings are not followed by a parenthesis.
_CALLED = re.compile(
    r"(?P<comment>#.*)|(?<![\w.])(?P<name>(?:extern_kernels|aten|torch\.ops)(?:\.[A-Za-z_]\w*)+)(?=\()"
)
_SOURCE_NODES = re.compile(r"#.*Source Nodes: \[(?P<nodes>[^\]]*)\]")
_HANDLES = re.compile(r"(?:#|//) \[Provenance debug handles\] (?P<handles>.*)$", re.MULTILINE)
_FRAME = re.compile(r'^\s*File "(?P<file>[^"]+)", line (?P<line>\d+)', re.MULTILINE)


@dataclass(frozen=True)
class KernelSource:
    """A kernel as it is in output code.  ``text`` is empty for an extern kernel: a call into a library, which is there
    ``calls`` times."""

    name: str
    language: str
    text: str
    calls: int = 1


def kernels_in(output_code: str) -> list[KernelSource]:
    """The kernels that output code defines (``name = async_compile.triton(…)``), then the extern ones that it calls.

    Output code that cannot be parsed has none.
    """
    parts = _definitions(output_code)
    if parts is None:
        return _kernels_in_tree(output_code)
    found: dict[str, KernelSource] = {}
    rest = []
    for text, definition in parts:
        if definition is not None:
            found.setdefault(definition.name, definition)
        else:
            rest.append(text)
    extern = Counter(name for text in rest for name in _extern_calls(text))
    return [*found.values(), *_called(extern)]


def _called(extern: Mapping[str, int]) -> Iterator[KernelSource]:
    for name, calls in extern.items():
        yield KernelSource(name, "extern", "", calls)


def _definitions(code: str) -> list[tuple[str, KernelSource | None]] | None:
    """Output code cut into the definitions of kernels and what is between, in their order; None if that
    cannot be told line by line.  The syntax tree of a thousand calls would take a second, and holds no more."""
    parts: list[tuple[str, KernelSource | None]] = []
    at = 0
    while match := _DEFINITION.search(code, at):
        opened = _QUOTES.search(code, match.end())
        newline = code.find("\n", match.end())
        end = newline
        if opened is not None and (newline < 0 or opened.start() < newline or "(\n" in match[0]):
            end = code.find(opened[0], opened.end())
            end = end if end < 0 else code.find("\n", end + 3)
        end = len(code) if end < 0 else end
        try:
            statement = ast.parse(code[match.start() : end]).body[0]
        except (SyntaxError, ValueError, RecursionError, IndexError):
            return None
        made = _made_by(statement.value) if isinstance(statement, ast.Assign) else None
        parts.append((code[at : match.start()], None))
        parts.append(("", KernelSource(match["name"], *made)) if made else (code[match.start() : end], None))
        at = end
    parts.append((code[at:], None))
    return None if any(_QUOTES.search(text) for text, kernel in parts if kernel is None) else parts


def _extern_calls(text: str) -> Iterator[str]:
    for match in _CALLED.finditer(text):
        if not match["comment"] and not match["name"].startswith("torch.ops.inductor."):
            yield match["name"]


def _kernels_in_tree(output_code: str) -> list[KernelSource]:
    try:
        tree = ast.parse(output_code)
    except (SyntaxError, ValueError, RecursionError):
        return []
    found: dict[str, KernelSource] = {}
    extern: Counter[str] = Counter()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and (made := _made_by(node.value)):
            found.setdefault(node.targets[0].id, KernelSource(node.targets[0].id, *made))
        elif isinstance(node, ast.Call) and (name := _extern_name(node)):
            extern[name] += 1
    return [*found.values(), *_called(extern)]


def _made_by(value: ast.expr) -> tuple[str, str] | None:
    if not (isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute)):
        return None
    if not (isinstance(value.func.value, ast.Name) and value.func.value.id == "async_compile"):
        return None
    texts = [arg.value for arg in value.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
    if not texts:
        return None
    method = value.func.attr
    return _LANGUAGES.get(method, method), max(texts, key=len).strip("\n") + "\n"


def _extern_name(call: ast.Call) -> str | None:
    name = _dotted(call.func) if isinstance(call.func, ast.Attribute) else ""
    if name.startswith(("extern_kernels.", "aten.")):
        return name
    # Any operation that Inductor does not generate code for, custom ones too; its own helpers are not kernels.
    if name.startswith("torch.ops.") and not name.startswith("torch.ops.inductor."):
        return name
    return None


def _dotted(expression: ast.expr) -> str:
    """``torch.ops.aten.mm.default``; of anything but names and their attributes the beginning is missing."""
    parts: list[str] = []
    while isinstance(expression, ast.Attribute):
        parts.append(expression.attr)
        expression = expression.value
    parts.append(expression.id if isinstance(expression, ast.Name) else "")
    return ".".join(reversed(parts))


def origins_from_stacks(payload: str, output_code: str) -> dict[str, tuple[Origin, ...]]:
    """Kernel name → user lines, from ``inductor_provenance_tracking_kernel_stack_traces``.

    Its keys are ``name:call_number``, its values stacks with the outermost frame first.  PyTorch 2.13 does not empty
    this table between backward graphs, so only the calls that are in this output code are taken.  An origin is the
    innermost user frame of a stack; if none is the user's (a model from a library was compiled as it is), the
    innermost frame of an installed package.
    """
    try:
        stacks = json.loads(payload)
    except ValueError:
        return {}
    origins: dict[str, dict[Origin, None]] = {}
    mine_only = {handle for match in _HANDLES.finditer(output_code) for handle in match["handles"].split(", ")}
    for key, texts in stacks.items() if isinstance(stacks, dict) else ():
        if mine_only and key not in mine_only:
            continue
        mine = origins.setdefault(re.sub(r":\d+$", "", key), {})
        for text in texts if isinstance(texts, list) else ():
            frames = [Origin(match["file"], int(match["line"])) for match in _FRAME.finditer(str(text))]
            for belongs in (is_user_file, is_package_file):
                if inside := [frame for frame in frames if belongs(frame.file)]:
                    mine[inside[-1]] = None
                    break
    return {name: tuple(found) for name, found in origins.items()}


_INLINED = re.compile(r"higher_order\.(?P<name>flex_attention)\b")


def with_inlined(origins: Mapping[str, tuple[Origin, ...]], graph: Graph | None) -> dict[str, tuple[Origin, ...]]:
    """Kernel name → user lines, with those of the functions that an operator's template has in itself: of
    ``score_mod`` and ``mask_mod`` PyTorch tells no stacks.

    Args:
        graph: Dynamo's graph, whose text has the graphs of these functions, too.
    """
    found = dict(origins)
    nodes = graph.nodes if graph is not None else ()
    for node in nodes:
        if (operator := _INLINED.search(node.target)) is None:
            continue
        inside = tuple(f"{name}." for name in node.inputs)
        lines = dict.fromkeys(
            each.origin for each in nodes if each.origin and each.op == "call" and each.name.startswith(inside)
        )
        for name, own in origins.items():
            if operator["name"] in name:
                found[name] = tuple(dict.fromkeys((*own, *(line for line in lines if is_user_file(line.file)))))
    return found


def origins_from_comments(output_code: str, graph: Graph | None) -> dict[str, tuple[Origin, ...]]:
    """Kernel name → user lines by the comments in output code, which name nodes of the dynamo graph.

    What is left where PyTorch gives no stacks: library calls of torch 2.9, or provenance tracking that could not be
    turned on.  The graph's text has the innermost line of a node; one of a package is left out, since provenance finds
    the user's line that led there (`irscope.provenance.kernels.add_missing_origins`).
    """
    if graph is None:
        return {}
    told = {node.name: node.origin for node in graph.nodes if node.origin}
    by_node: Mapping[str, Origin] = {name: origin for name, origin in told.items() if is_user_file(origin.file)}
    origins: dict[str, dict[Origin, None]] = {}
    nodes: list[str] = []
    for line in output_code.split("\n"):
        if match := _SOURCE_NODES.match(line.strip()):
            nodes = [node.strip() for node in match["nodes"].split(",") if node.strip()]
        elif call := re.match(r"\s*(?:\w+ = )?(?P<name>[\w.]+?)(?:\.run)?\(", line):
            if nodes and (call["name"].startswith(("extern_kernels.", "torch.ops.")) or "_fused_" in call["name"]):
                origins.setdefault(call["name"], {}).update({by_node[n]: None for n in nodes if n in by_node})
                nodes = []  # a comment speaks of one call; C++ kernels have none
    return {name: tuple(found) for name, found in origins.items()}
