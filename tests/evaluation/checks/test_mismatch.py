from __future__ import annotations

import numpy as np
import pytest

from glasshouse import Evaluation, audit_evidence
from glasshouse.evaluation import target_mismatch
from glasshouse.evaluation.checks import calibration
from glasshouse.evidence import Evidence


def evidence(scale: float = 1.0, shift: float = 0.0, *, models: int = 8, seed: int = 0) -> Evidence:
    """Records of their own hardness, lower losses for members; the target's margins scaled and shifted."""
    random = np.random.default_rng(seed)
    members = random.random((models + 1, 400)) < 0.5
    members[2::2] = ~members[1::2]  # shadow models come in complementary pairs
    margins = random.normal(size=400) + members + 0.3 * random.normal(size=members.shape)
    margins[0] = shift + scale * margins[0]
    losses = np.log1p(np.exp(-margins))
    return Evidence(target_loss=losses[0], shadow_loss=losses[1:], shadow_members=members[1:])


@pytest.mark.parametrize("seed", range(20))
def test_a_target_of_the_pools_kind_is_not_unlike(seed: int) -> None:
    assert target_mismatch(evidence(seed=seed)) == ""


@pytest.mark.parametrize(("scale", "shift"), [(2.0, 0.0), (0.4, 0.0), (1.0, 2.0), (1.0, -2.0)])
def test_surer_and_less_sure_targets_are_unlike_and_every_audit_says_so_first(scale: float, shift: float) -> None:
    unlike = evidence(scale, shift)
    warning = target_mismatch(unlike)
    assert "unlike every shadow model" in warning
    assert "as the target was trained" in warning
    summary = audit_evidence(unlike, attacks=["base", "lira"], evaluation=Evaluation(fprs=[0.1])).summary()
    assert summary.notes[0] == warning
    assert summary.notes.count(warning) == 1


def test_with_few_models_there_is_no_warning() -> None:
    assert target_mismatch(evidence(1.0, 5.0, models=4)) == ""


def mixed(share: float, *, seed: int, models: int = 8) -> Evidence:
    """Shadow models of one half of the records, and a target with another share of members but of the same kind."""
    random = np.random.default_rng(seed)
    members = random.random((models + 1, 1000)) < 0.5
    members[2::2] = ~members[1::2]
    members[0] = random.random(1000) < share
    margins = random.normal(0, 2, 1000) + 3 * members + random.normal(size=members.shape)
    losses = np.logaddexp(0.0, -margins)
    return Evidence(target_loss=losses[0], shadow_loss=losses[1:], shadow_members=members[1:])


@pytest.mark.parametrize("share", [0.1, 0.2, 0.8, 0.9])
def test_another_share_of_members_is_not_another_kind_of_model(share: float) -> None:
    for seed in range(5):
        one = mixed(share, seed=seed)
        assert target_mismatch(one, prior=share) == ""
        assert target_mismatch(one, prior=np.full(1000, share)) == ""
        assert "state that share as the prior" in target_mismatch(one)  # with a prior of one half it looks unlike


def discrete(kind: str, *, seed: int, shift: float = 0.0) -> Evidence:
    """Answers as forests, nearest neighbours, labels and rounded probabilities give them; the target may be surer."""
    random = np.random.default_rng(seed)
    half = random.random((4, 400)).argsort(axis=1) < 200
    members = np.concatenate([half, ~half, [random.random(400) < 0.5]])
    margins = random.normal(1, 2, 400) + members + random.normal(size=members.shape)
    margins[8] += shift
    chances = 1 / (1 + np.exp(-margins))
    step = {"twenty votes": 0.05, "five neighbours": 0.2, "labels alone": 0.5, "one decimal": 0.1}[kind]
    if kind in ("twenty votes", "five neighbours"):
        chances = random.binomial(round(1 / step), chances) * step
    elif kind == "labels alone":
        chances = (margins > 0).astype(np.float64)
    else:
        chances = chances.round(1)
    losses = -np.log(np.clip(chances, step / 2, 1 - step / 2))
    return Evidence(target_loss=losses[8], shadow_loss=losses[:8], shadow_members=members[:8])


DISCRETE = ["twenty votes", "five neighbours", "labels alone", "one decimal"]


def test_targets_of_the_pools_kind_are_not_unlike_where_answers_are_discrete() -> None:
    """With quantiles of the answers, which jump from one tie to the next, 6 % of them were."""
    wrong = [bool(target_mismatch(discrete(kind, seed=seed))) for kind in DISCRETE for seed in range(60)]
    assert np.mean(wrong) <= 0.02


@pytest.mark.parametrize("kind", DISCRETE)
def test_a_surer_target_with_discrete_answers_is_unlike(kind: str) -> None:
    found = [bool(target_mismatch(discrete(kind, seed=seed, shift=1.5))) for seed in range(10)]
    assert np.mean(found) >= 0.9


@pytest.mark.parametrize("models", [6, 8, 16])
def test_the_limit_is_exceeded_by_the_stated_share_of_targets_of_the_same_kind(models: int) -> None:
    """One figure of as many models, and of one more, drawn alike: the most that all figures together can exceed it."""
    random = np.random.default_rng(models)
    figures = random.normal(size=(200_000, models + 1))
    apart = np.abs(figures[:, 0] - figures[:, 1:].mean(axis=1)) / figures[:, 1:].std(axis=1, ddof=1)
    assert (apart > calibration._largest(models)).mean() == pytest.approx(calibration._WRONG, abs=0.0008)
