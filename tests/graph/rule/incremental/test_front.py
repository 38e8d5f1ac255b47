from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from glasshouse.graph.rule.incremental.balls import draw_rings, target_ball
from glasshouse.graph.rule.incremental.engine import Front, growth_costs
from glasshouse.graph.rule.incremental.graph import MaskedGraph, coalesce, mask_graph
from glasshouse.graph.rule.incremental.sum import Summed
from tests.graph.random_graphs import Case, random_cases


def masked(case: Case) -> MaskedGraph:
    return mask_graph(coalesce(case.data.edge_index, int(case.data.num_nodes), torch.float64), case.masks)


def start(graph: MaskedGraph) -> Front:
    targets = torch.arange(len(graph.members))
    return Front(targets=targets, removes=graph.members, ball=target_ball(graph, targets), first=True)


@given(case=random_cases())
def test_a_front_that_grows_step_by_step_finds_the_rings(case: Case) -> None:
    graph = masked(case)
    front = start(graph)
    rings = draw_rings(graph, front.targets, radius=2, around=False)
    for hops in (1, 2):
        ball = front.grown(graph).balls[1]
        assert torch.equal(ball.keys, rings.balls[hops].keys)
        assert torch.equal(ball.degree_change, rings.balls[hops].degree_change)
        front = Front(targets=front.targets, removes=front.removes, ball=ball)


@given(case=random_cases(), cut=st.tuples(st.integers(0, 27), st.integers(1, 28)).map(sorted))
def test_a_part_of_a_front_is_the_front_of_those_targets_alone(case: Case, cut: list[int]) -> None:
    graph = masked(case)
    whole = start(graph)
    ball = whole.grown(graph).balls[1]
    some = slice(min(cut[0], len(whole.targets) - 1), max(min(cut[1], len(whole.targets)), 1))
    part, rows = Front(targets=whole.targets, removes=whole.removes, ball=ball).part(some, len(graph.members))
    alone = draw_rings(graph, whole.targets[some], radius=1, around=False).balls[1]
    assert torch.equal(part.ball.keys, alone.keys)
    assert torch.equal(part.ball.centre, alone.centre)
    assert torch.equal(ball.node[rows], alone.node)


@given(case=random_cases())
def test_the_estimate_of_a_growth_is_no_less_than_what_it_grows_to(case: Case) -> None:
    graph = masked(case)
    front = start(graph)
    layer = Summed.of(weight=torch.ones(2, 5, 3), bias=None, normalisation="symmetric")
    costs = growth_costs(graph, front, layer, shared=True, logits=6)
    least = growth_costs(graph, front, layer, shared=True, logits=0)
    ball = front.grown(graph).balls[1]
    rows = torch.bincount(ball.target, minlength=len(front.targets))
    assert (costs >= rows * layer.cost(shared=True).row).all()
    assert (costs > least).all()
