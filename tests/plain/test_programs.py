"""What pipelines that take a whole program share, without torch."""

from __future__ import annotations

import gc

import pytest
from irscope.capture.programs import older_objects_kept


def test_the_collector_leaves_older_objects_alone_only_during_the_work() -> None:
    gc.unfreeze()
    with pytest.raises(ValueError, match="of the work"), older_objects_kept():
        assert gc.get_freeze_count() > 0
        raise ValueError("of the work")
    assert gc.get_freeze_count() == 0


def test_what_a_script_has_frozen_itself_stays_frozen() -> None:
    gc.freeze()
    try:
        frozen = gc.get_freeze_count()
        with older_objects_kept():
            assert gc.get_freeze_count() == frozen
        assert gc.get_freeze_count() == frozen
    finally:
        gc.unfreeze()
