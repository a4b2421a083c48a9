"""The option ``--severity CODE=LEVEL`` of irscope's commands."""

from __future__ import annotations

import argparse

from irscope.vocabulary.settings import SEVERITIES


def severity_option(text: str) -> tuple[str, str]:
    """``CODE=LEVEL`` as a pair.  Raises ArgumentTypeError."""
    code, _, level = text.partition("=")
    if not code or level not in SEVERITIES:
        raise argparse.ArgumentTypeError(f"{text!r} is not CODE=LEVEL with a level of {', '.join(SEVERITIES)}")
    return code, level
