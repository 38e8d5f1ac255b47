from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import rankdata

from glasshouse import Evidence, InputError
from glasshouse.attacks import BASE, RMIA
from glasshouse.core.arrays import FloatArray
from glasshouse.evaluation import roc
from tests.strategies import gaussian_evidence, random_evidence


def all_pairs(evidence: Evidence, population: Evidence, gamma: float, a: float | None) -> FloatArray:
    """RMIA as its authors write it, N x Z comparisons in log space; ``a`` None means online."""

    def log_ratio(some: Evidence) -> FloatArray:
        ratios = []
        for v in range(some.records):
            asked = some.shadow_loss[:, v] if a is None else some.shadow_loss[~some.shadow_members[:, v], v]
            p = np.mean(np.exp(-asked))
            ratios.append(-some.target_loss[v] - np.log(p if a is None else ((1 + a) * p + 1 - a) / 2))
        return np.array(ratios)

    x, z = log_ratio(evidence), log_ratio(population)
    return np.asarray((x[:, None] - z[None, :] >= np.log(gamma) - 1e-12).mean(axis=1))


@given(random_evidence())
def test_rmia_with_gamma_one_ranks_like_base(evidence: Evidence) -> None:
    """Theorem 2: over the whole population the two attacks are the same up to a monotone map."""
    rmia, base = RMIA(gamma=1.0).score(evidence), BASE().log_odds(evidence)
    assert (rankdata(rmia) == rankdata(base)).all()
    # the posterior itself may round two near neighbours to one number, but never turns them round
    posterior = BASE().score(evidence)[np.argsort(rmia, kind="stable")]
    assert (np.diff(posterior) >= 0).all()


@given(random_evidence(min_records=2), st.data())
def test_rmia_and_base_have_the_same_roc(evidence: Evidence, data: st.DataObject) -> None:
    """Theorem 2, as the paper's Lemma puts it: every threshold of one has its equal in the other."""
    members = np.array(data.draw(st.lists(st.booleans(), min_size=evidence.records, max_size=evidence.records)))
    members[0], members[-1] = True, False
    first, second = (roc(scores, members) for scores in (RMIA().score(evidence), BASE().log_odds(evidence)))
    assert (first.fpr == second.fpr).all()
    assert (first.tpr == second.tpr).all()


def test_the_posterior_has_that_roc_too_on_losses_as_models_give_them() -> None:
    evidence, members = gaussian_evidence(records=3000, models=8, shift=1.0, seed=0)
    first, second = (roc(attack.score(evidence), members) for attack in (RMIA(), BASE()))
    assert (first.fpr == second.fpr).all()
    assert (first.tpr == second.tpr).all()


@given(st.integers(0, 1000), st.sampled_from([0.5, 1.0, 2.0, 4.0]), st.sampled_from([None, 0.0, 0.3, 1.0]))
def test_sort_and_search_equals_all_pairs(seed: int, gamma: float, a: float | None) -> None:
    evidence, _ = gaussian_evidence(records=30, models=4, shift=1.0, seed=seed)
    others, _ = gaussian_evidence(records=17, models=4, shift=1.0, seed=seed + 1)
    attack = RMIA(gamma=gamma) if a is None else RMIA(mode="offline", gamma=gamma, offline_a=a)
    for population in (evidence, others):
        found = attack.score(evidence, population)
        assert found == pytest.approx(all_pairs(evidence, population, gamma, a), abs=1e-12)
    assert (attack.score(evidence) == attack.score(evidence, evidence)).all()


def test_the_offline_number_is_tuned_on_the_pool() -> None:
    evidence, _ = gaussian_evidence(records=400, models=8, shift=1.5, seed=0)
    attack = RMIA(mode="offline")
    tuned = attack.tuned(evidence).offline_a
    assert isinstance(tuned, float)
    assert 0.0 <= tuned <= 1.0
    other = Evidence(
        target_loss=evidence.target_loss[::-1],
        shadow_loss=evidence.shadow_loss,
        shadow_members=evidence.shadow_members,
    )
    assert attack.tuned(other).offline_a == tuned


def test_the_records_that_a_simulated_target_beats_are_weighted_to_the_prior() -> None:
    """Pair by pair: of Z, its own records, members weigh λ / s and others (1 − λ) / (1 − s)."""
    evidence, _ = gaussian_evidence(records=40, models=6, shift=2.0, seed=0)
    for k, (scores, members) in enumerate(RMIA(prior=0.1, gamma=1.2).simulated_scores(evidence)):
        rest = [row for row in range(6) if row // 2 != k // 2]  # neither the target nor its complement
        ratio = np.exp(-evidence.shadow_loss[k]) / np.exp(-evidence.shadow_loss[rest]).mean(axis=0)
        share = sum(members.tolist()) / 40
        weight = [0.1 / share if inside else 0.9 / (1 - share) for inside in members.tolist()]
        for v in range(40):
            beaten = sum(weight[z] for z in range(40) if ratio[v] / ratio[z] >= 1.2)
            assert scores[v] == pytest.approx(beaten / sum(weight))


def test_bad_parameters_are_refused() -> None:
    with pytest.raises(InputError, match="gamma"):
        RMIA(gamma=0.0)
    with pytest.raises(InputError, match="offline_a"):
        RMIA(offline_a=1.5)
