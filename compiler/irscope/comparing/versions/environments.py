"""What is different in two environments: settings, decompositions, lowerings, passes, functions and packages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from irscope.vocabulary.records import dataclass

SETTING, PACKAGE, DECOMPOSITION, LOWERING, PASS = "setting", "package", "decomposition", "lowering", "pass"
FUNCTION = "function"
"""A function of PyTorch's compiler: named only if a difference of this script leads to it."""


@dataclass(frozen=True)
class Facts:
    """What one environment has (`irscope.internals.environment_facts`).

    Args:
        settings: Values as Python literals, by full name.
        packages: Versions by name.
        decomposition, lowering, passes: Digests of source texts: by operation, or by file and function.
        lowered_by: The function that lowers an operation (``torch._inductor.lowering:cat``), by operation.
        missing: Modules that this version of PyTorch does not have.
        folder: Where the package torch is.
    """

    torch: str = ""
    python: str = ""
    settings: dict[str, str] = field(default_factory=dict)
    packages: dict[str, str] = field(default_factory=dict)
    decomposition: dict[str, str] = field(default_factory=dict)
    lowering: dict[str, str] = field(default_factory=dict)
    passes: dict[str, str] = field(default_factory=dict)
    lowered_by: dict[str, str] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    folder: str = ""


@dataclass(frozen=True)
class EnvironmentChange:
    """One thing that differs: ``kind`` is one of the constants of this module; an empty value means that it is missing."""

    kind: str
    name: str
    before: str
    after: str

    @property
    def words(self) -> str:
        """As a sentence's subject and verb: ``torch.x was 1, now 2``."""
        if self.kind in (SETTING, PACKAGE):
            if not self.before:
                return f"{self.name} is new: {self.after}"
            return f"{self.name} was {self.before}, now {self.after or 'missing'}"
        what = f"the {self.kind} {self.name}"
        return (
            f"{what} is new" if not self.before else f"{what} is gone" if not self.after else f"{what} has other code"
        )


def environment_changes(before: Facts, after: Facts) -> list[EnvironmentChange]:
    """All differences, settings first."""
    pairs = (
        (SETTING, before.settings, after.settings),
        (PACKAGE, before.packages, after.packages),
        (DECOMPOSITION, before.decomposition, after.decomposition),
        (LOWERING, before.lowering, after.lowering),
        (PASS, before.passes, after.passes),
    )
    return [
        EnvironmentChange(kind, name, old.get(name, ""), new.get(name, ""))
        for kind, old, new in pairs
        for name in sorted({*old, *new})
        if old.get(name) != new.get(name)
    ]


def old_settings(changes: Sequence[EnvironmentChange]) -> dict[str, str]:
    """The settings that give the newer environment the older behaviour: the old value, and what is new switched off."""
    found = {one.name: one.before for one in changes if one.kind == SETTING and one.before and one.after}
    return found | {
        one.name: "False" for one in changes if one.kind == SETTING and not one.before and one.after == "True"
    }
