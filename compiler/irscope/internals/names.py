"""One private name of PyTorch that is read or called, not changed.

Public names of torch are read by anybody, through ``sys.modules``: irscope never imports torch before the script does.
A name with a part that begins with an underscore may be elsewhere in the next version.  So each is declared once, here
below, with the versions on which it was checked.
"""

from __future__ import annotations

import sys
from typing import Any

from irscope.internals.frames import report
from irscope.protocol import CaptureGap
from irscope.vocabulary.records import dataclass

_MISSING = object()


@dataclass(frozen=True)
class PrivateName:
    """A module of PyTorch's that has been imported, or what is in it.

    Args:
        what: What is not seen or done without it, in the user's words; the text of the capture gap.
        module: The module.  It is never imported here.
        name: The way from the module over attributes; empty: the module itself.
        versions: The torch versions on which it was checked.
    """

    what: str
    module: str
    name: str
    versions: str

    def find(self) -> Any:
        """The value; None if the module is not imported or is not as expected, which leaves a gap."""
        try:
            return self.get()
        except AttributeError:
            return None

    def get(self) -> Any:
        """The value.  Raises AttributeError if it does not exist, which leaves a gap, too."""
        value: Any = sys.modules.get(self.module, _MISSING)
        for part in self.name.split(".") if self.name else ():
            value = getattr(value, part, _MISSING)
        if value is _MISSING:
            why = f"there is no {'.'.join(filter(None, (self.module, self.name)))}; checked on torch {self.versions}"
            report(CaptureGap(self.what, why))
            raise AttributeError(why)
        return value
