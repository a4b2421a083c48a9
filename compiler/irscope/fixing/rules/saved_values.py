"""What a saved function reads from the environment or the process group: a tensor that the loading process makes again."""

from __future__ import annotations

import ast
import builtins
import dataclasses
from collections.abc import Iterator

from irscope.fixing.edits import argument
from irscope.fixing.model import Example, Proposal, Rule
from irscope.fixing.rules import branches
from irscope.fixing.source import Source, tight
from irscope.fixing.syntax import is_number
from irscope.ir.artifacts.portability import NOT_PORTABLE
from irscope.protocol import Edit, Finding

_TITLE = "Read it into a tensor outside the function"
_CAVEAT = "The loading process makes this tensor, and gives it in `f_globals` of `load_compiled_function`."
_NUMBERS = {"int", "float", "bool", "len", "torch.distributed.get_rank", "torch.distributed.get_world_size"}


def _propose(source: Source, finding: Finding) -> Iterator[Proposal]:
    around = [node for node in source.around(source.at(finding.range)) if isinstance(node, ast.expr)]
    numbers = [node for node in around if _gives_number(source, node) and _is_of_module(source, node)]
    for node in around:
        match node:
            case ast.Compare(ast.Call(ast.Name("id"), [one]), [sign], [ast.Call(ast.Name("id"), [other])]):
                if word := {ast.Eq: "is", ast.NotEq: "is not"}.get(type(sign)):
                    same = f"{tight(source.code(one))} {word} {tight(source.code(other))}"
                    yield Proposal("Compare the objects, not their addresses", "", source.changed({node: same}))
    if not numbers:
        return
    value, name = numbers[-1], source.fresh(f"_VALUE_{finding.range.start.line}")  # of each its own
    is_decision = getattr(source.parent(value), "test", None) is value
    is_text = is_decision and not isinstance(value, ast.Compare)  # of which only counts whether there is one
    code = f"bool({source.code(value)})" if is_text else source.code(value)
    made = _made(source, value, f"{name} = {source.torch}.tensor({code})", name)
    changed = Source(source.changed({value: name}, [made, *_given(source)]))
    if not is_decision:
        yield Proposal(_TITLE, _CAVEAT, changed.text)
    for test in changed.all(ast.Name):
        if test.id == name and isinstance(changed.parent(test), ast.If):
            both = branches.RULE.propose(changed, dataclasses.replace(finding, range=changed.range(test)))
            yield from (Proposal(f"{_TITLE}; compute both sides", f"{_CAVEAT} {one.caveat}", one.text) for one in both)


def _given(source: Source) -> Iterator[Edit]:
    for call in source.all(ast.Call):
        is_load = _called(source, call).endswith("load_compiled_function")
        if is_load and all(keyword.arg != "f_globals" for keyword in call.keywords):
            yield argument(source, call, "f_globals", "globals()")


def _made(source: Source, value: ast.expr, line: str, name: str) -> Edit:
    starts = [call for call in source.all(ast.Call) if _called(source, call).endswith("init_process_group")]
    for start in filter(None, map(source.statement, starts)):
        if any(_called(source, node).startswith("torch.distributed.") for node in ast.walk(value)):
            return source.after(start, f"global {name}\n{line}" if source.function(start) is not None else line)
    return source.above(value, line)


def _called(source: Source, node: ast.AST) -> str:
    return source.full_name(node.func) if isinstance(node, ast.Call) else ""


def _gives_number(source: Source, node: ast.expr) -> bool:
    match node:
        case ast.IfExp(body=one, orelse=other) | ast.BinOp(left=one, right=other):
            return _gives_number(source, one) and _gives_number(source, other)
    is_decision = isinstance(node, ast.Compare) or getattr(source.parent(node), "test", None) is node
    return is_decision or is_number(node) or _called(source, node) in _NUMBERS


def _is_of_module(source: Source, node: ast.expr) -> bool:
    constants = [name for name, value in source.constants.items() if isinstance(value, ast.Constant)]
    return {name.id for name in source.all(ast.Name, node)} <= {"__file__", *dir(builtins), *source.imports, *constants}


_TEXT = (
    "import os\nimport tempfile\nimport torch\n{}\n\ndef f(x):\n    {}\n\n\nsaved = torch.compile(f, fullgraph=True)"
    ".aot_compile(((torch.ones(4),), {{}}))\nsaved.save_compiled_function(os.path.join(tempfile.mkdtemp(), 'saved'))"
)
_EXAMPLES = tuple(
    Example(_TEXT.format("", before), _TEXT.format(f"\n_VALUE_7 = torch.tensor({value})\n", after), is_script=True)
    for before, value, after in (
        ("return x * int(os.environ.get('N', '2'))", "int(os.environ.get('N', '2'))", "return x * _VALUE_7"),
        ("if 'prod' in __file__:\n        return x\n    return x + 1", "'prod' in __file__", "return torch.where(_VALUE_7 != 0, x, x + 1)"),
        ("if os.getenv('FAST'):\n        return x\n    return x + 1", "bool(os.getenv('FAST'))", "return torch.where(_VALUE_7 != 0, x, x + 1)"),
    )
)  # fmt: skip
RULE = Rule("saved values", ("specialization",), _propose, codes=(NOT_PORTABLE,), examples=_EXAMPLES)
