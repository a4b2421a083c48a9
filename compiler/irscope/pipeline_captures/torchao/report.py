"""What is quantized and what is not, with the reasons."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

from irscope.ir.nodes import facts_of
from irscope.pipeline_captures.torchao.pt2e import is_dequantize, is_q_dq, is_quantized_tensor, x86_module
from irscope.vocabulary.records import dataclass

_WEIGHTY = ("linear", "conv", "matmul", "bmm", "mm", "attention", "embedding", "lstm", "gru")
"""Operations that have most of the work or of the weights: those that are worth a finding."""


@dataclass(frozen=True)
class Operation:
    """An operation of the converted program.

    Args:
        node, operator: Its name in the graph and what it calls.
        why: Why it computes with floating-point numbers; empty if it is quantized.
        code: The same as a code; empty if it is quantized.
        is_weighty: Whether most of a model's work is in operations of its kind.
    """

    node: str
    operator: str
    why: str
    code: str
    is_weighty: bool


X86 = "X86InductorQuantizer"
THE_MODULE = "the module"
"""The name of a module that is the program itself."""
Stack = list[tuple[str, int]]
"""Files and lines, outermost first."""


def operations_of(graph: Any, quantizer: str = X86) -> list[Operation]:
    """The operations of a converted program that compute, in their order.

    Args:
        quantizer: The class that chose what is quantized; empty if it is not known.
    """
    return [_operation(node, quantizer) for node in graph.graph.nodes if _computes(node)]


def _computes(node: Any) -> bool:
    return node.op == "call_function" and getattr(node.target, "namespace", "") == "aten"


def _operation(node: Any, quantizer: str) -> Operation:
    name = str(node.target)
    inputs = [one for one in node.all_input_nodes if _is_floating(one)]
    is_done = any(is_dequantize(one) for one in node.all_input_nodes) or _goes_on(node)
    why, code = ("", "") if is_done else _reason(node, inputs, quantizer)
    return Operation(node.name, name, why, code, any(word in name for word in _WEIGHTY))


def _goes_on(node: Any) -> bool:
    """Whether it is between a quantized operation and the next quantize, with which both are fused."""
    before = [one for one in node.all_input_nodes if _computes(one)]
    into = [one for one in node.users if is_q_dq(one)]
    return bool(into) and any(is_dequantize(above) for one in before for above in one.all_input_nodes)


def _reason(node: Any, floating: list[Any], quantizer: str) -> tuple[str, str]:
    if any(is_dequantize(above) for one in floating if _computes(one) for above in one.all_input_nodes):
        return "it follows a quantized operation, which it may be fused into", "follows"
    if not floating:
        return "its inputs are integers: an embedding or an index", "integer-inputs"
    if quantizer != X86:
        return f"the script's {quantizer or 'quantizer'} did not choose it", "not-chosen"
    x86 = x86_module()
    if node.target in x86.default_quantizable_ops:
        return (
            "it is in no pattern of the quantizer: its weight is not constant, or its inputs are not tensors",
            "no-pattern",
        )
    if node.target in x86.quantizable_ops:
        return "the default configuration leaves it out; set_function_type_qconfig adds it", "not-by-default"
    return "X86InductorQuantizer has no integer form of it", "unsupported-operator"


def _is_floating(node: Any) -> bool:
    value = node.meta.get("val")
    dtype = getattr(value, "dtype", None)
    return dtype is None or bool(dtype.is_floating_point)


def report_text(operations: list[Operation]) -> str:
    """The stage: what is quantized, then what is not, by reason."""
    done = Counter(one.operator for one in operations if not one.code)
    lines = [f"Quantized: {sum(done.values())} of {len(operations)} operations"]
    lines += [f"  {count} x {operator}" for operator, count in done.most_common()]
    for why in dict.fromkeys(one.why for one in operations if one.code):
        left = Counter(one.operator for one in operations if one.why == why)
        lines += ["", f"Not quantized, since {why}:", *(f"  {count} x {name}" for name, count in left.most_common())]
    return "\n".join([*lines, ""])


# --- a model that the script has quantized ----------------------------------------------------------------------------


@dataclass(frozen=True)
class WithWeight:
    """A module with a weight.

    Args:
        quantized: The class of the quantized tensor; empty if it is a plain one.
    """

    name: str
    kind: str
    quantized: str

    @property
    def why(self) -> str:
        """Why its weight is a plain tensor."""
        if "Linear" in self.kind:
            return "the filter_fn of quantize_, or its configuration, left this layer out"
        return "quantize_ takes only nn.Linear, if its filter_fn does not say otherwise"

    @property
    def code(self) -> str:
        """The same as a code."""
        return "left-out" if "Linear" in self.kind else "not-a-linear"


def modules_with_weights(programs: list[Any]) -> list[WithWeight]:
    """The modules of programs that ``quantize_`` could have changed."""
    return [row for one in programs for row in _modules(one)]


def modules_text(rows: list[WithWeight]) -> str:
    """The stage of a model that ``quantize_`` has changed: which modules have quantized tensors, and which have not."""
    done, left = [row for row in rows if row.quantized], [row for row in rows if not row.quantized]
    lines = [f"Quantized by the script: {len(done)} of {len(rows)} modules with weights"]
    lines += [f"  {one.name} ({one.kind}): {one.quantized}" for one in done]
    if left:
        lines += ["", "Not quantized:"]
        lines += [f"  {one.name} ({one.kind}): its weight is a plain tensor; {one.why}" for one in left]
    return "\n".join([*lines, ""])


def left_by_quantize(rows: list[WithWeight], data: Any) -> list[tuple[Operation, Stack]]:
    """The operations in a graph of Dynamo's with much of the work that compute with plain weights of such modules,
    each with the lines that it came from, outermost first.

    Args:
        data: What is kept of the graph (`irscope.ir.nodes`).
    """
    plain = {one.name: one for one in rows if not one.quantized}
    found = []
    for fact in facts_of(data):
        module = plain.get(_below(fact.module[0])) if fact.module else None
        if module is not None and any(word in fact.target for word in _WEIGHTY):
            one = Operation(fact.name, fact.target, module.why, module.code, is_weighty=True)
            found.append((one, [(frame.file, frame.line) for frame in fact.stack]))
    return found


def _below(path: str) -> str:
    """The name of a module in its program, of Dynamo's path: ``L['self'].layers.0`` → ``layers.0``."""
    return path.rpartition("].")[2] if "]." in path else THE_MODULE


