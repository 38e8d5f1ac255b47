from __future__ import annotations

import pytest

from glasshouse.progress import open_bar, showing, track


def test_items_pass_through_and_the_step_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(track(range(3), total=3, label="Shadow models", unit="models", show=True)) == [0, 1, 2]
    assert "Shadow models" in capsys.readouterr().err


def test_nothing_is_shown_where_nobody_looks(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(track(range(3), total=3, label="Shadow models", unit="models")) == [0, 1, 2]
    assert capsys.readouterr().err == ""


def test_a_step_inside_shows_its_bar_only_where_it_is_asked_for_and_no_other_is_open(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def inside() -> None:
        with open_bar(total=2, label="Chains", unit="visits") as done:
            done(1)
            done(1)

    inside()
    assert capsys.readouterr().err == ""
    with showing(True):
        inside()
        assert "Chains: 2 visits" in capsys.readouterr().err
        for _ in track(range(2), total=2, label="Targets", unit="targets", show=True):
            inside()
        shown = capsys.readouterr().err
        assert "Targets" in shown
        assert "Chains" not in shown
        inside()
        assert "Chains: 2 visits" in capsys.readouterr().err, "shown again when the bar around it is closed"
