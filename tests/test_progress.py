from __future__ import annotations

import pytest

from glasshouse.progress import track


def test_items_pass_through_and_the_step_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(track(range(3), total=3, label="Shadow models", unit="models", show=True)) == [0, 1, 2]
    assert "Shadow models" in capsys.readouterr().err


def test_nothing_is_shown_where_nobody_looks(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(track(range(3), total=3, label="Shadow models", unit="models")) == [0, 1, 2]
    assert capsys.readouterr().err == ""
