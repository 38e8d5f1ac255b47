from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from glasshouse.core.arrays import BoolArray
from glasshouse.graph.models.profile import profile_models
from glasshouse.graph.sampling import chain_state
from glasshouse.graph.sampling.chain_state import NO_ROWS, Chain, CompiledGroup, chain_maker, forward_losses
from glasshouse.graph.sampling.metropolis import OneChain, draw_block, metropolis_masks
from tests.graph.random_graphs import random_models
from tests.graph.sampling.plain_chains import joint_ratio, plain_metropolis
from tests.graph.simple_graphs import KERNELS, simple_graph


def some_usable(shadows: int, n: int) -> BoolArray:
    """About half of the shadow models are used for a node, at least one."""
    usable = np.random.default_rng(n).random((shadows, n)) < 0.5
    usable[0] |= ~usable.any(axis=0)
    return usable


def one_chain(models: Sequence[torch.nn.Module], data: Data, usable: BoolArray) -> Chain:
    """With the rows of all models kept in one group."""
    chain = chain_maker(profile_models(models, data), data, usable, threads=1)[0]()
    assert [type(group) for _, group in chain.groups] == [CompiledGroup]
    return chain


@pytest.mark.parametrize("offline", [False, True])
@pytest.mark.parametrize("architecture", KERNELS)
def test_a_compiled_chain_takes_the_steps_of_full_forward_passes(architecture: str, offline: bool) -> None:
    data = simple_graph(size=14, edges=22, seed=0, hub=True)
    models = random_models(architecture, layers=2, count=4, dtype=torch.float32)
    usable = some_usable(3, 14) if offline else None
    options = {"samples": 6, "burn_in": 60, "thinning": 10, "prior": 0.4, "seed": 2, "usable_shadows": usable}
    fast, quick = metropolis_masks(models, data, **options)  # type: ignore[arg-type]
    slow, taken = plain_metropolis(models, data, **options)  # type: ignore[arg-type]
    assert np.array_equal(fast, slow)
    assert quick.acceptance_rate == taken


@pytest.mark.parametrize("offline", [False, True])
@pytest.mark.parametrize("architecture", KERNELS)
def test_kept_totals_agree_with_a_forward_pass_after_many_undone_steps(architecture: str, offline: bool) -> None:
    n = 40
    data = simple_graph(size=n, edges=90, seed=1, hub=True)
    models = random_models(architecture, layers=2, count=3, dtype=torch.float32)
    usable = some_usable(2, n)
    chain = one_chain(models, data, usable.T.copy() if offline else NO_ROWS)
    source = np.random.default_rng(0)
    chain.begin(source.random(n) < 0.5)
    alone = OneChain(chain=chain, prior_logit=np.zeros(n))
    (taken,) = alone.steps([draw_block(source, np.arange(n), share=0.03, steps=300)])
    assert 0 < taken < 300
    mask = chain.mask
    losses = forward_losses(profile_models(models, data), data)(mask)
    if offline:
        assert chain.log_ratio() == pytest.approx(joint_ratio(losses, mask, usable), rel=1e-5)
    else:
        np.testing.assert_allclose(chain.groups[0][1].totals, losses[:, mask].sum(axis=1), rtol=1e-5)


@pytest.mark.parametrize("offline", [False, True])
@pytest.mark.parametrize("architecture", KERNELS)
def test_steps_of_many_flips_by_forward_passes_are_those_of_flip_after_flip(
    architecture: str, offline: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    n = 40
    data = simple_graph(size=n, edges=90, seed=1, hub=True)
    models = random_models(architecture, layers=2, count=3, dtype=torch.float32)
    usable = some_usable(2, n).T.copy() if offline else NO_ROWS
    source = np.random.default_rng(1)
    begin, blocks = source.random(n) < 0.5, [draw_block(source, np.arange(n), share=0.2, steps=20) for _ in range(3)]
    found = []
    for rows in (0.0, np.inf):
        chain = one_chain(models, data, usable)
        monkeypatch.setattr(chain.groups[0][1], "_rows_per_flip", rows)
        chain.begin(begin)
        alone = OneChain(chain=chain, prior_logit=np.linspace(-1, 1, n))
        found.append(([int(alone.steps([block])[0]) for block in blocks], chain.mask))
    assert found[0][0] == found[1][0]
    assert 0 < sum(found[0][0]) < 60
    assert np.array_equal(found[0][1], found[1][1])


def test_proposals_that_change_more_rows_than_there_are_take_forward_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    data = simple_graph(size=60, edges=500, seed=1)
    models = random_models("gcn", layers=2, count=3, dtype=torch.float32)
    chain = one_chain(models, data, NO_ROWS)
    chain.begin(np.arange(60) % 2 == 0)
    monkeypatch.setattr(chain_state, "flip_all", lambda *_: pytest.fail("flip after flip"))
    alone = OneChain(chain=chain, prior_logit=np.zeros(60))
    alone.steps([draw_block(np.random.default_rng(0), np.arange(60), share=0.2, steps=2)])


@pytest.mark.parametrize("offline", [False, True])
def test_long_run_frequencies_match_the_enumerated_posterior(offline: bool) -> None:
    n = 5
    usable = some_usable(3, n) if offline else None
    data = simple_graph(size=n, edges=7, seed=3)
    models = random_models("gcn", layers=2, count=4, dtype=torch.float32)
    prior = np.array([0.5, 0.3, 0.6, 0.7, 0.4])
    losses = forward_losses(profile_models(models, data), data)
    masks = np.array(list(itertools.product([False, True], repeat=n)))
    log_joint = [joint_ratio(losses(m), m, usable) + np.log(np.where(m, prior, 1 - prior)).sum() for m in masks]
    expected = np.exp(log_joint) / np.exp(log_joint).sum()
    options = {"samples": 3000, "thinning": 8, "burn_in": 500, "chains": 2, "prior": prior, "usable_shadows": usable}
    drawn, info = metropolis_masks(models, data, **options)  # type: ignore[arg-type]
    seen = np.bincount(drawn @ (1 << np.arange(n)[::-1]), minlength=2**n) / len(drawn)
    assert np.abs(expected - 1 / 2**n).sum() / 2 > 0.2, "a flat posterior would prove nothing"
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


def test_a_node_for_which_no_shadow_model_is_usable_is_refused() -> None:
    data = simple_graph(size=6, edges=8, seed=6)
    for usable in (np.zeros((2, 6), np.bool_), np.ones((2, 5), np.bool_), np.ones((2, 6), np.int64)):
        with pytest.raises(ValueError, match="each of 6 nodes needs a shadow model"):
            metropolis_masks(random_models("gcn", layers=2, count=3), data, usable_shadows=usable)  # type: ignore[arg-type]