def _modules(program: Any) -> Iterator[WithWeight]:
    torch: Any = sys.modules["torch"]
    for name, module in program.named_modules():
        weight = getattr(module, "weight", None)
        if isinstance(weight, torch.Tensor):
            kind = next((type(one).__name__ for one in (weight, weight.data) if _is_torchao(one)), "")
            quantized = kind if is_quantized_tensor(weight) else ""
            yield WithWeight(name or THE_MODULE, type(module).__name__, quantized)


def _is_torchao(tensor: Any) -> bool:
    return type(tensor).__module__.partition(".")[0] == "torchao"


# --- what Inductor made of it -----------------------------------------------------------------------------------------


_CALL = re.compile(r"(?:torch\.ops\.(?P<operator>\w+\.\w+)|extern_kernels\.(?P<kernel>\w+))(?:\.\w+)*\(")
_INTEGER = re.compile(r"^onednn\.|int8|int4|_int_mm|qlinear|qconv")
_GENERATED = re.compile(r"^(\w*quantize\w*) = async_compile", re.MULTILINE)


def fused_text(code: str, is_frozen: bool) -> str:
    """The stage: the library calls of output code that compute with integers, those that do not, and generated kernels
    that quantize or dequantize.

    Args:
        is_frozen: Whether the code was compiled with parameters as constants, which integer operators need.
    """
    calls = Counter(found["operator"] or found["kernel"] for found in _CALL.finditer(code))
    integer = {name: count for name, count in calls.items() if _INTEGER.search(name)}
    rest = {name: count for name, count in calls.items() if name not in integer}
    kernels = Counter(_GENERATED.findall(code))
    parts = (
        ("Integer operators", integer),
        ("Other library calls", rest),
        ("Kernels that quantize or dequantize", kernels),
    )
    lines = []
    for title, found in parts:
        lines += [f"{title}: {sum(found.values())}", *(f"  {count} x {name}" for name, count in found.items()), ""]
    if kernels and not integer and not is_frozen:
        lines.append("Inductor fuses them into integer operators only with freezing, below torch.no_grad().")
    return "\n".join(lines).rstrip() + "\n"
