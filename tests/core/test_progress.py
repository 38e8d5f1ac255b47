from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from glasshouse import Population, audit
from glasshouse.core import progress
from glasshouse.core.arrays import BoolArray
from glasshouse.core.progress import open_bar, showing, track


class Clock:
    """Time that passes only when it is told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        silence = progress._Silence()
        silence.clock = lambda: self.now
        monkeypatch.setattr(progress, "_SILENCE", silence)
        monkeypatch.setattr(progress, "_BEAT", 3600.0)  # no thread looks at it


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def test_items_pass_through_and_the_step_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(track(range(3), total=3, label="Shadow models", unit="models", show=True)) == [0, 1, 2]
    assert "Shadow models" in capsys.readouterr().err


def test_a_quick_step_says_nothing_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str], clock: Clock) -> None:
    assert list(track(range(3), total=3, label="Shadow models", unit="models")) == [0, 1, 2]
    assert capsys.readouterr().err == ""


def test_a_long_step_says_a_line_now_and_then_where_there_is_no_terminal(
    capsys: pytest.CaptureFixture[str], clock: Clock
) -> None:
    for _ in track(range(20), total=20, label="Shadow models", unit="models"):
        clock.now += 6
    assert capsys.readouterr().err.splitlines() == [
        "Shadow models: 2 of 20 models after 12 s, about 2 min left",
        "Shadow models: 7 of 20 models after 42 s, about 78 s left",
        "Shadow models: 12 of 20 models after 72 s, about 48 s left",
        "Shadow models: 17 of 20 models after 2 min, about 18 s left",
        "Shadow models: 20 models in 2 min",
    ]


def test_many_short_steps_say_a_line_now_and_then_too(capsys: pytest.CaptureFixture[str], clock: Clock) -> None:
    """Time between steps does not count: a notebook may wait for its user."""
    for _ in range(16):
        clock.now += 1000
        for _ in track(range(2), total=2, label="Queries", unit="queries"):
            clock.now += 2
    assert len(capsys.readouterr().err.splitlines()) == 2


def test_an_inner_step_is_told_of_only_if_the_outer_one_counts_nothing(
    capsys: pytest.CaptureFixture[str], clock: Clock
) -> None:
    def inside() -> None:
        with open_bar(total=3, label="Chains", unit="visits") as done:
            for _ in range(3):
                clock.now += 20
                done(1)

    with showing(None, label="Attack g-base"):
        inside()
    said = capsys.readouterr().err.splitlines()
    assert said[0] == "Chains: 1 of 3 visits after 20 s, about 40 s left"
    assert not any("Attack" in line for line in said)
    with showing(None):
        for _ in track(range(2), total=2, label="Targets", unit="targets"):
            inside()
    said = capsys.readouterr().err.splitlines()
    assert said == [
        "Targets: 1 of 2 targets after 60 s, about 60 s left",
        "Targets: 2 of 2 targets after 2 min",
        "Targets: 2 targets in 2 min",
    ]


def test_nothing_is_said_where_progress_is_off(capsys: pytest.CaptureFixture[str], clock: Clock) -> None:
    with showing(False, label="Attack base"), open_bar(total=2, label="Chains", unit="visits") as done:
        clock.now += 100
        done(1)
    for _ in track(range(3), total=3, label="Shadow models", unit="models", show=False):
        clock.now += 100
    assert capsys.readouterr().err == ""


def test_a_step_that_counts_nothing_for_long_is_told_of_by_a_thread(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    monkeypatch.setattr(progress, "_BEAT", 0.001)
    said, texts = threading.Event(), []

    def say(step: Any, text: str) -> None:
        texts.append(text)
        said.set()

    monkeypatch.setattr(progress._Step, "say", say)
    before = threading.active_count()
    with showing(None, label="Training of the target"):
        clock.now += 31
        assert said.wait(60)
    assert texts[0] == "Training of the target: 31 s so far"
    for _ in range(1000):  # the thread ends with the step
        if threading.active_count() <= before:
            break
        time.sleep(0.01)
    assert threading.active_count() <= before


@pytest.mark.parametrize("shown", [None, False])
def test_an_audit_in_a_pipe_says_how_far_it_is_unless_it_is_told_not_to(
    shown: bool | None, capsys: pytest.CaptureFixture[str], clock: Clock
) -> None:
    x = np.random.default_rng(0).normal(size=(60, 2))

    def train(population: Population, members: BoolArray, seed: int) -> Any:
        """It seems to take a minute."""
        clock.now += 60
        return DecisionTreeClassifier(max_depth=2).fit(population.x[members], population.y[members])

    audit(Population(x, (x[:, 0] > 0).astype(int)), trainer=train, attacks=["loss"], shadows=4, progress=shown)
    said = capsys.readouterr().err
    assert ("Shadow models: 2 of 4 models after" in said) == (shown is None)
    assert ("Training of the target: 60 s so far" in said) == (shown is None)
    assert bool(said) == (shown is None)


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
