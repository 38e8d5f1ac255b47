from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from glasshouse import Evidence, InputError
from glasshouse.attacks import Hinge, ModifiedEntropy
from glasshouse.core.arrays import FloatArray, IntArray
from glasshouse.core.numerics import loss_to_margin
from glasshouse.core.outputs import losses_from_logits


def evidence_of(logits: FloatArray, labels: IntArray) -> Evidence:
    return Evidence(target_loss=losses_from_logits(logits, labels), labels=labels, target_logits=logits)


@given(hnp.arrays(np.float64, (5, 4), elements=st.floats(-6, 6)), st.integers(0, 3))
def test_modified_entropy_is_the_formula_written_out(logits: FloatArray, label: int) -> None:
    labels = np.full(5, label)
    scores = ModifiedEntropy().score(evidence_of(logits, labels))
    for row, score in zip(logits, scores, strict=True):
        p = np.exp(row - row.max())
        p /= p.sum()
        entropy = -(1 - p[label]) * np.log(p[label])
        entropy -= sum(p[other] * np.log(1 - p[other]) for other in range(4) if other != label)
        assert score == pytest.approx(-entropy, rel=1e-9, abs=1e-12)


def test_modified_entropy_stays_finite_where_the_target_is_sure() -> None:
    logits = np.array([[800.0, 0.0, 0.0], [0.0, 800.0, 0.0]])
    scores = ModifiedEntropy().score(evidence_of(logits, np.array([0, 0])))
    assert np.isfinite(scores).all()
    assert scores[0] > scores[1]


@given(hnp.arrays(np.float64, (5, 3), elements=st.floats(-6, 6)), st.integers(0, 2))
def test_the_hinge_is_the_true_logit_above_the_largest_other(logits: FloatArray, label: int) -> None:
    scores = Hinge().score(evidence_of(logits, np.full(5, label)))
    assert scores.tolist() == [row[label] - max(np.delete(row, label)) for row in logits]


def test_with_two_classes_the_hinge_is_the_margin() -> None:
    logits = np.random.default_rng(0).normal(size=(20, 2))
    evidence = evidence_of(logits, np.arange(20) % 2)
    assert (Hinge().score(evidence) == loss_to_margin(evidence.target_loss)).all()


@pytest.mark.parametrize("attack", [Hinge(), ModifiedEntropy()], ids=lambda one: one.name)
def test_losses_alone_are_refused(attack: Hinge | ModifiedEntropy) -> None:
    with pytest.raises(InputError, match="give logits and labels"):
        attack.score(Evidence(target_loss=[0.1, 0.2], labels=[0, 1]))
