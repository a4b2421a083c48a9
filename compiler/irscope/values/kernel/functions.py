"""What Triton's interpreter lacks, computed by torch on the CPU: libdevice, bfloat16 and 8-bit floats, matrix products.

Triton's interpreter keeps bfloat16 and 8-bit floats as bit patterns, and computes with the patterns where a kernel does
not widen them first (triton#11584).  Here such operands are widened to float32, and the result is rounded to nearest even.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

_SAME = [
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "ceil", "copysign", "cos", "cosh", "erf", "erfc",
    "erfinv", "exp", "exp2", "expm1", "floor", "fmod", "hypot", "ldexp", "lgamma", "log", "log10", "log1p", "log2",
    "nextafter", "pow", "rsqrt", "sigmoid", "sin", "sinh", "sqrt", "tan", "tanh", "trunc",
]  # fmt: skip
_OTHERS = {
    "rint": "round", "nearbyint": "round", "fabs": "abs", "signbit": "signbit", "isnan": "isnan", "isnand": "isnan",
    "isinf": "isinf", "isinfd": "isinf", "finitef": "isfinite", "isfinited": "isfinite", "fast_expf": "exp",
    "fast_logf": "log", "fast_sinf": "sin", "fast_cosf": "cos", "fast_powf": "pow", "sqrt_rn": "sqrt", "rsqrt_rn": "rsqrt",
    "div_rn": "div", "fast_dividef": "div", "add_rn": "add", "sub_rn": "sub", "mul_rn": "mul", "fmax": "fmax",
    "fmin": "fmin", "rcp_rn": "reciprocal", "fast_tanhf": "tanh",
}  # fmt: skip
_SPECIAL = {
    "cyl_bessel_i0": "i0", "cyl_bessel_i1": "i1", "j0": "bessel_j0", "j1": "bessel_j1", "y0": "bessel_y0",
    "y1": "bessel_y1", "normcdf": "ndtr", "normcdfinv": "ndtri", "erfcx": "erfcx",
}  # fmt: skip
_TRUTHS = frozenset(("signbit", "isnan", "isnand", "isinf", "isinfd", "finitef", "isfinited"))
_TO_INTEGER = {"float2int_rz": ("trunc", "int32"), "float2int_rn": ("round", "int32"), "llrint": ("round", "int64"), "ilogb": ("", "int32")}  # fmt: skip


class NotSupported(Exception):
    """The interpreter cannot run something; the message names it exactly."""


def wide(data: Any, dtype: Any) -> Any:
    """The numbers of a block (numpy): bfloat16 and 8-bit floats as float32, others as they are.

    Args:
        dtype: Triton's type of an element.
    """
    torch: Any = sys.modules["torch"]
    own = _PATTERNS.get(str(dtype))
    if own is None:
        return data
    np: Any = sys.modules["numpy"]
    pattern = np.ascontiguousarray(data).view(np.int16 if data.dtype.itemsize == 2 else np.uint8)
    return torch.from_numpy(pattern.copy()).view(getattr(torch, own)).to(torch.float32).numpy()


def narrow(data: Any, dtype: Any) -> Any:
    """The opposite of `wide`, rounded to nearest even."""
    torch: Any = sys.modules["torch"]
    np: Any = sys.modules["numpy"]
    own = _PATTERNS.get(str(dtype))
    if own is None:
        return data
    rounded = torch.from_numpy(np.array(data, dtype=np.float32)).to(getattr(torch, own))
    if own == "bfloat16":
        return rounded.view(torch.int16).numpy().view(np.uint16)
    return rounded.view(torch.uint8).numpy()


_PATTERNS = {"bf16": "bfloat16", "fp8e5": "float8_e5m2", "fp8e4nv": "float8_e4m3fn", "fp8e4b8": "float8_e4m3fnuz", "fp8e5b16": "float8_e5m2fnuz"}  # fmt: skip


class Libdevice:
    """Stands for ``libdevice`` in a kernel and in Inductor's helpers.

    Args:
        make: From the data of a block (numpy) to a block.
    """

    def __init__(self, make: Callable[[Any], Any], data_of: Callable[[Any], Any]) -> None:
        self._make, self._data_of = make, data_of

    def __getattr__(self, name: str) -> Callable[..., Any]:
        function = self._function(name)

        def called(*arguments: Any, **_: Any) -> Any:
            torch: Any = sys.modules["torch"]
            np: Any = sys.modules["numpy"]
            blocks = [np.asarray(self._data_of(each)) for each in arguments]
            floats = [each.dtype for each in blocks if each.dtype.kind == "f"]
            dtype = np.result_type(*floats) if floats else np.dtype(np.float32)
            tensors = [
                torch.from_numpy(np.array(each, dtype=dtype if each.dtype.kind == "f" else None)) for each in blocks
            ]
            found = function(*tensors)
            data = found.numpy()
            if name not in _TRUTHS and name not in _TO_INTEGER and data.dtype.kind == "f":
                data = data.astype(dtype)
            return self._make(data.astype(np.int32) if name in _TRUTHS else data)

        return called

    def _function(self, name: str) -> Callable[..., Any]:
        torch: Any = sys.modules["torch"]
        if name in _TO_INTEGER:
            how, dtype = _TO_INTEGER[name]
            if name == "ilogb":
                return lambda x: torch.frexp(x)[1] - 1
            return lambda x: getattr(torch, how)(x).to(getattr(torch, dtype))
        if name == "fma":
            return lambda x, y, z: (x.double() * y.double() + z.double()).to(x.dtype)
        if name in ("round", "roundf"):  # halves away from zero
            return lambda x: torch.trunc(x + torch.copysign(torch.full_like(x, 0.5), x))
        if name in _SAME:
            return getattr(torch, name)  # type: ignore[no-any-return]
        if name in _OTHERS:
            return getattr(torch, _OTHERS[name])  # type: ignore[no-any-return]
        if name in _SPECIAL:
            return getattr(torch.special, _SPECIAL[name])  # type: ignore[no-any-return]
        raise NotSupported(f"libdevice.{name} has no equivalent in the interpreter.")


def patch_builder(builder: Any, interpreter: Any, tl: Any) -> None:
    """Makes the builder of Triton's interpreter compute with narrow floats, and run what it lacks."""
    np: Any = sys.modules["numpy"]
    kind = type(builder)
    handle = interpreter.TensorHandle

    def as_wide(each: Any) -> Any:
        return handle(wide(each.data, each.dtype.scalar), tl.float32) if _is_narrow(each) else each

    def cast(_: Any, source: Any, to: Any, *__: Any) -> Any:
        to = to.scalar
        data = wide(source.data, source.dtype.scalar)
        if str(to) in _PATTERNS:
            return handle(narrow(data, to), to)
        with np.errstate(all="ignore"):
            return handle(data.astype(interpreter._get_np_dtype(to)), to)

    def widened(method: str) -> None:
        original = getattr(kind, method)

        def wrapped(self: Any, *arguments: Any) -> Any:
            first = next((each for each in arguments if isinstance(each, handle) and _is_narrow(each)), None)
            with np.errstate(all="ignore"):
                if first is None:
                    return original(self, *arguments)
                found = original(self, *(as_wide(each) if isinstance(each, handle) else each for each in arguments))
            is_truth = found.data.dtype.kind == "b"
            return found if is_truth else handle(narrow(found.data, first.dtype.scalar), first.dtype.scalar)

        setattr(kind, method, wrapped)

    for name in ("cast_impl", "create_fp_to_fp"):
        setattr(kind, name, cast)
    for name in ("binary_op", "unary_op", "create_fma"):
        widened(name)
    choose = kind.ternary_op

    def ternary(self: Any, a: Any, b: Any, c: Any, op: Any) -> Any:
        with np.errstate(all="ignore"):
            if op is np.where or not any(map(_is_narrow, (a, b, c))):
                return choose(self, a, b, c, op)
            found = choose(self, as_wide(a), as_wide(b), as_wide(c), op)
        return handle(narrow(found.data, a.dtype.scalar), a.dtype.scalar)

    kind.ternary_op = ternary
    _patch_missing(kind, interpreter)


