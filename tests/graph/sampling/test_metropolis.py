from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from glasshouse.arrays import BoolArray
from glasshouse.graph.models.profile import profile_models
from glasshouse.graph.rule.two_layers.engine import stack_models
from glasshouse.graph.sampling import metropolis
from glasshouse.graph.sampling.chain_state import forward_losses, log_ratio
from glasshouse.graph.sampling.metropolis import CompiledFlipper, draw_block, metropolis_masks
from tests.graph.random_graphs import random_models
from tests.graph.sampling.plain_chains import joint_ratio, plain_metropolis
from tests.graph.simple_graphs import KERNELS, simple_graph, unmeasured


def some_asked(shadows: int, n: int) -> BoolArray:
    """About half of the shadow models may speak about a node, at least one."""
    asked = np.random.default_rng(n).random((shadows, n)) < 0.5
    asked[0] |= ~asked.any(axis=0)
    return asked


@pytest.mark.parametrize("offline", [False, True])
@pytest.mark.parametrize("architecture", KERNELS)
def test_a_compiled_chain_takes_the_steps_of_full_forward_passes(architecture: str, offline: bool) -> None:
    data = simple_graph(size=14, edges=22, seed=0, hub=True)
    models = random_models(architecture, layers=2, count=4, dtype=torch.float32)
    asked = some_asked(3, 14) if offline else None
    options = {"samples": 6, "burn_in": 60, "thinning": 10, "prior": 0.4, "seed": 2, "asked": asked}
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
    asked = some_asked(2, n)
    given = {"asked": asked.T.copy()} if offline else {}
    flipper = CompiledFlipper(problem=stack_models(unmeasured(models), data), prior_logit=np.zeros(n), **given)
    source = np.random.default_rng(0)
    flipper.begin(source.random(n) < 0.5)
    taken = flipper.steps(draw_block(source, np.arange(n), share=0.03, steps=300))
    assert 0 < taken < 300
    mask = flipper.mask()
    losses = forward_losses(profile_models(models, data), data)(mask)
    if offline:
        assert log_ratio(flipper.totals) == pytest.approx(joint_ratio(losses, mask, asked), rel=1e-5)
    else:
        np.testing.assert_allclose(flipper.totals, losses[:, mask].sum(axis=1), rtol=1e-5)


@pytest.mark.parametrize("offline", [False, True])
@pytest.mark.parametrize("architecture", KERNELS)
def test_steps_of_many_flips_by_forward_passes_are_those_of_flip_after_flip(
    architecture: str, offline: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    n = 40
    data = simple_graph(size=n, edges=90, seed=1, hub=True)
    models = random_models(architecture, layers=2, count=3, dtype=torch.float32)
    given = {"asked": some_asked(2, n).T.copy()} if offline else {}
    problem = stack_models(unmeasured(models), data)
    source = np.random.default_rng(1)
    begin, blocks = source.random(n) < 0.5, [draw_block(source, np.arange(n), share=0.2, steps=20) for _ in range(3)]
    found = []
    for rows in (0.0, np.inf):
        monkeypatch.setattr(metropolis, "changed_rows", lambda block, start, rows=rows: rows)
        flipper = CompiledFlipper(problem=problem, prior_logit=np.linspace(-1, 1, n), **given)
        flipper.begin(begin)
        found.append(([flipper.steps(block) for block in blocks], flipper.mask()))
    assert found[0][0] == found[1][0]
    assert 0 < sum(found[0][0]) < 60
    assert np.array_equal(found[0][1], found[1][1])


def test_proposals_that_change_more_rows_than_there_are_take_forward_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    data = simple_graph(size=60, edges=500, seed=1)
    models = random_models("gcn", layers=2, count=3, dtype=torch.float32)
    flipper = CompiledFlipper(problem=stack_models(unmeasured(models), data), prior_logit=np.zeros(60))
    flipper.begin(np.arange(60) % 2 == 0)
    monkeypatch.setattr(metropolis, "propose_all", lambda *_: pytest.fail("flip after flip"))
    flipper.steps(draw_block(np.random.default_rng(0), np.arange(60), share=0.2, steps=2))


@pytest.mark.parametrize("offline", [False, True])
def test_long_run_frequencies_match_the_enumerated_posterior(offline: bool) -> None:
    n = 6
    asked = some_asked(3, n) if offline else None
    data = simple_graph(size=n, edges=9, seed=3)
    models = random_models("gcn", layers=2, count=4, dtype=torch.float32)
    prior = np.array([0.5, 0.3, 0.6, 0.5, 0.7, 0.4])
    losses = forward_losses(profile_models(models, data), data)
    masks = np.array(list(itertools.product([False, True], repeat=n)))
    log_joint = [joint_ratio(losses(m), m, asked) + np.log(np.where(m, prior, 1 - prior)).sum() for m in masks]
    expected = np.exp(log_joint) / np.exp(log_joint).sum()
    options = {"samples": 8000, "thinning": 8, "burn_in": 500, "chains": 2, "prior": prior, "asked": asked}
    drawn, info = metropolis_masks(models, data, **options)  # type: ignore[arg-type]
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


def test_a_node_about_which_no_model_may_speak_is_refused() -> None:
    data = simple_graph(size=6, edges=8, seed=6)
    for asked in (np.zeros((2, 6), np.bool_), np.ones((2, 5), np.bool_), np.ones((2, 6), np.int64)):
        with pytest.raises(ValueError, match="each of 6 nodes needs a shadow model"):
            metropolis_masks(random_models("gcn", layers=2, count=3), data, asked=asked)  # type: ignore[arg-type]
