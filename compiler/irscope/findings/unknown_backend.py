"""Unknown back end: ``torch.compile`` was asked for a compiler that nobody has registered."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable
from typing import Any

from irscope.capture.hooks import Hook, Undo, replace_attribute
from irscope.capture.stack import innermost_user, live_places, related_to
from irscope.protocol import Finding, Severity

KIND = "compile-error"
_LISTED = 8


def hook(receive: Callable[[str], None]) -> Hook:
    """Sees the error, which is raised before anything is traced and leaves no record."""

    def apply(exc: Any) -> Undo:
        original = exc.InvalidBackend.__init__

        def init(self: Any, *args: Any, **kwargs: Any) -> None:
            original(self, *args, **kwargs)
            receive(str(kwargs.get("name", args[0] if args else "")))

        return replace_attribute(exc.InvalidBackend, "__init__", init)

    return Hook("back ends of an unknown name", "torch._dynamo.exc", "2.9 to 2.15", apply)


def make(name: str) -> Finding | None:
    """The finding at the call that names the back end."""
    places = live_places()
    at = innermost_user(places)
    if at is None:
        return None
    known = _known()
    near = difflib.get_close_matches(name, known, 1)
    others = [other for other in known if other not in near][:_LISTED]
    return Finding(
        kind=KIND,
        code="InvalidBackend",
        severity=Severity.ERROR,
        message=f"There is no back end called `{name}`." + (f" Did you mean `{near[0]}`?" if near else ""),
        explanation="Back ends are registered by PyTorch and by installed packages (entry points `torch_dynamo_backends`).",
        hints=(
            f"Here there are: {', '.join(f'`{other}`' for other in [*near, *others])}.",
            "Install the package that brings it into this environment, or pass the compiler's function itself.",
        ),
        link="https://docs.pytorch.org/docs/stable/generated/torch.compile.html",
        file=places[at].file,
        range=places[at].range,
        count=1,
        compiles=(),
        related=related_to(places, at),
    )


def _known() -> list[str]:
    registry: Any = sys.modules.get("torch._dynamo.backends.registry")
    return sorted(registry.list_backends(), key=lambda name: (name != "inductor", name)) if registry is not None else []
