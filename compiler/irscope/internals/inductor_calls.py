"""What irscope asks Inductor for, or has it do: its settings, a compile of a graph, the place of a kernel's files."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

from irscope.internals.names import PrivateName

_SETTINGS = PrivateName("values of compiled code", "torch._inductor.config", "", "2.9 to 2.15")
_COMPILE = PrivateName("values of compiled code", "torch._inductor.compile_fx", "compile_fx_inner", "2.13")
_TRITON_CACHE = PrivateName(
    "the stages of Triton's kernels",
    "torch._inductor.runtime.runtime_utils",
    "triton_cache_dir",
    "2.10 to 2.13 (triton 3.6 to 3.7)",
)


def settings_now() -> tuple[dict[str, Any], str]:
    """Inductor's settings by name, and as the lines of Python that set them."""
    settings = _SETTINGS.get()
    return settings.get_config_copy(), settings.codegen_config()


@contextlib.contextmanager
def inductor_set(config: Mapping[str, Any], patches: Mapping[str, Any]) -> Iterator[None]:
    """Inside, Inductor is set as in ``config``, without settings that this Inductor does not have, and in ``patches``."""
    settings = _SETTINGS.get()
    now = settings.get_config_copy()
    changed = {key: value for key, value in config.items() if key in now and now[key] != value}
    with settings.patch({**changed, **patches}):
        yield


def compiled_graph(module: Any, inputs: list[Any]) -> Any:
    """A graph module as compiled code, which takes one list of inputs.  Raises whatever Inductor raises."""
    return _COMPILE.get()(module, inputs)


def triton_cache_folder(device: int) -> str:
    """Where Triton keeps what it compiles for a device."""
    return str(_TRITON_CACHE.get()(device))
