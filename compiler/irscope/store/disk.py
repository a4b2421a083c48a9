"""What the disk below a run store allows: whether it is full, and whether other machines share it."""

from __future__ import annotations

import errno
import os
import re
import sys
import tempfile

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_PROBED_BYTES = 1 << 16
_NETWORK = re.compile(
    r"nfs\d?|cifs|smb\w*|9p|afs|ceph|lustre|gpfs|beegfs\w*|glusterfs|ocfs2|gfs2|pvfs2|davfs|fuse\.(?!fuse-overlayfs|gocryptfs|encfs).*"
)
"""Types of file systems that more than one machine may have mounted."""
_MOUNTS = "/proc/self/mountinfo"
_OCTAL = re.compile(r"\\([0-7]{3})")


def why_full(folder: str) -> str:
    """Why nothing can be written into a folder for lack of room, in words; empty if something can, or for another reason."""
    try:
        with tempfile.TemporaryFile(dir=folder) as probe:
            probe.write(bytes(_PROBED_BYTES))
            probe.flush()
            os.fsync(probe.fileno())
    except OSError as error:
        return os.strerror(error.errno) if error.errno in _FULL else ""
    return ""


def is_shared(path: str, mounts: str | None = None) -> bool:
    """Whether other machines may see a file, too: it is on a network file system.

    Args:
        mounts: In place of the system's table of mounts, text of the same form.
    """
    if sys.platform == "win32":
        return os.path.abspath(path).startswith("\\\\")
    if mounts is None:
        try:
            with open(_MOUNTS, encoding="utf-8", errors="surrogateescape") as file:
                mounts = file.read()
        except OSError:  # only Linux has it
            return False
    path, longest, kind = os.path.realpath(path), -1, ""
    for line in mounts.splitlines():
        mounted, _, about = line.partition(" - ")
        fields = mounted.split(" ")
        if len(fields) < 5 or not about:
            continue
        point = _OCTAL.sub(lambda match: chr(int(match[1], 8)), fields[4])
        if len(point) >= longest and (path + "/").startswith(point.rstrip("/") + "/"):
            longest, kind = len(point), about.split(" ")[0]
    return _NETWORK.fullmatch(kind) is not None
