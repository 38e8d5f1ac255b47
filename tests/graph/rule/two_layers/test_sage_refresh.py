from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from glasshouse.graph.rule.two_layers.engine import fill_state, stack_models
from glasshouse.graph.rule.two_layers.graph import arrange
from glasshouse.graph.sampling.gibbs import sweep
from tests.graph.random_graphs import random_models
from tests.graph.simple_graphs import simple_graph, unmeasured


@pytest.mark.parametrize("words", [True, False])
@settings(max_examples=25, deadline=None)
@given(size=st.integers(2, 160), share=st.sampled_from([0.02, 0.3, 2.0]), seed=st.integers(0, 2**31))
def test_rows_kept_along_a_chain_are_those_of_a_forward_pass(words: bool, size: int, share: float, seed: int) -> None:
    """To the last bit, whoever came and went: around a hub of up to 158 neighbours, with ties and without."""
    data = simple_graph(size=size, edges=int(share * size), seed=seed, hub=True, words=words)
    problem = stack_models(unmeasured(random_models("sage", layers=2, count=3, dtype=torch.float32)), data, threads=1)
    source = np.random.default_rng(seed)
    kept = problem.new_state()
    graph, scratch = arrange(problem.graph, source.random(size) < source.random()), problem.new_scratch()
    fill_state(problem.weights, graph, kept, scratch)
    even_odds, everybody = np.zeros(size), np.ones((size, 2), bool)
    for _ in range(2):
        order, uniform = source.permutation(size), source.random(size)
        sweep(problem.weights, order, uniform, even_odds, everybody, graph, kept, scratch)
    fresh, members = problem.new_state(), graph.member
    fill_state(problem.weights, graph, fresh, problem.new_scratch())
    for name, rows, expected in zip(kept._fields, kept, fresh, strict=True):
        np.testing.assert_array_equal(rows[members], expected[members], err_msg=name)
