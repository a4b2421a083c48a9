"""Handlers that hear a logger whatever the script does to logging.

``logging.disable(…)``, a level, or ``logging.config.dictConfig`` (which by default disables every logger that it does
not name) silence what the script does not want to see; what irscope reads from PyTorch's loggers still has to come.
"""

from __future__ import annotations

import logging
from typing import Any, ClassVar

from irscope.internals.hooks import Undo


class LogHandler(logging.Handler):
    """A handler that knows its logger."""

    LOGGER: ClassVar[str]


def listen(handler: logging.Handler, name: str) -> Undo:
    """Adds a handler to a logger; returns what removes it.

    The logger's other handlers get what they would get without it.
    """
    logger: Any = logging.getLogger(name)
    before = {key: vars(logger)[key] for key in ("isEnabledFor", "handle") if key in vars(logger)}

    def enabled(level: int) -> bool:
        asked = vars(logger).get("isEnabledFor")
        return bool(logging.Logger.isEnabledFor(logger, level) if asked in (None, is_enabled_for) else asked(level))

    def is_enabled_for(level: int) -> bool:
        return level >= handler.level or enabled(level)

    def handle(record: logging.LogRecord) -> None:
        if enabled(record.levelno) and not logger.disabled:
            logging.Logger.handle(logger, record)
        elif record.levelno >= handler.level:
            handler.handle(record)

    logger.addHandler(handler)
    logger.isEnabledFor, logger.handle = is_enabled_for, handle

    def undo() -> None:
        logger.removeHandler(handler)
        for key, ours in (("isEnabledFor", is_enabled_for), ("handle", handle)):
            if vars(logger).get(key) is ours:
                delattr(logger, key)
                if key in before:
                    setattr(logger, key, before[key])

    return undo
