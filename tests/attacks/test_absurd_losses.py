"""Losses of 1e300 are finite, so they are accepted; no attack may break on them."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from glasshouse import Evidence
from glasshouse.attacks import attack_names, create
from glasshouse.attacks.attack import find_attack
from glasshouse.attacks.learners import Boosted
from glasshouse.core.numerics import loss_to_margin
from glasshouse.evaluation import auc
from glasshouse.evidence import Mode
from tests.strategies import gaussian_evidence


def _losses_are_enough(name: str) -> bool:
    kind = find_attack(name)
    return not (kind.needs_logits or kind.needs_public or kind.needs_trace or kind.needs_parts)


# a ratio of Gaussians rises on both sides if members have the larger variance; trees end where simulated targets end
GAUSSIAN = ("lira", "bavaria", "shrunk-lira", "regressed", "stacked")
ATTACKS = [name for name in attack_names(graph=False) if name != "best" and _losses_are_enough(name)]


@pytest.mark.parametrize("mode", ["online", "offline"])
@pytest.mark.parametrize("name", ATTACKS)
def test_a_loss_of_1e300_gives_finite_scores_in_a_sensible_order(name: str, mode: Mode) -> None:
    """The target is utterly wrong about record 0, and one shadow model about record 1."""
    evidence, members = gaussian_evidence(records=150, models=6, shift=3.0, seed=1)
    target, shadows = evidence.target_loss.copy(), evidence.shadow_loss.copy()
    target[0], shadows[2, 1] = 1e300, 1e300
    pool: dict[str, Any] = {"shadow_members": evidence.shadow_members, "labels": np.zeros(150, dtype=int)}
    absurd = Evidence(target_loss=target, shadow_loss=shadows, **pool)
    attack = create(name, shared={"mode": mode, "boosted": Boosted(rounds=5, fits=1)})
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # an overflow would be a warning
        scores = attack.tuned(absurd).score(absurd)
    assert np.isfinite(scores).all()
    alone = Evidence(target_loss=target, shadow_loss=evidence.shadow_loss, **pool)
    found = attack.tuned(alone).score(alone)
    assert np.isfinite(found).all()
    assert auc(found[1:], members[1:]) > 0.6
    if name not in GAUSSIAN:
        usual = np.delete(found, 0)
        assert found[0] <= np.quantile(usual, 0.02) or found[0] == usual.min()


def test_margins_have_finite_squares() -> None:
    margins = loss_to_margin(np.array([0.0, 1.0, 1e99, 1e300]))
    assert np.isfinite(margins**2 * 1e60).all()
    assert (np.diff(margins) < 0).all()
