from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pytest

from glasshouse import Evidence, audit_evidence
from glasshouse.attacks import BASE, Attack, create
from glasshouse.core.arrays import BoolArray, FloatArray
from glasshouse.evaluation import Best, run_attack
from glasshouse.evaluation.best import AttackCache
from tests.strategies import gaussian_evidence


def test_an_attack_with_equal_parameters_is_tuned_and_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """`best` beside its own candidates: the pick, the note and all figures are those of separate cache."""
    evidence, members = gaussian_evidence(records=400, models=6, shift=1.5, seed=0)
    best = Best(candidates=("base", "lira"))
    options: dict[str, Any] = {"fprs": [0.05], "members": members}
    alone = [run_attack(attack, evidence, **options) for attack in (create("base"), best)]
    learned: list[str] = []
    whole = BASE.simulated_scores

    def counted(self: Any, view: Any) -> Iterator[tuple[FloatArray, BoolArray]]:
        learned.append(self.name)
        return whole(self, view)

    monkeypatch.setattr(BASE, "simulated_scores", counted)
    cache = AttackCache(evidence)
    shared = [run_attack(attack, evidence, cache=cache, **options) for attack in (create("base"), best)]
    assert learned == ["base"]
    for one, other in zip(alone, shared, strict=True):
        assert (one.scores == other.scores).all()
        assert one.thresholds == other.thresholds
        assert one.note == other.note


def test_without_another_use_scores_are_gone_and_come_again_the_same() -> None:
    evidence, _ = gaussian_evidence(records=50, models=4, shift=1.5, seed=0)
    cache, kept = AttackCache(evidence, keep=False), AttackCache(evidence)
    first, second = cache.simulated(BASE()), cache.simulated(BASE())
    assert first is not second
    for one, other, third in zip(first, second, kept.simulated(BASE()), strict=True):
        assert (one[0] == other[0]).all()
        assert (one[0] == third[0]).all()
        assert (one[1] == third[1]).all()


@pytest.mark.parametrize(("others", "times"), [([], 2), ([{"name": "best", "candidates": ["base"]}], 1)])
def test_an_audit_keeps_them_for_best_alone(others: list[Any], times: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two equal attacks each scores the simulated targets; with `best` among the attacks they are kept."""
    evidence, members = gaussian_evidence(records=200, models=4, shift=1.5, seed=0)
    asked: list[str] = []
    whole = BASE.simulated_scores

    def counted(self: Any, view: Any) -> Iterator[tuple[FloatArray, BoolArray]]:
        asked.append(self.name)
        return whole(self, view)

    monkeypatch.setattr(BASE, "simulated_scores", counted)
    audit_evidence(evidence, members=members, attacks=["base", "base", *others])
    assert len(asked) == times


@dataclass(frozen=True, kw_only=True)
class Counting(Attack[Evidence]):
    name = "counting"
    prior: Any = 0.5
    found_: int = 0

    def tuned(self, view: Evidence) -> Self:
        return type(self)(prior=self.prior)

    def score(self, view: Evidence) -> FloatArray:
        return -view.target_loss


def test_other_parameters_are_another_trial() -> None:
    evidence, _ = gaussian_evidence(records=2000, models=6, shift=1.5, seed=0)
    cache = AttackCache(evidence)
    flat = np.full(2000, 0.5)
    other = flat.copy()
    other[1500] = 0.6  # numpy would leave it out of the array's text
    assert cache.tuned(Counting(prior=flat)) is cache.tuned(Counting(prior=flat.copy()))
    assert cache.tuned(Counting(prior=flat)) is not cache.tuned(Counting(prior=other))
    assert cache.tuned(BASE(mode="offline")) is not cache.tuned(BASE())


class Plain(Attack[Evidence]):
    """An attack that is not a dataclass."""

    name = "plain"

    def score(self, view: Evidence) -> FloatArray:
        return -view.target_loss


def test_an_attack_without_fields_is_only_equal_to_itself() -> None:
    evidence, _ = gaussian_evidence(records=50, models=4, shift=1.5, seed=0)
    cache, attack = AttackCache(evidence), Plain()
    assert cache.simulated(attack) is cache.simulated(attack)
    assert cache.simulated(attack) is not cache.simulated(Plain())


class Twice(Plain):
    """An attack of a user's own that simulates more targets than there are models."""

    name = "twice"

    def simulated_scores(self, view: Evidence) -> Iterator[tuple[FloatArray, BoolArray]]:
        for _ in range(2):
            yield from super().simulated_scores(view)


def test_more_simulated_targets_than_models_are_taken() -> None:
    evidence, _ = gaussian_evidence(records=50, models=4, shift=1.5, seed=0)
    found = list(AttackCache(evidence).simulated(Twice()))
    assert len(found) == 8
    for number, (scores, members) in enumerate(found):
        assert (scores == -evidence.shadow_loss[number % 4]).all()
        assert (members == evidence.shadow_members[number % 4]).all()