def _is_narrow(each: Any) -> bool:
    return str(getattr(each.dtype, "scalar", "")) in _PATTERNS


def _patch_missing(kind: Any, interpreter: Any) -> None:
    """What the builder lacks, or does slowly."""
    np: Any = sys.modules["numpy"]
    torch: Any = sys.modules["torch"]
    handle = interpreter.TensorHandle

    def by_torch(method: str, function: Callable[[Any], Any]) -> None:
        def computed(_: Any, argument: Any) -> Any:
            data = wide(argument.data, argument.dtype.scalar)
            found = function(torch.from_numpy(np.array(data))).numpy()
            return handle(narrow(found, argument.dtype.scalar), argument.dtype.scalar)

        setattr(kind, method, computed)

    by_torch("create_erf", torch.erf)
    by_torch("create_rsqrt", torch.rsqrt)

    def dot(_: Any, a: Any, b: Any, d: Any, *__: Any) -> Any:
        first, second = (wide(each.data, each.dtype.scalar) for each in (a, b))
        to = interpreter._get_np_dtype(d.dtype.scalar)
        if first.dtype.kind == "f":  # accumulated in float32, as tensor cores do
            product = np.matmul(first.astype(np.float32), second.astype(np.float32))
            data = product + wide(d.data, d.dtype.scalar)
            return handle(narrow(data, d.dtype.scalar) if _is_narrow(d) else data.astype(to), d.dtype.scalar)
        return handle(np.matmul(first.astype(to), second.astype(to)) + d.data, d.dtype.scalar)

    kind.create_dot = dot

    def inline_asm(_: Any, text: str, *__: Any) -> Any:
        raise NotSupported(f"Inline assembly cannot be interpreted: {' '.join(text.split())[:100]}")

    def extern(_: Any, __: Any, ___: Any, symbol: str, *____: Any) -> Any:
        raise NotSupported(f"The library function {symbol} has no equivalent in the interpreter.")

    kind.create_inline_asm, kind.create_extern_elementwise = inline_asm, extern


