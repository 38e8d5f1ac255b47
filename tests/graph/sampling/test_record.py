from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logit

from glasshouse.core.errors import InputError
from glasshouse.graph.sampling.chain_state import generators, starting_masks
from glasshouse.graph.sampling.posterior import prior_logits


@given(prior=st.lists(st.floats(0, 1), min_size=1, max_size=6))
def test_logits_of_a_prior_are_infinite_where_it_is_certain(prior: list[float]) -> None:
    with np.errstate(divide="ignore"):
        expected = logit(np.array(prior))
    np.testing.assert_allclose(prior_logits(np.array(prior), len(prior)), expected, rtol=1e-9, atol=1e-12)
    assert np.array_equal(
        prior_logits(torch.tensor(prior, dtype=torch.float64), len(prior)), prior_logits(np.array(prior), len(prior))
    )


@pytest.mark.parametrize("prior", [-0.1, 1.1, float("nan")])
def test_what_is_not_a_share_is_refused(prior: float) -> None:
    with pytest.raises(InputError, match="between 0 and 1"):
        prior_logits(prior, 3)


def test_a_chain_draws_the_same_however_many_run_beside_it() -> None:
    few, many = (starting_masks(0.5, 20, generators(7, chains)) for chains in (2, 5))
    assert np.array_equal(few, many[:2])
    assert not np.array_equal(many[0], many[1])


def test_chains_start_from_the_prior() -> None:
    masks = starting_masks(np.repeat([0.0, 0.3, 1.0], 400), 1200, generators(0, 4))
    assert not masks[:, :400].any()
    assert masks[:, 400:800].mean() == pytest.approx(0.3, abs=0.05)
    assert masks[:, 800:].all()
