from __future__ import annotations

import numpy as np
import pytest

from glasshouse import Evidence, InputError
from glasshouse.attacks import ShadowClassifier
from glasshouse.evaluation import auc
from glasshouse.numerics import losses_from_logits
from glasshouse.population import complementary_halves

MEMBERS = complementary_halves(300, models=6, seed=0)
RANDOM = np.random.default_rng(0)
LABELS = RANDOM.integers(4, size=300)
# members are answered more sharply than others, whichever class it is
LOGITS = RANDOM.normal(size=(6, 300, 4)) * np.where(MEMBERS, 3.0, 1.0)[:, :, None]


def evidence(logits: np.ndarray = LOGITS) -> Evidence:
    loss = np.stack([losses_from_logits(one, LABELS) for one in logits])
    return Evidence(
        target_loss=loss[0],
        shadow_loss=loss[2:],
        shadow_members=MEMBERS[2:],
        target_logits=logits[0],
        shadow_logits=logits[2:],
    )


def test_it_learns_how_members_are_answered_from_shadow_models_alone() -> None:
    scores = ShadowClassifier(seed=3).score(evidence())
    assert auc(scores, MEMBERS[0]) > 0.8
    assert ((scores >= 0) & (scores <= 1)).all()
    assert (scores == ShadowClassifier(seed=3).score(evidence())).all()


def test_the_order_of_the_classes_plays_no_part() -> None:
    """Probabilities are sorted, so a model that names the classes otherwise is judged alike."""
    turned = LOGITS[:, :, [2, 0, 3, 1]]
    assert ShadowClassifier().score(evidence(turned)) == pytest.approx(ShadowClassifier().score(evidence()), abs=1e-9)


def test_a_large_pool_is_learned_from_in_part() -> None:
    scores = ShadowClassifier(examples=200).score(evidence())
    assert auc(scores, MEMBERS[0]) > 0.7


def test_losses_alone_are_not_enough() -> None:
    bare = Evidence(target_loss=[1.0, 2.0], shadow_loss=[[1.0, 2.0]], shadow_members=[[1, 0]])
    with pytest.raises(InputError, match="the evidence holds losses only"):
        ShadowClassifier().score(bare)
