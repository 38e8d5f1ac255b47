"""benchmarks/paper/theorem_1.py: the paper's Theorem 1 holds on small graphs, where both sides can be written out."""

from __future__ import annotations

import numpy as np
import pytest

from tests.benchmarks.scripts import benchmark


@pytest.mark.parametrize(("seed", "dependent", "share", "apart"), [(0, False, 0.5, 0.02), (2, True, 0.3, 0.002)])
def test_the_theorem_is_the_posterior_that_enumeration_gives(
    seed: int, dependent: bool, share: float, apart: float
) -> None:
    """Over every node whose prediction changes: a GCN's degrees carry a change one hop beyond its layers."""
    world = benchmark("theorem_1").small_world(nodes=5, seed=seed, dependent=dependent, share=share)
    exact = world.exact()
    assert exact.shape == (80, 5)
    assert exact.min() < 0.1 < 0.6 < exact.max()
    np.testing.assert_allclose(world.theorem(hops="affected"), exact, atol=1e-5)
    assert apart < np.abs(world.theorem() - exact).max() < 0.05  # over the L-hop neighbourhood, as the paper writes it
    # the prior and the models' own training set matter
    assert (np.abs(world.theorem(hops="affected", ratio=False) - exact).max() > 0.1) == dependent
    assert np.abs(world.theorem(hops="affected", own_models=False) - exact).max() > 0.01


def test_the_posterior_is_the_share_of_games_in_which_the_node_was_a_member() -> None:
    """Enumeration against play: nodes with a posterior near p are members in a share near p of many games."""
    script = benchmark("theorem_1")
    world = script.small_world(nodes=4, seed=3)
    exact, random = world.exact(), np.random.default_rng(0)
    posteriors, truth = [], []
    for _ in range(3000):
        members = random.random(4) < 0.5
        posteriors.append(exact[script._drawn(world, members, random)])
        truth.append(members)
    found, known = np.concatenate(posteriors), np.concatenate(truth)
    order = np.argsort(found)
    for part in np.array_split(order, 5):
        error = np.sqrt(0.25 / len(part))
        assert abs(found[part].mean() - known[part].mean()) < 4 * error
