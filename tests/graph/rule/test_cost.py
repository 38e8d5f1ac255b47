from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from glasshouse.graph import citation_graph
from glasshouse.graph.models.networks import build_gnn
from glasshouse.graph.models.profile import profile_models
from glasshouse.graph.rule.engines import Stack, audit_values, cut_question, engines, question_seconds
from glasshouse.graph.rule.question import Question, ask
from glasshouse.graph.rule.toggling import toggle_seconds


def question(nodes: int) -> Question:
    data = citation_graph(nodes=nodes)
    torch.manual_seed(0)
    return ask(data, torch.rand(8, nodes) < 0.5, torch.arange(nodes))


def chosen(architecture: str, asked: Question, *, hidden: int = 64, models: int = 9) -> str:
    made = [build_gnn(architecture, features=asked.x.shape[1], hidden=hidden, classes=7) for _ in range(models)]
    known = Stack(profile_models(made, asked.graph()))
    able = {name: one.seconds(known, asked) for name, one in engines().items() if one.supports(known, asked)}
    return min(able, key=lambda name: able[name])


@pytest.mark.parametrize("architecture", ["gcn", "gat"])
def test_kernels_are_compiled_for_a_graph_like_cora_and_not_for_the_embedded_default(architecture: str) -> None:
    assert chosen(architecture, question(2000)) == "layered"
    assert chosen(architecture, question(2708)) == "compiled"
    assert chosen(architecture, question(6000)) == "compiled"


def test_a_maximum_over_wide_features_is_compiled_earlier() -> None:
    assert chosen("sage", question(100)) == "layered"
    assert chosen("sage", question(2000)) == "compiled"


def test_the_engine_does_not_depend_on_the_number_of_models() -> None:
    """Simulated targets have fewer references than the target."""
    asked = question(2708)
    assert {chosen("gcn", asked, models=count) for count in (2, 7, 9)} == {"compiled"}


def test_values_grow_with_the_neighbourhoods_and_the_width() -> None:
    rings = [
        Data(
            x=torch.ones(60, 4),
            y=torch.zeros(60),
            edge_index=torch.tensor(
                [(u, (u + s * step) % 60) for u in range(60) for step in range(1, k + 1) for s in (1, -1)]
            ).T,
        )
        for k in (1, 2)
    ]
    model = build_gnn("gcn", features=4, hidden=8, classes=2)
    everyone = torch.ones(3, 60, dtype=torch.bool)
    (known,) = profile_models([model], rings[0])
    found = [audit_values(known, ask(ring, everyone, torch.arange(5))) for ring in rings]
    rows = [1 + 2 + 2 * 2, 1 + 4 + 4 * 4]  # nodes reached by walks of up to two steps
    np.testing.assert_allclose(found, [9 * 9 * 8 * 3 * 60 * count for count in rows])


def test_a_question_takes_its_share_of_what_is_predicted_for_an_audit() -> None:
    """An audit asks nine such questions about every node with nine models each."""
    whole = question(300)
    part = replace(whole, nodes=whole.nodes[:75])
    models = profile_models([build_gnn("gcn", features=whole.x.shape[1], hidden=8, classes=7)] * 3, whole.graph())
    audit = engines()["packed"].seconds(Stack(models), whole)
    assert question_seconds("packed", Stack(models), part) == pytest.approx(audit / 9 * 75 / 300 * 3 / 9)
    assert toggle_seconds(models, part, engine="packed") == question_seconds("packed", Stack(models), part)


@pytest.mark.parametrize(("seconds", "each", "count"), [(1.0, 4.0, 1), (1.0, 0.5, 2), (8.0, 4.0, 2), (32.0, 4.0, 8)])
def test_a_question_is_cut_by_its_predicted_seconds(seconds: float, each: float, count: int) -> None:
    blocks = cut_question(4, 100, seconds=seconds, each=each)
    assert len(blocks) == count
    pairs = [(i, j) for block in blocks for i in range(*block.masks) for j in range(*block.nodes)]
    assert sorted(pairs) == [(i, j) for i in range(4) for j in range(100)]
