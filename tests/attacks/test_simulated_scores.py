"""Quick roads to the scores of simulated targets, against the plain one: the attack on each simulated view."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from glasshouse import Evidence
from glasshouse.attacks import BASE, RMIA, Attack, LiRA, create
from glasshouse.core.errors import InputError
from tests.strategies import gaussian_evidence, random_evidence

QUICK = [
    BASE(),
    BASE(mode="offline", scale=0.7),
    RMIA(gamma=1.5),
    RMIA(mode="offline", offline_a=0.4),
    LiRA(),
    LiRA(variance="global"),
    LiRA(mode="offline", variance="global"),
    create("bavaria"),
    create("bavaria", mode="offline"),
    create("informia"),
    create("calibration"),
    create("calibration", mode="offline"),
    create("attack-r"),
    create("quantile"),
    create("loss"),
]

APART = ("rmia", "quantile")  # where answers are all the same, the last of them divides by 1e-9


def agree(attack: Attack[Any], evidence: Evidence) -> None:
    try:
        attack = attack.tuned(evidence)
        plain = list(Attack.simulated_scores(attack, evidence))
    except InputError:
        with pytest.raises(InputError):
            list(attack.simulated_scores(evidence))
        return
    quick = list(attack.simulated_scores(evidence))
    assert len(quick) == len(plain) == evidence.models
    for (scores, members), (expected, same) in zip(quick, plain, strict=True):
        assert np.array_equal(members, same)
        assert np.allclose(scores, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("attack", [one for one in QUICK if one.name not in APART], ids=repr)
@settings(max_examples=25, deadline=None)
@given(evidence=random_evidence(min_models=4))
def test_the_quick_road_gives_the_scores_of_the_plain_one(attack: Attack[Any], evidence: Evidence) -> None:
    agree(attack, evidence)


@pytest.mark.parametrize("attack", QUICK, ids=repr)
@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize("width", [64, 3])  # with 3, sums over eight models are sums of sums, as in large pools
def test_pools_with_and_without_pairs_agree(
    attack: Attack[Any], paired: bool, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("glasshouse.attacks.in_out_moments._WIDTH", width)
    evidence, _ = gaussian_evidence(records=3000, models=8, shift=1.0, seed=3)
    if not paired:  # the references then change from record to record
        rows = np.argsort(np.random.default_rng(0).random((8, 3000)), axis=0)
        columns = np.arange(3000)
        evidence = Evidence(
            target_loss=evidence.target_loss,
            shadow_loss=evidence.shadow_loss[rows, columns],
            shadow_members=evidence.shadow_members[rows, columns],
        )
    attack = attack.tuned(evidence)
    quick, plain = list(attack.simulated_scores(evidence)), list(Attack.simulated_scores(attack, evidence))
    for (scores, members), (expected, same) in zip(quick, plain, strict=True):
        assert np.array_equal(members, same)
        assert isinstance(attack, RMIA) or np.allclose(scores, expected, rtol=1e-9, atol=1e-12)
        if isinstance(attack, RMIA) and attack.gamma == 1.0:  # weighted to the prior, which the plain road is not
            assert np.allclose(np.argsort(np.argsort(scores)), np.argsort(np.argsort(expected)), atol=2)
