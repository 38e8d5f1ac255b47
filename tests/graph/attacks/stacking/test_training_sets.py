from __future__ import annotations

import numpy as np
import pytest

from glasshouse.graph.attacks.stacking.pool_signals import draw_training_sets


@pytest.mark.parametrize("samples", [1, 2, 5, 8])
def test_a_node_is_in_as_many_sets_as_its_chance_says(samples: int) -> None:
    random = np.random.default_rng(samples)
    chances = np.concatenate([random.random(500), [0.0, 1.0]])
    often = draw_training_sets(chances, samples=samples, random=random).sum(axis=0)
    assert (np.abs(often - samples * chances) < 1).all()


def test_one_set_alone_is_like_coins() -> None:
    """Every set has each node with its chance, and two nodes independently of each other."""
    random, chances = np.random.default_rng(0), np.array([0.1, 0.5, 0.9, 0.5])
    drawn = np.stack([draw_training_sets(chances, samples=4, random=random) for _ in range(4000)])
    for number in range(4):
        np.testing.assert_allclose(drawn[:, number].mean(axis=0), chances, atol=0.03)
        both = (drawn[:, number, :, None] & drawn[:, number, None, :]).mean(axis=0)
        expected = np.outer(chances, chances)
        apart = ~np.eye(4, dtype=bool)
        np.testing.assert_allclose(both[apart], expected[apart], atol=0.03)


def test_a_mean_over_the_sets_varies_less_than_over_independent_ones() -> None:
    random, chances, worth = np.random.default_rng(0), np.full(20, 0.4), np.arange(20.0)

    def spread(sets: list[np.ndarray]) -> float:
        return float(np.var([(one @ worth).mean() for one in sets]))

    ours = [draw_training_sets(chances, samples=4, random=random) for _ in range(300)]
    assert spread(ours) < 0.25 * spread([random.random((4, 20)) < chances for _ in range(300)])
