from __future__ import annotations

import itertools
import math

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch_geometric.data import Data

from glasshouse.graph.models.networks import GNN
from glasshouse.graph.models.profile import profile_models
from glasshouse.graph.rule.reference import reference_losses
from glasshouse.graph.rule.two_layers.engine import compiled_toggles, fill_state, stack_models, toggle_all
from glasshouse.graph.rule.two_layers.graph import arrange
from glasshouse.graph.sampling.gibbs import gibbs_masks, sweep
from glasshouse.graph.sampling.posterior import membership_probability, prior_logits
from tests.graph.random_graphs import random_models
from tests.graph.sampling.plain_chains import Signal, plain_gibbs
from tests.graph.simple_graphs import KERNELS, in_float64, simple_graph, unmeasured


def exact_signal(models: list[GNN], data: Data) -> Signal:
    doubled, graph = in_float64(models, data)
    profiled = profile_models(doubled, graph)  # once: a chain asks hundreds of times

    def signal(mask: npt.NDArray[np.bool_], v: int) -> npt.NDArray[np.float64]:
        return (
            reference_losses(profiled, graph, torch.from_numpy(mask)[None], torch.tensor([v]))[:, 0, 0]
            .contiguous()
            .numpy()
        )

    return signal


@pytest.mark.parametrize("architecture", KERNELS)
def test_a_compiled_chain_takes_the_steps_of_the_rule_as_written(architecture: str) -> None:
    """Equal draws from equal random numbers: every conditional along the way was the rule's at that state."""
    data = simple_graph(size=12, edges=18, seed=0, hub=True)
    models = random_models(architecture, layers=2, count=4, dtype=torch.float32)
    fast, info = gibbs_masks(models, data, chains=2, passes=3, prior=0.6, seed=1)
    slow, _ = plain_gibbs(exact_signal(models, data), 12, chains=2, passes=3, prior=0.6, seed=1)
    assert np.array_equal(fast, slow)
    assert 0 < info.flip_share < 1


@pytest.mark.parametrize("architecture", KERNELS)
def test_the_kept_rows_do_not_drift_along_a_chain(architecture: str) -> None:
    n = 60
    data = simple_graph(size=n, edges=150, seed=1, hub=True, words=True)
    models = random_models(architecture, layers=2, count=3, dtype=torch.float32)
    problem = stack_models(unmeasured(models), data)
    source = np.random.default_rng(0)
    graph = arrange(problem.graph, source.random(n) < 0.5)
    state, scratch = problem.new_state(), problem.new_scratch()
    fill_state(problem.weights, graph, state, scratch)
    for _ in range(5):
        sweep(
            problem.weights,
            source.permutation(n),
            source.random(n),
            np.zeros(n),
            np.ones((n, 2), bool),
            graph,
            state,
            scratch,
        )
    kept, nodes = np.zeros((3, n)), np.arange(n)
    toggle_all(problem.weights, False, nodes, graph, state, kept, scratch, nodes)
    fresh = compiled_toggles(unmeasured(models), data, graph.member[None], nodes).signal[:, 0]
    np.testing.assert_allclose(kept, fresh, atol=1e-5)


def stationary(signal: Signal, n: int, prior: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Of the transition matrix of one pass: the mean over visiting orders of products of single-node draws, [2^n]."""
    masks = np.array(list(itertools.product([False, True], repeat=n)))
    place = {mask.tobytes(): i for i, mask in enumerate(masks)}
    steps = np.zeros((n, len(masks), len(masks)))
    for without, left in enumerate(masks):
        for v in np.flatnonzero(~left).tolist():  # a draw of v is the same with v and without it
            joined = left.copy()
            joined[v] = True
            chance = membership_probability(
                ask := signal(left, int(v)), prior_logits(prior, n)[v], np.ones(len(ask) - 1, bool)
            )
            within = place[joined.tobytes()]
            steps[v, [without, within], within] = chance
            steps[v, [without, within], without] = 1 - chance
    over_orders = {frozenset[int](): np.eye(len(masks))}  # by the nodes visited: the sum over their orders
    for count in range(1, n + 1):
        for visited in map(frozenset, itertools.combinations(range(n), count)):
            over_orders[visited] = sum(over_orders[visited - {v}] @ steps[v] for v in visited)  # v comes last
    one_pass = over_orders[frozenset(range(n))] / math.factorial(n)
    return np.asarray(np.linalg.matrix_power(one_pass, 200)[0])


def frequencies(masks: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
    n = masks.shape[1]
    return np.bincount(masks @ (1 << np.arange(n)[::-1]), minlength=2**n) / len(masks)


def test_long_run_frequencies_match_the_enumerated_chain() -> None:
    data = simple_graph(size=5, edges=7, seed=3)
    models = random_models("gcn", layers=2, count=4, dtype=torch.float32)
    prior = np.array([0.5, 0.3, 0.6, 0.7, 0.4])
    expected = stationary(exact_signal(models, data), 5, prior)
    masks, _ = gibbs_masks(models, data, chains=4000, passes=15, prior=prior, seed=0)
    assert np.abs(expected - 1 / 32).sum() / 2 > 0.2, "a flat posterior would prove nothing"
    assert np.abs(frequencies(masks) - expected).sum() / 2 < 0.07


def test_masks_depend_on_the_seed_and_not_on_the_threads() -> None:
    data = simple_graph(size=30, edges=60, seed=4)
    models = random_models("sage", layers=2, count=3, dtype=torch.float32)
    one, two = (gibbs_masks(models, data, chains=5, passes=2, seed=7, threads=threads)[0] for threads in (1, 2))
    other = gibbs_masks(models, data, chains=5, passes=2, seed=8)[0]
    assert one.tobytes() == two.tobytes()
    assert not np.array_equal(one, other)


def test_certain_priors_are_obeyed() -> None:
    data = simple_graph(size=10, edges=15, seed=5)
    models = random_models("gcn", layers=2, count=3, dtype=torch.float32)
    prior = np.array([0.0] * 5 + [1.0] * 5)
    masks, info = gibbs_masks(models, data, chains=2, prior=prior)
    assert np.array_equal(masks, np.broadcast_to(prior == 1, (2, 10)))
    assert info.flip_share == 0


def test_models_without_kernels_are_asked_through_the_other_engines() -> None:
    data = simple_graph(size=6, edges=8, seed=6)
    masks, _ = gibbs_masks(random_models("gin", layers=2, count=2, dtype=torch.float32), data, chains=2)
    assert masks.shape == (2, 6)


def test_faults_are_named() -> None:
    data = simple_graph(size=6, edges=8, seed=6)
    models = random_models("gcn", layers=2, count=2, dtype=torch.float32)
    with pytest.raises(ValueError, match="shadow"):
        gibbs_masks(models[:1], data)
    with pytest.raises(ValueError, match="between 0 and 1"):
        gibbs_masks(models, data, prior=1.5)
    with pytest.raises(ValueError, match="usable_shadows"):
        gibbs_masks(models, data, usable_shadows=np.zeros((1, 6), np.bool_))
