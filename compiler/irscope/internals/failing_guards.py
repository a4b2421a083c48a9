"""All guards of compiled code that fail at a call, where PyTorch names the first one alone.

Each leaf guard is asked by itself.  The thing that it watches is looked up by `value_of`, so that no code of the user is
called.  Guards that compare several things have a memory, and are not asked.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from irscope.internals.frames import FrameLook, callers
from irscope.internals.modes import unseen
from irscope.internals.names import PrivateName

_REASONS = "get_and_maybe_log_recompilation_reasons"
_GUARDS = "torch/_dynamo/guards.py"
_WHAT = "which older compile is the nearest to a call that is compiled again"
ENTRIES = FrameLook(
    what=_WHAT,
    function=_REASONS,
    file=_GUARDS,
    local="cache_entries",
    fits=lambda value: isinstance(value, Sequence) and all(hasattr(_root(entry), "get_leaf_guards") for entry in value),
    versions="2.13 to 2.15",
)
_CALLED = FrameLook(
    what=_WHAT, function=_REASONS, file=_GUARDS, local="frame", fits=lambda value: hasattr(value, "f_code"),
    versions="2.9 to 2.12",
)  # fmt: skip
_KEPT = PrivateName(_WHAT, "torch._C._dynamo.eval_frame", "_debug_get_cache_entry_list", "2.9 to 2.12")
_MOST_MANAGERS = 20_000
MISSING = object()
"""What `value_of` returns for what it does not find."""

ValueOf = Callable[[str], Any]


def failing_guards(variables: Mapping[str, Any], value_of: ValueOf) -> list[list[str]]:
    """For each older compile, in the order of PyTorch's reasons, all guards that fail now, in PyTorch's words.

    Args:
        variables: The local variables of the call.
        value_of: The value of a guard's source (``L['x']``) at the call, or `MISSING`.
    """
    entries = _entries()
    known: dict[str, Any] = {}

    def look_up(source: str) -> Any:
        if source not in known:
            known[source] = value_of(source)
        return known[source]

    return [list(failing(_root(entry), variables, look_up)) for entry in entries]


def _entries() -> Sequence[Any]:
    """The older compiles.  Before torch 2.13 PyTorch walks along them, so those of the code are asked for."""
    frame = next(filter(_CALLED.is_at, callers()), None)
    if frame is None or "cache_entries" in frame.f_code.co_varnames:
        return ENTRIES.find() or ()
    called, kept = _CALLED.read(frame), _KEPT.find()
    return kept(called.f_code) if called is not None and kept is not None else ()


def _root(entry: Any) -> Any:
    return getattr(getattr(entry, "guard_manager", None), "root", None)


def failing(root: Any, variables: Mapping[str, Any], value_of: ValueOf) -> Iterator[str]:
    """The guards below a ``RootGuardManager`` that fail, in PyTorch's words."""
    waiting, count = [root], 0
    while waiting and count < _MOST_MANAGERS:
        manager, count = waiting.pop(), count + 1
        source = manager.get_source()
        guards = [guard for guard in manager.get_leaf_guards() if callable(guard)]
        value = variables if manager is root else value_of(source) if guards else MISSING
        for guard in guards if value is not MISSING else ():
            if not _holds(guard, value):
                yield from _words(guard.verbose_code_parts(), source, value)
        waiting += manager.get_child_managers()
        for pair in manager.get_key_value_managers().values() if hasattr(manager, "get_key_value_managers") else ():
            waiting += [part for part in pair if part is not None]


def _holds(guard: Any, value: Any) -> bool:
    try:
        return bool(guard(value))
    except Exception:  # noqa: BLE001  a guard on the items of a list, asked of a number: PyTorch checks the type before
        return False


def _words(parts: Sequence[str], source: str, value: Any) -> Iterator[str]:
    text = parts[0] if parts else ""
    if text.startswith("___check_global_state() against "):
        if changed := _changed_states(text):
            yield f"GLOBAL_STATE changed: {' '.join(changed)}"
    elif text.startswith("check_tensor("):
        with unseen():
            changes = list(_changes_of_tensor(text, value))
        yield from (f"tensor '{source}' {change}" for change in changes)
    elif text:
        yield text


# --- the state of PyTorch ---------------------------------------------------------------------------------------------


def _changed_states(text: str) -> list[str]:
    """The names of the states that are not what a guard expects, from its text, which ends with them as JSON."""
    now_guarded: Any = sys.modules["torch"]._C._dynamo.guards.GlobalStateGuard()
    expected, _ = json.JSONDecoder().raw_decode(text, text.index("{"))
    now = json.loads(now_guarded.__getstate__())
    return [name.removesuffix("_state") for name in now if name in expected and expected[name] != now[name]]


# --- tensors ----------------------------------------------------------------------------------------------------------

_EXPECTED = re.compile(
    r"(?P<keys>DispatchKeySet\([^)]*\)), torch\.(?P<dtype>\w+), device=(?P<device>\w+), "
    r"requires_grad=(?P<requires_grad>\w+), size=\[(?P<size>[^]]*)\], stride=\[(?P<stride>[^]]*)\]"
)


def _changes_of_tensor(text: str, value: Any) -> Iterator[str]:
    """What differs between a tensor and the one that a guard expects, in the words of PyTorch's reasons."""
    torch = sys.modules["torch"]
    match = _EXPECTED.search(text)
    if match is None or type(value) not in (torch.Tensor, torch.nn.Parameter):
        yield "mismatch"
        return
    dtype = str(value.dtype).removeprefix("torch.")
    if (keys := str(_dispatch_keys(value))) != match["keys"]:
        yield f"dispatch key set mismatch. expected {match['keys']}, actual {keys}"
    if dtype != match["dtype"]:
        yield f"dtype mismatch. expected {match['dtype']}, actual {dtype}"
    if match["device"] not in ("None", str(value.device.index)):
        yield f"device index mismatch. expected {match['device']}, actual {value.device.index}"
    if str(value.requires_grad) != match["requires_grad"]:
        yield f"requires_grad mismatch. expected requires_grad={match['requires_grad']}"
    sizes, strides = (_numbers(match[name]) for name in ("size", "stride"))
    if len(sizes) != value.dim():
        yield f"rank mismatch. expected {len(sizes)}, actual {value.dim()}"
        return
    changed = list(_changed_numbers("size", sizes, value.shape))
    yield from changed
    if not changed:  # other sizes have other strides
        yield from _changed_numbers("stride", strides, value.stride())


def _dispatch_keys(tensor: Any) -> Any:
    """The dispatch keys of a tensor as guards see them: with those that the modes of this thread add and take away."""
    c = sys.modules["torch"]._C
    return (c._dispatch_keys(tensor) | c._dispatch_tls_local_include_set()) - c._dispatch_tls_local_exclude_set()


def _numbers(text: str) -> list[str]:
    return [number.strip() for number in text.split(",")] if text.strip() else []


def _changed_numbers(what: str, expected: Sequence[str], actual: Sequence[int]) -> Iterator[str]:
    """Numbers that differ; what is dynamic is expected to be ``None``."""
    for index, (was, now) in enumerate(zip(expected, actual, strict=False)):
        if was.isdigit() and int(was) != now:
            yield f"{what} mismatch at index {index}. expected {was}, actual {now}"
