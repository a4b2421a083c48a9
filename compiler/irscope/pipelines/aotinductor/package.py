"""What is in a package (``.pt2``) of AOTInductor."""

from __future__ import annotations

import zipfile

_SHOWN = 1000
"""Files that are listed at most."""
_OURS = "kernel_information.json"
"""AOTInductor packs it only because the capture has turned provenance tracking on."""


def contents_of(path: str) -> list[tuple[str, int]]:
    """The files in a package with their sizes in bytes, without the folder that all of them are in."""
    with zipfile.ZipFile(path) as archive:
        files = [(one.filename.partition("/")[2], one.file_size) for one in archive.infolist() if not one.is_dir()]
    return [(name, size) for name, size in files if name.rpartition("/")[2] != _OURS]


def contents_text(files: list[tuple[str, int]]) -> str:
    """The files of a package, one a line."""
    total = f"{sum(size for _, size in files):,}"
    rows = [f"{size:>{len(total)},}  {name}" for name, size in files[:_SHOWN]]
    if len(files) > _SHOWN:
        rows.append(f"… and {len(files) - _SHOWN} more files")
    return "\n".join([f"{total} bytes in {len(files)} files", "", *rows, ""])
