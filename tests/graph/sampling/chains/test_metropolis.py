from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from glasshouse.graph.rule.toggle.compiled.problem import build_problem
from glasshouse.graph.sampling.chains import metropolis_masks
from glasshouse.graph.sampling.chains.flipping import CompiledFlipper
from glasshouse.graph.sampling.chains.posterior import log_ratio
from glasshouse.graph.sampling.chains.proposal import draw_block
from glasshouse.graph.sampling.chains.whole_losses import forward_losses
from tests.graph.random_graphs import random_models
from tests.graph.sampling.chains.plain_chains import plain_metropolis
from tests.graph.simple_graphs import KERNELS, simple_graph


@pytest.mark.parametrize("architecture", KERNELS)
def test_a_compiled_chain_takes_the_steps_of_full_forward_passes(architecture: str) -> None:
    data = simple_graph(size=14, edges=22, seed=0, hub=True)
    models = random_models(architecture, layers=2, count=4, dtype=torch.float32)
    options = {"samples": 6, "burn_in": 60, "thinning": 10, "prior": 0.4, "seed": 2}
    fast, quick = metropolis_masks(models, data, **options)  # type: ignore[arg-type]
    slow, taken = plain_metropolis(models, data, **options)  # type: ignore[arg-type]
    assert np.array_equal(fast, slow)
    assert quick.acceptance_rate == taken


@pytest.mark.parametrize("architecture", KERNELS)
def test_kept_totals_agree_with_a_forward_pass_after_many_undone_steps(architecture: str) -> None:
    n = 40
    data = simple_graph(size=n, edges=90, seed=1, hub=True)
    models = random_models(architecture, layers=2, count=3, dtype=torch.float32)
    flipper = CompiledFlipper(problem=build_problem(models, data), prior_logit=np.zeros(n))
    source = np.random.default_rng(0)
    flipper.begin(source.random(n) < 0.5)
    taken = flipper.steps(draw_block(source, np.arange(n), share=0.1, steps=300))
    assert 0 < taken < 300
    mask = flipper.mask()
    expected = forward_losses(models, data)(mask)[:, mask].sum(axis=1)
    np.testing.assert_allclose(flipper.totals, expected, rtol=1e-5)


def test_long_run_frequencies_match_the_enumerated_posterior() -> None:
    n = 6
    data = simple_graph(size=n, edges=9, seed=3)
    models = random_models("gcn", layers=2, count=4, dtype=torch.float32)
    prior = np.array([0.5, 0.3, 0.6, 0.5, 0.7, 0.4])
    losses = forward_losses(models, data)
    masks = np.array(list(itertools.product([False, True], repeat=n)))
    log_joint = [log_ratio(losses(m)[:, m].sum(axis=1)) + np.log(np.where(m, prior, 1 - prior)).sum() for m in masks]
    expected = np.exp(log_joint) / np.exp(log_joint).sum()
    drawn, info = metropolis_masks(models, data, samples=8000, thinning=8, burn_in=500, chains=2, prior=prior)
    seen = np.bincount(drawn @ (1 << np.arange(n)[::-1]), minlength=2**n) / len(drawn)
    assert np.abs(expected - 1 / 64).sum() / 2 > 0.2, "a flat posterior would prove nothing"
    assert np.abs(seen - expected).sum() / 2 < 0.07
    assert info.acceptance_rate > 0.1


def test_the_flip_share_is_tuned_to_the_wanted_acceptance_rate() -> None:
    data = simple_graph(size=150, edges=200, seed=4)
    models = random_models("gcn", layers=2, count=5, dtype=torch.float32)
    _, info = metropolis_masks(models, data, samples=10, thinning=100, burn_in=3000, flip_share=0.5)
    assert 0.2 <= info.acceptance_rate <= 0.4


def test_masks_depend_on_the_seed_and_not_on_the_threads() -> None:
    data = simple_graph(size=30, edges=60, seed=4)
    models = random_models("gat", layers=2, count=3, dtype=torch.float32)
    one, two, other = (
        metropolis_masks(models, data, samples=5, burn_in=50, thinning=10, chains=2, seed=seed, threads=threads)[0]
        for seed, threads in ((7, 1), (7, 2), (8, 2))
    )
    assert one.tobytes() == two.tobytes()
    assert not np.array_equal(one, other)


def test_certain_priors_are_obeyed() -> None:
    data = simple_graph(size=10, edges=15, seed=5)
    models = random_models("gcn", layers=2, count=3, dtype=torch.float32)
    prior = np.array([0.0] * 4 + [0.5] * 2 + [1.0] * 4)
    for walk in (metropolis_masks, plain_metropolis):
        masks, _ = walk(models, data, samples=4, burn_in=50, thinning=5, prior=prior)
        assert not masks[:, :4].any()
        assert masks[:, 6:].all()


def test_a_lone_target_model_is_refused() -> None:
    data = simple_graph(size=6, edges=8, seed=6)
    with pytest.raises(ValueError, match="shadow"):
        metropolis_masks(random_models("gcn", layers=2, count=1), data)
