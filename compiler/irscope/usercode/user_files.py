"""Which files are the user's: all that are not in the standard library, an installed package or torch."""

from __future__ import annotations

import functools
import importlib.util
import os
import site
import sysconfig

from irscope.usercode.reading import real_path

_own: set[str] = set()
_torch: list[str] = []
_libraries: set[str] = set()


def set_torch_folder(path: str) -> None:
    """Where torch lies; it may be a source checkout outside any site-packages."""
    folder = real_path(path) + os.sep
    if _torch != [folder]:
        _torch[:] = [folder]
        _forget()


def add_library_folder(path: str) -> None:
    """Another interpreter's standard library: a trace of another machine has its paths."""
    folder = real_path(path) + os.sep
    if folder not in _libraries:
        _libraries.add(folder)
        _forget()


def _forget() -> None:
    is_user_file.cache_clear()
    is_package_file.cache_clear()
    _library_folders.cache_clear()


def treat_as_user_code(path: str) -> None:
    """The open file is user code wherever it lies."""
    _own.add(real_path(path))
    _forget()


@functools.lru_cache(maxsize=4096)
def is_user_file(path: str) -> bool:
    """True for a file on disk that the user can be thought to have written."""
    if not path or path.startswith("<"):
        return False
    real = real_path(path)
    if real in _own:
        return True
    return not real.startswith(_library_folders()) and not _in_site_packages(real)


@functools.lru_cache(maxsize=4096)
def is_package_file(path: str) -> bool:
    """True for a file of an installed package other than torch: not the user's, yet worth showing as an origin."""
    if not path or path.startswith("<") or is_user_file(path):
        return False
    real = real_path(path)
    return _in_site_packages(real) and not real.startswith(_irscope_folder()) and not is_torch_file(path)


def is_torch_file(path: str) -> bool:
    """True for a file of torch itself, also in a process that does not know where torch lies."""
    return real_path(path).startswith(tuple(_torch)) or any(
        part in path.replace("\\", "/") for part in _INSTALLED_TORCH
    )


_INSTALLED_TORCH = ("/site-packages/torch/", "/dist-packages/torch/")


def is_installed_file(path: str) -> bool:
    """True for a file below a folder into which packages are installed."""
    return _in_site_packages(real_path(path))


@functools.lru_cache(maxsize=4096)
def is_irscope_file(path: str) -> bool:
    """True for a file of irscope's own."""
    return real_path(path).startswith(_irscope_folder())


def _in_site_packages(real: str) -> bool:
    parts = real.replace("\\", "/").split("/")
    return "site-packages" in parts or "dist-packages" in parts


@functools.lru_cache(maxsize=1)
def _library_folders() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    folders = {paths[key] for key in ("stdlib", "platstdlib", "purelib", "platlib") if key in paths}
    folders.update(site.getsitepackages() if hasattr(site, "getsitepackages") else [])
    if getattr(site, "ENABLE_USER_SITE", False):
        folders.add(site.getusersitepackages())
    real = {real_path(folder) + os.sep for folder in folders if folder}
    return (*real, *_torch, *_libraries, *_compiler_folders(), _irscope_folder())


def _compiler_folders() -> list[str]:
    """Where Triton lies: a build from source is outside of site-packages, and yet a library."""
    try:
        found = importlib.util.find_spec("triton")
    except (ImportError, ValueError):  # the name stands for something else in this process
        found = None
    return [real_path(folder) + os.sep for folder in (found.submodule_search_locations if found else None) or ()]


@functools.lru_cache(maxsize=1)
def _irscope_folder() -> str:
    return real_path(os.path.dirname(os.path.dirname(__file__))) + os.sep
