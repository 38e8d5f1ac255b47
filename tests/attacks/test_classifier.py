from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from glasshouse import Evidence, InputError
from glasshouse.attacks import ShadowClassifier, classifier
from glasshouse.attacks.perceptron import Perceptron, train_perceptrons
from glasshouse.core.outputs import losses_from_logits
from glasshouse.data import complementary_halves
from glasshouse.evaluation import auc

MEMBERS = complementary_halves(300, models=6, seed=0)
RANDOM = np.random.default_rng(0)
LABELS = RANDOM.integers(4, size=300)
# members are answered more sharply than others, whichever class it is
LOGITS = RANDOM.normal(size=(6, 300, 4)) * np.where(MEMBERS, 3.0, 1.0)[:, :, None]


def evidence(logits: np.ndarray = LOGITS, labels: np.ndarray = LABELS) -> Evidence:
    loss = np.stack([losses_from_logits(one, labels) for one in logits])
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
    order = np.array([2, 0, 3, 1])
    turned, labels = LOGITS[:, :, order], np.argsort(order)[LABELS]
    expected = ShadowClassifier().score(evidence())
    assert ShadowClassifier().score(evidence(turned, labels)) == pytest.approx(expected, abs=1e-9)
    blind = ShadowClassifier(true_class=False)  # the labels play no part either
    assert blind.score(evidence(turned)) == pytest.approx(blind.score(evidence()), abs=1e-9)


def test_the_true_class_tells_where_a_model_is_always_sure() -> None:
    """A full tree gives 1 to some class for every record; sorted, these answers are all the same."""
    right = np.where(RANDOM.random((6, 300)) < np.where(MEMBERS, 1.0, 0.6), LABELS, (LABELS + 1) % 4)
    sure = evidence(np.log(0.02 + 0.92 * np.eye(4)[right]))
    assert auc(ShadowClassifier().score(sure), MEMBERS[0]) > auc(-sure.target_loss, MEMBERS[0]) - 0.02 > 0.65
    assert auc(ShadowClassifier(true_class=False).score(sure), MEMBERS[0]) == pytest.approx(0.5, abs=0.05)


def test_a_large_pool_is_learned_from_in_part() -> None:
    scores = ShadowClassifier(examples=200).score(evidence())
    assert auc(scores, MEMBERS[0]) > 0.7


def test_losses_alone_are_not_enough() -> None:
    bare = Evidence(target_loss=[1.0, 2.0], shadow_loss=[[1.0, 2.0]], shadow_members=[[1, 0]])
    with pytest.raises(InputError, match="the evidence holds only losses"):
        ShadowClassifier().score(bare)


def test_a_model_and_its_complement_share_a_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are judged by the same references; the scores are those of networks trained one at a time."""
    attack = ShadowClassifier(epochs=3)
    alone = [attack.score(target.view) for target in evidence().simulated()]
    trained: list[int] = []

    def counted(examples: Any, **options: Any) -> list[Perceptron]:
        trained.extend(len(x) for x, _ in examples)
        return train_perceptrons(examples, **options)

    monkeypatch.setattr(classifier, "train_perceptrons", counted)
    together = [scores for scores, _ in attack.simulated_scores(evidence())]
    assert all((one == other).all() for one, other in zip(together, alone, strict=True))
    assert trained == [600, 600]  # four models: two networks


def test_simulated_targets_may_have_different_numbers_of_references() -> None:
    """Two models are complements, so each is judged without the other; the others keep one reference more."""
    members = np.vstack([MEMBERS[:2], RANDOM.random((9, 300)) < 0.5])
    logits = RANDOM.normal(size=(12, 300, 4)) * np.where(np.vstack([MEMBERS[:1], members]), 3.0, 1.0)[:, :, None]
    loss = np.stack([losses_from_logits(one, LABELS) for one in logits])
    mixed = Evidence(
        target_loss=loss[0],
        shadow_loss=loss[1:],
        shadow_members=members,
        target_logits=logits[0],
        shadow_logits=logits[1:],
    )
    attack = ShadowClassifier(epochs=3)
    targets = list(mixed.simulated())
    assert len({len(target.view.shadow_members) for target in targets}) == 2
    found = list(attack.simulated_scores(mixed))
    for (scores, truth), target in zip(found, targets, strict=True):
        assert (truth == target.members).all()
        assert (scores == attack.score(target.view)).all()