def patch_reductions(interpreter: Any) -> None:
    """Reductions and scans by any function, block by block; the interpreter goes element by element."""
    interpreter.ReduceOps.generic_reduce = _reduced
    interpreter.ScanOps.generic_scan = _scanned


def _np() -> Any:
    return sys.modules["numpy"]


def _combined(self: Any, one: tuple[Any, ...], other: tuple[Any, ...], inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    blocks = [self.to_tensor(_np().atleast_1d(data), each.dtype) for data, each in zip((*one, *other), (*inputs, *inputs), strict=True)]  # fmt: skip
    found = self.combine_fn.fn(*blocks)
    parts = found if isinstance(found, tuple) else (found,)
    return tuple(_np().asarray(each.handle.data if hasattr(each, "handle") else each) for each in parts)


def _reduced(self: Any, inputs: Any) -> list[Any]:
    axis = self.axis
    if axis is None:
        inputs, axis = tuple(self.to_tensor(each.handle.data.ravel(), each.dtype) for each in inputs), 0
    rows = [_np().moveaxis(each.handle.data, axis, 0) for each in inputs]
    # As a tree, since that is how a GPU combines them: the halves, then the halves of what is left.
    while (size := rows[0].shape[0]) > 1:
        half = size // 2
        found = _combined(self, tuple(r[:half] for r in rows), tuple(r[half : 2 * half] for r in rows), inputs)
        rest = [row[2 * half :] for row in rows]
        rows = [_np().concatenate([f.reshape(r[:half].shape).astype(r.dtype), e]) for f, r, e in zip(found, rows, rest, strict=True)]  # fmt: skip
    results = []
    for row, each in zip(rows, inputs, strict=True):
        data = row[0]
        if self.keep_dims:
            data = _np().expand_dims(data, axis) if self.axis is not None else data.reshape((1,) * len(each.shape))
        results.append(self.to_tensor(data if data.shape else data.item(), each.dtype))
    return results


def _scanned(self: Any, inputs: Any) -> list[Any]:
    rows = [_np().moveaxis(each.handle.data, self.axis, 0).copy() for each in inputs]
    for at in range(1, rows[0].shape[0]):
        found = _combined(self, tuple(r[at - 1] for r in rows), tuple(r[at] for r in rows), inputs)
        for row, data in zip(rows, found, strict=True):
            row[at] = data.reshape(row[at].shape)
    return [
        self.to_tensor(_np().moveaxis(row, 0, self.axis), each.dtype) for row, each in zip(rows, inputs, strict=True)
    ]
