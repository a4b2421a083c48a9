"""How a program or a region compares to the same without compile, in words; the terminal and the Time tab show them."""

from __future__ import annotations

from irscope.profiling.noise import Spread
from irscope.profiling.profile import MeasuredProgram
from irscope.profiling.regions import Elsewhere, MeasuredRegion
from irscope.vocabulary.units import count, duration, significant

_MOST_PLACES = 3


def program_words(one: MeasuredProgram) -> str:
    """``forward: 547 µs (…); without compile 1.2 ms (…): 2.19 times as fast; compiling took 8.1 s, paid back after 12,000 calls``."""
    if one.why_not:
        return f"not measured: {one.why_not}"
    seconds = one.plain_seconds if one.plain_seconds is not None else one.seconds
    if seconds is None:
        return "not measured"
    parts = [f"{_what(one.backward)}: {_side(one.spread, seconds)}"]
    if one.eager_seconds is not None:
        parts.append(f"without compile {_side(one.eager_spread, one.eager_seconds)}")
        before, after = _typical(one.eager_spread, one.eager_seconds), _typical(one.spread, seconds)
        parts[-1] += f": {_verdict(before, after, one.is_clear)}"
        parts += _compiling(one.compile_seconds, one.paid_back_calls, one.is_clear)
    return "; ".join([*parts, *_state_words(one)])


def _state_words(one: MeasuredProgram) -> list[str]:
    """What was done so that each measured call goes through the same compiled code."""
    found = []
    if one.put_back:
        names, more = ", ".join(f"`{place}`" for place in one.put_back[:_MOST_PLACES]), len(one.put_back) - _MOST_PLACES
        found.append(
            f"each call changes {names}{f' and {more} more' if more > 0 else ''}, put back before the next one"
        )
    if one.compiled_again:
        found.append(
            f"the script had compiled no code for the measured call ({one.compiled_again}), so it was compiled once more, "
            "without lines"
        )
    return found


def region_words(one: MeasuredRegion) -> str:
    """The same of a graph that is called alone; `elsewhere_words` has other pipelines."""
    if one.why_not or one.compiled is None:
        return f"not measured: {one.why_not or 'too few calls'}"
    parts = [f"{_what(one.backward)}: {one.compiled.words}"]
    if one.eager is not None:
        verdict = _verdict(one.eager.median, one.compiled.median, one.is_clear)
        parts.append(f"without compile {one.eager.words}: {verdict}")
        parts += _compiling(one.compile_seconds, one.paid_back_calls, one.is_clear)
    return "; ".join(parts)


def elsewhere_words(one: Elsewhere) -> str:
    """``through onnx 62 µs (…), forward alone, where Inductor took 41 µs (…): 1.5 times as slow``."""
    if one.seconds is None or one.inductor is None:
        return f"through {one.pipeline}: not measured: {one.why_not}"
    sides = f"through {one.pipeline} {one.seconds.words}, forward alone, where Inductor took {one.inductor.words}"
    if one.is_clear is None:
        return f"{sides}: too few repetitions to say which is faster"
    if not one.is_clear:
        return f"{sides}: no difference above the noise"
    return f"{sides}: {_factor(one.inductor.median, one.seconds.median)}"


def _what(backward: bool) -> str:
    return "forward and backward" if backward else "forward"


def _side(spread: Spread | None, seconds: float) -> str:
    """With the spread, where it is known: old profiles have none."""
    return duration(seconds) if spread is None else spread.words


def _typical(spread: Spread | None, seconds: float) -> float:
    return seconds if spread is None else spread.median


def _verdict(eager: float, compiled: float, clear: bool | None) -> str:
    if clear is None:
        return "too few repetitions to say which is faster"
    if not clear:
        return "no difference above the noise"
    return f"compiled it is {_factor(eager, compiled)}"


def _factor(before: float, after: float) -> str:
    fast, slow = sorted([before, after])
    return f"{significant(slow / max(fast, 1e-9))} times as {'fast' if after < before else 'slow'}"


def _compiling(seconds: float | None, calls: int | None, clear: bool | None) -> list[str]:
    if seconds is None:
        return []
    if calls is not None:
        paid = f", paid back after {count(calls, 'call')}"
    else:
        paid = ", which no call pays back" if clear else ""
    return [f"compiling took {duration(seconds)}{paid}"]
