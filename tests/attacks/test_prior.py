from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glasshouse import InputError
from glasshouse.attacks.prior import check_prior, learned_posterior, prior_log_odds, prior_weights, with_prior


def test_one_prior_or_one_a_record_become_log_odds() -> None:
    assert prior_log_odds(0.9, 5) == pytest.approx(np.log(9.0))
    assert prior_log_odds([0.5, 0.9], 2) == pytest.approx([0.0, np.log(9.0)])
    with pytest.raises(InputError, match="3 numbers for 2 records"):
        prior_log_odds([0.5, 0.5, 0.5], 2)


@pytest.mark.parametrize("prior", [0.0, 1.0, -0.1, [0.5, 1.2], float("nan")])
def test_what_is_no_probability_is_refused(prior: float | list[float]) -> None:
    with pytest.raises(InputError, match="not between 0 and 1"):
        check_prior(prior)


@pytest.mark.parametrize("several", [False, True], ids=["one prior", "one per record"])
def test_weights_are_by_the_share_of_each_model(several: bool) -> None:
    """λ / s or (1 − λ) / (1 − s), written out; the shares s of models differ, and so do those of records."""
    members = np.array([[True, False, False], [True, False, True], [True, True, False]])
    prior = np.array([0.1, 0.4, 0.7]) if several else np.full(3, 0.1)
    expected = np.empty((3, 3))
    for k in range(3):
        inside = sum(bool(one) for one in members[k]) / 3
        for v in range(3):
            expected[k, v] = prior[v] / inside if members[k, v] else (1 - prior[v]) / (1 - inside)
    given_prior = prior if several else 0.1
    assert prior_weights(members, given_prior) == pytest.approx(expected)
    assert prior_weights(members[1], given_prior) == pytest.approx(expected[1])
    assert prior_weights(members, given_prior, some=slice(1, 3)) == pytest.approx(expected[:, 1:])


@given(odds=st.floats(-20, 20), share=st.floats(0.01, 0.99), prior=st.floats(0.01, 0.99))
def test_another_prior_is_bayes_rule_with_the_same_likelihood_ratio(odds: float, share: float, prior: float) -> None:
    ratio = np.exp(odds) * (1 - share) / share
    expected = prior * ratio / (prior * ratio + 1 - prior)
    assert learned_posterior(with_prior(np.array([odds]), share=share, prior=prior)) == pytest.approx(expected)


def test_nothing_that_was_learned_is_certain() -> None:
    found = learned_posterior(np.array([-1e6, 1e6]))
    assert found[0] > 0
    assert found[1] < 1
