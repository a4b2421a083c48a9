"""Inductor's C++ kernels as text: their parameters, what they store, and a copy that reports the first value that is not finite.

A store may come from elsewhere, and a kernel is compiled and executed.  So it may call only what Inductor's kernels call.
"""

from __future__ import annotations

import re

_SIGNATURE = re.compile(r'extern "C"\s+void\s+kernel\((?P<parameters>[^)]*)\)\s*\{')
_PARAMETER = re.compile(r"(?:const )?(?P<type>[\w:]+?)\s*(?P<pointer>\*?)\s*(?P<name>\w+)$")
_STORE = re.compile(r"^\s*(?P<at>(?P<name>(?:in_)?out_ptr\d+)\[.*\]) = [^;]*;$")
_VECTOR = re.compile(
    r"^\s*[\w.]+\.store\((?P<at>(?P<name>(?:in_)?out_ptr\d+) \+ .*?)(?:, (?P<count>static_cast<int64_t>\(\w+\)))?\);$"
)
_CALL = re.compile(r"(?<![\w:])(?:::)?([A-Za-z_][\w:]*)\s*(?:<[\w:, *]*>)?\s*\(")
_CALLED = re.compile(
    r"(?:std::|at::|c10::|at::vec::)?(?:kernel|for|if|while|switch|sizeof|decltype|static_cast|float|double|int|bool|int64_t|int32_t|"
    r"\w*(?:exp|log|sqrt|tanh|sin|cos|erf|pow|abs|floor|ceil|round|trunc|min|max|fmod|hypot|sigmoid|relu)\w*|Vectorized\w*|VectorizedN|"
    r"loadu|store|set|blendv|convert\w*|cast|mask\w*|to|isnan|isinf|isfinite|signbit|copysign|nearbyint|reciprocal|neg|masked_load|"
    r"(?:cascade|welford)_\w+|\w+_reduce\w*|vec_\w+|atomic_add\w*|C10_(?:UN)?LIKELY|numeric_limits\w*|infinity|quiet_NaN|lowest|"
    r"BFloat16|Half|normalized_rand_cpu|rand\w*_cpu|index_expr|arange|transpose_mxn|from|template|size|acc_arr|inductor_cpu_\w+|tmp\d+\w*)"
)  # fmt: skip
_DTYPES = {
    "float": "fp32", "double": "fp64", "half": "fp16", "at::Half": "fp16", "at::BFloat16": "bf16", "int64_t": "i64", "int32_t": "i32",
    "int16_t": "i16", "int8_t": "i8", "uint8_t": "u8", "bool": "i1", "long": "i64", "int": "i32",
}  # fmt: skip
_WATCH = """\
#include <cmath>
extern "C" { int64_t irscope_line = 0, irscope_index = -1; const void* irscope_start = nullptr; }
template <typename T> static inline void irscope_stored(int64_t line, const T* start, const T* at, int64_t count) {
  if constexpr (!std::is_integral_v<T>) for (int64_t i = 0; i < count && !irscope_line; i++)
    if (!std::isfinite(static_cast<double>(at[i]))) { irscope_start = start; irscope_index = at + i - start; irscope_line = line; }
}
"""


def is_cpp(text: str) -> bool:
    """Whether a text is a C++ kernel of Inductor's."""
    return _SIGNATURE.search(text) is not None


def parameters_of(text: str) -> dict[str, str]:
    """The type of each parameter, in order, as a Triton kernel's signature has it: ``*fp32``, ``i64``."""
    found = _SIGNATURE.search(text)
    pairs = [_PARAMETER.match(part.strip()) for part in found["parameters"].split(",")] if found is not None else []
    return {each["name"]: each["pointer"] + _DTYPES.get(each["type"], "fp32") for each in pairs if each is not None}


def watched(text: str) -> str:
    """The kernel at the same lines, which reports the first value that is not finite that it stores.

    Raises LookupError for a text that has what no kernel of Inductor's has.
    """
    if (found := re.search(r"\b(?:asm|__asm__|reinterpret_cast|const_cast)\b|^\s*#(?!include <torch/csrc/inductor/cpp_prefix.h>|pragma (?:GCC|omp))", text, re.MULTILINE)):  # fmt: skip
        raise LookupError(f"The C++ kernel has {found[0].strip()}, which no kernel has.")
    calls = sorted({each for each in _CALL.findall(text) if not _CALLED.fullmatch(each) and not each.isdigit()})
    if calls:
        raise LookupError(f"The C++ kernel calls {', '.join(calls[:3])}, which is not known here.")
    rows = text.split("\n")
    for number, row in enumerate(rows):
        if (stored := _STORE.match(row)) is not None:
            rows[number] += f" irscope_stored({number + 1}, {stored['name']}, &({stored['at']}), 1);"
        elif (stored := _VECTOR.match(row)) is not None:
            count = stored["count"] or "1"
            rows[number] += f" irscope_stored({number + 1}, {stored['name']}, {stored['at']}, {count});"
    return "\n".join([*rows[:1], _WATCH, '#line 2 "kernel.cpp"', *rows[1:]])
