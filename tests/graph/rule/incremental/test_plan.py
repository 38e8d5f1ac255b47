from __future__ import annotations

import itertools

import torch
from torch_geometric.data import Data

from glasshouse.graph.rule.incremental.engine import make_plan, target_costs
from glasshouse.graph.rule.incremental.graph import coalesce, mask_graph
from glasshouse.graph.rule.incremental.operations import Builder
from glasshouse.graph.rule.incremental.program import ChangedBalls, changed_balls
from glasshouse.graph.rule.incremental.sum import Summed
from glasshouse.graph.rule.question import Question, ask
from tests.graph.random_graphs import FEATURES


def two_layers() -> list[ChangedBalls]:
    build = Builder(models=1, device=torch.device("cpu"), dtype=torch.float32)
    value = build.features(torch.ones(3, FEATURES))
    for width in (FEATURES, 8):
        weight = torch.ones(1, width, 8)
        value = build.rows(torch.relu, build.message(Summed(weight=weight, sample=weight), value))
    return changed_balls(build.operations, radius=None)


STEPS = two_layers()
COSTS = [step.cost() for step in STEPS]


def star(leaves: int) -> Question:
    """Node 0 is joined to all others."""
    spokes = torch.arange(1, leaves + 1)
    edges = torch.stack([torch.zeros_like(spokes), spokes])
    data = Data(
        x=torch.ones(leaves + 1, FEATURES), edge_index=torch.cat([edges, edges.flip(0)], 1), y=torch.zeros(leaves + 1)
    )
    return ask(data, torch.ones(3, leaves + 1, dtype=torch.bool), torch.arange(leaves + 1))


def test_one_model_and_one_mask_are_the_least_however_little_memory_there_is() -> None:
    plan = make_plan(COSTS, star(50), models=999, memory=1)
    assert (plan.models, plan.masks) == (1, 1)


def test_more_memory_never_means_less_at_once_and_temporary_arrays_stay_small_enough_for_torch() -> None:
    plans = [make_plan(COSTS, star(50), models=999, memory=2**power) for power in range(10, 45)]
    for fewer, more in itertools.pairwise(plans):
        assert fewer.models <= more.models
        assert fewer.temporary <= more.temporary <= 2**34
    assert plans[0].models == 1 < plans[-1].models


def test_a_hub_costs_more_than_a_lone_node_and_logits_cost_too() -> None:
    question = star(20)
    graph = mask_graph(coalesce(question.edge_index, question.size, torch.float32), question.masks[:1])
    alone = graph.members.new_zeros(1, question.size)
    empty = mask_graph(coalesce(question.edge_index, question.size, torch.float32), alone)
    few, many = (target_costs(one, question.nodes, STEPS, logits=3) for one in (empty, graph))
    assert (many[0] > few[0]).all()
    assert (target_costs(graph, question.nodes, STEPS, logits=6) > many).all()
