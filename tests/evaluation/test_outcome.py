from __future__ import annotations

import copy
from dataclasses import dataclass

import numpy as np
import pytest

from glasshouse import Evidence, InputError
from glasshouse.attacks import BASE, Attack, register
from glasshouse.attacks import attack as rooms
from glasshouse.core.arrays import FloatArray
from glasshouse.evaluation import run_attack
from tests.strategies import gaussian_evidence


def test_the_highest_score_has_rank_one() -> None:
    evidence, members = gaussian_evidence(records=500, models=8, shift=2.0, seed=0)
    outcome = run_attack(BASE(), evidence, fprs=[0.05, 0.1], members=members)
    assert outcome.ranks[np.argmax(outcome.scores)] == 1


def test_true_membership_changes_no_score_and_no_threshold() -> None:
    evidence, members = gaussian_evidence(records=500, models=8, shift=2.0, seed=0)
    shuffled = np.random.default_rng(0).permutation(members)
    first, second = (run_attack(BASE(mode="offline"), evidence, fprs=[0.05], members=m) for m in (members, shuffled))
    assert (first.scores == second.scores).all()
    assert first.thresholds == second.thresholds


def test_two_shadows_give_scores_and_no_thresholds() -> None:
    evidence, _ = gaussian_evidence(records=50, models=2, shift=2.0, seed=0)
    assert run_attack(BASE(), evidence, fprs=[0.1]).thresholds == ()


def test_an_attack_that_gives_no_number_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rooms, "_ATTACKS", copy.deepcopy(rooms._ATTACKS))

    @register("broken")
    @dataclass(frozen=True, kw_only=True)
    class Broken(Attack):
        def score(self, evidence: Evidence) -> FloatArray:
            return np.full(evidence.records, np.nan)

    evidence, _ = gaussian_evidence(records=50, models=2, shift=2.0, seed=0)
    with pytest.raises(InputError, match="broken: record '0'"):
        run_attack(Broken(), evidence, fprs=[])
