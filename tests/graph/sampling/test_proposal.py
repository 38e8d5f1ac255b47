from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from glasshouse.graph.sampling.metropolis import draw_block, tuned


@given(count=st.integers(1, 30), share=st.floats(0.0, 0.5), steps=st.integers(0, 20), seed=st.integers(0, 99))
def test_a_proposal_flips_at_least_one_candidate_and_none_twice(
    count: int, share: float, steps: int, seed: int
) -> None:
    candidates = 3 * np.arange(count)
    block = draw_block(np.random.default_rng(seed), candidates, share=share, steps=steps)
    assert len(block.log_uniform) == steps == len(block.flips)
    assert (block.log_uniform <= 0).all()
    for nodes in block.flips:
        flipped = nodes.tolist()
        assert len(set(flipped)) == len(flipped) >= 1
        assert set(flipped) <= set(candidates.tolist())


def test_where_nobody_may_flip_proposals_are_empty() -> None:
    block = draw_block(np.random.default_rng(0), np.zeros(0, np.int64), share=0.1, steps=3)
    assert [len(nodes) for nodes in block.flips] == [0, 0, 0]


def test_sizes_are_even_and_odd_so_that_every_mask_can_be_reached() -> None:
    block = draw_block(np.random.default_rng(0), np.arange(100), share=0.05, steps=200)
    sizes = np.array([len(nodes) for nodes in block.flips])
    assert set((sizes % 2).tolist()) == {0, 1}
    assert abs(sizes.mean() - 5) < 0.5


@given(share=st.floats(0.001, 0.5), rate=st.floats(0, 1), smallest=st.floats(0.001, 1))
def test_the_share_follows_the_acceptance_rate_within_its_bounds(share: float, rate: float, smallest: float) -> None:
    found = tuned(share, rate, smallest=smallest)
    assert min(smallest, 0.5) <= found <= 0.5
    if min(smallest, 0.5) < found < 0.5:
        assert (found > share) == (rate > 0.3) or abs(found - share) < 1e-9
