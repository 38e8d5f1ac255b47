from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from glasshouse import Evidence, InputError
from glasshouse.attacks import BASE
from glasshouse.core.arrays import BoolArray
from glasshouse.data import complementary_halves, random_subsets
from glasshouse.evaluation import auc
from glasshouse.evidence.simulation import left_out_models, reference_rows
from tests.strategies import random_evidence


def silent(members: BoolArray, seed: int = 0) -> Evidence:
    """Models that remember something of their members, and a target; the rest is noise."""
    random = np.random.default_rng(seed)
    loss = random.gamma(2.0, size=members.shape)
    return Evidence(target_loss=loss[0], shadow_loss=loss, shadow_members=members)


@given(random_evidence(min_models=4))
def test_neither_the_model_nor_its_complement_speaks_about_itself(evidence: Evidence) -> None:
    for k, target in enumerate(evidence.simulated()):
        rest = [j for j in range(evidence.models) if j not in (k, k ^ 1)]
        assert (target.view.target_loss == evidence.shadow_loss[k]).all()
        assert (target.members == evidence.shadow_members[k]).all()
        if evidence.records > 1:  # with one record every odd model is every even one's complement
            assert target.view.models == len(rest)
            assert (target.view.shadow_members.sum(axis=0) == len(rest) // 2).all()


def balanced_without_pairs(records: int, models: int, seed: int) -> BoolArray:
    """Every record in exactly half of the models, and no model the complement of another."""
    order = np.random.default_rng(seed).random((models, records)).argsort(axis=0)
    return order < models // 2


@pytest.mark.parametrize("design", ["pairs", "balanced", "independent"])
def test_the_references_do_not_give_the_label_away(design: str) -> None:
    """With losses that know nothing, counts of in-models must not tell members either."""
    members = {
        "pairs": complementary_halves(3000, models=8, seed=0),
        "balanced": balanced_without_pairs(3000, 8, 0),
        "independent": random_subsets(3000, models=8, fraction=0.4, seed=0),
    }[design]
    for target in silent(members).simulated():
        count = target.view.shadow_members.sum(axis=0).astype(float)
        assert auc(count, target.members) == pytest.approx(0.5, abs=0.04)
        assert auc(BASE().score(target.view), target.members) == pytest.approx(0.5, abs=0.04)


def test_a_balanced_pool_keeps_each_records_losses_together() -> None:
    members = balanced_without_pairs(20, 6, 1)
    evidence = silent(members)
    for k, target in enumerate(evidence.simulated()):
        for v in range(20):
            left = set(evidence.shadow_loss[:, v]) - set(target.view.shadow_loss[:, v])
            assert len(left) == 2
            assert evidence.shadow_loss[k, v] in left
            other = next(iter(left - {evidence.shadow_loss[k, v]}))
            partner = int(np.flatnonzero(evidence.shadow_loss[:, v] == other)[0])
            assert members[partner, v] != members[k, v]


def test_logits_follow_their_models() -> None:
    members = complementary_halves(10, models=4, seed=0)
    logits = np.random.default_rng(0).normal(size=(4, 10, 3))
    base = silent(members)
    evidence = Evidence(
        target_loss=base.target_loss,
        shadow_loss=base.shadow_loss,
        shadow_members=members,
        target_logits=logits[0],
        shadow_logits=logits,
    )
    first = next(evidence.simulated()).view
    assert first.shadow_logits is not None
    assert (first.shadow_logits == logits[2:]).all()


def test_two_models_are_too_few() -> None:
    with pytest.raises(InputError, match="train 4 or more"):
        next(silent(complementary_halves(5, models=2, seed=0)).simulated())


def plain_rows(members: BoolArray, k: int) -> NDArray[np.intp]:
    """The references of a target by looking at every model; of a balanced pool, by a search for each record."""
    others = np.delete(np.arange(len(members)), k)
    complements = [j for j in others if (members[j] != members[k]).all()]
    if complements:
        return np.asarray(others[others != complements[0]][:, None])
    if len(set(members.sum(axis=0).tolist())) > 1:
        return np.asarray(others[:, None])
    columns = []
    for v, inside in enumerate(members[k]):
        turns = [(place + v) % len(others) if members[j, v] != inside else -1 for place, j in enumerate(others)]
        columns.append(np.delete(others, int(np.argmax(turns))))
    return np.stack(columns, axis=1)


@given(
    design=st.sampled_from(["pairs", "balanced", "independent", "some pairs"]),
    models=st.integers(2, 6),
    records=st.integers(1, 20),
    seed=st.integers(0, 1000),
)
def test_references_are_found_as_by_looking_at_every_model(design: str, models: int, records: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    pairs = complementary_halves(records, models=2 * models, seed=seed)
    members = {
        "pairs": pairs,
        "balanced": random.random((models, records)).argsort(axis=0) < random.integers(models + 1),
        "independent": random.random((models, records)) < 0.5,
        "some pairs": np.concatenate([pairs, balanced_without_pairs(records, 4, seed)]),
    }[design]
    members = np.asfortranarray(members[random.permutation(len(members))])
    left = list(left_out_models(members))
    for k in range(len(members)):
        rows = reference_rows(members, k)
        plain = plain_rows(members, k)
        assert rows.shape == plain.shape
        assert (rows == plain).all()
        assert not (rows[:, None] == left[k]).any()
        assert len(rows) + len(left[k]) == len(members)
