"""The stacked attack on a sample of the nodes: what it asks, and what it finds."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from glasshouse.attacks import BASE
from glasshouse.attacks.learners import Boosted
from glasshouse.core.errors import InputError
from glasshouse.evaluation import auc
from glasshouse.graph import GStacked, Scene
from glasshouse.graph.attacks.stacking import pool_signals
from glasshouse.graph.attacks.stacking.features import GraphContext
from glasshouse.graph.attacks.stacking.pool_signals import ask_pool
from tests.graph.scenes import on_nodes, trained_scene, truth_of

SOME = list(range(0, 240, 2))


@pytest.fixture
def sample(monkeypatch: pytest.MonkeyPatch) -> Scene:
    """Half of the nodes audited, and a tenth more to learn from."""
    monkeypatch.setattr(pool_signals, "TEACHING", 144)
    return on_nodes(trained_scene(shadows=8), SOME)


def test_a_context_of_some_nodes_holds_their_rows_of_the_whole_one() -> None:
    data, nodes = trained_scene().data, np.array(SOME)
    whole, some = GraphContext.of(data, kin=False), GraphContext.of(data, kin=False, nodes=nodes)
    assert (whole.degree[nodes] == some.degree).all()
    assert (whole.labels[nodes] == some.labels).all()
    assert (whole.adjacency[nodes] != some.adjacency).nnz == 0
    assert (whole.adjacency[nodes][:, nodes] != some.among).nnz == 0
    values = np.random.default_rng(0).random(240)
    np.testing.assert_allclose(whole.mean(values, alone=0.5)[nodes], some.mean(values, alone=0.5))
    neighbours = [np.intersect1d(whole.adjacency[[node]].indices, nodes) for node in SOME]
    expected = [values[near].mean() if len(near) else 0.5 for near in neighbours]
    np.testing.assert_allclose(some.mean(values[nodes], alone=0.5), expected)


def test_kin_of_some_nodes_are_those_of_the_graph_in_which_only_they_have_answers() -> None:
    """A graph without edges, where the rest of the graph cannot matter."""
    data, nodes = trained_scene().data.clone(), np.array(SOME)
    data.edge_index = torch.empty((2, 0), dtype=torch.long)
    part = data.subgraph(torch.from_numpy(nodes))
    surprise = np.random.default_rng(0).normal(size=len(nodes))
    found, expected = (
        context.kin["alone"].expected(surprise)
        for context in (GraphContext.of(data, nodes=nodes), GraphContext.of(part))
    )
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_models_are_asked_about_audited_nodes_and_some_more_to_learn_from(sample: Scene) -> None:
    attack = GStacked(samples=(2,), targets=4, sampled_models=4)
    pool, whole = (ask_pool(scene, attack) for scene in (sample, trained_scene(shadows=8)))
    assert pool.asked is not None
    assert len(pool.asked) == 144
    assert set(SOME) <= set(pool.asked.tolist())
    assert pool.sampled.own.shape[2] == 144
    assert whole.asked is None
    np.testing.assert_allclose(pool.sampled.signal, whole.sampled.signal[:, :, pool.asked], atol=1e-9)


def test_of_nodes_that_are_not_asked_about_the_odds_are_those_of_base(sample: Scene) -> None:
    attack = GStacked(samples=(2, 2), boosted=Boosted(rounds=5, leaves=7, fits=1), jobs=1).tuned(sample)
    known = attack.learned(sample)
    odds, _ = known.posterior_of(sample, 0.5)
    assert known.pool.asked is not None
    others = np.setdiff1d(np.arange(240), known.pool.asked)
    np.testing.assert_allclose(odds[others], BASE().log_odds(sample.zero_hop)[others])
    assert len(next(attack.simulated_scores(sample))[0]) == len(SOME)
    other = on_nodes(sample, [int(others[0])])
    with pytest.raises(InputError, match="learned for a sample of the nodes"):
        attack.score(other)


@pytest.mark.parametrize("mode", ["online", "offline"])
def test_on_a_sample_it_still_tells_members(sample: Scene, mode: str) -> None:
    attack = GStacked(mode=mode, samples=(4, 2), boosted=Boosted(rounds=20, leaves=15, fits=1), jobs=1)  # type: ignore[arg-type]
    truth = truth_of(sample)[sample.nodes]
    base = auc(BASE(mode=mode).score(sample.evidence), truth)  # type: ignore[arg-type]
    assert auc(attack.score(sample), truth) > base - 0.02
