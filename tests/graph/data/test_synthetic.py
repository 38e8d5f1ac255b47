from __future__ import annotations

import hashlib
import itertools

import numpy as np
import pytest
import torch

from glasshouse import Evidence
from glasshouse.attacks import BASE
from glasshouse.core.errors import InputError
from glasshouse.core.outputs import tensor_losses
from glasshouse.core.randomness import seed_for
from glasshouse.data import complementary_halves, random_subsets
from glasshouse.evaluation import auc, tpr_at_fpr
from glasshouse.graph.data.population import induced
from glasshouse.graph.data.synthetic import citation_graph
from glasshouse.graph.training.trainer import GNNTrainer, adam

GRAPH = citation_graph()


def test_it_has_the_sizes_of_a_citation_graph() -> None:
    assert GRAPH.x.shape == (2000, 1000)
    assert GRAPH.x.dtype == torch.float32
    assert GRAPH.edge_index.dtype == GRAPH.y.dtype == torch.int64
    assert GRAPH.num_edges == 8000
    assert np.bincount(GRAPH.y).min() > 150
    assert len(np.bincount(GRAPH.y)) == 7
    assert set(GRAPH.x.unique().tolist()) == {0.0, 1.0}
    assert 0.01 < float(GRAPH.x.mean()) < 0.03


def test_edges_run_both_ways_once_and_never_to_oneself() -> None:
    assert GRAPH.is_undirected()
    assert not GRAPH.has_self_loops()
    assert GRAPH.is_coalesced()
    assert not GRAPH.has_isolated_nodes()


@pytest.mark.parametrize("homophily", [0.2, 0.5, 0.8])
def test_the_share_of_edges_within_a_class_is_the_homophily(homophily: float) -> None:
    data = citation_graph(homophily=homophily)
    within = data.y[data.edge_index[0]] == data.y[data.edge_index[1]]
    assert float(within.double().mean()) == pytest.approx(homophily, abs=0.03)


def test_degrees_follow_a_power_law() -> None:
    degrees = torch.bincount(GRAPH.edge_index[0], minlength=2000)
    assert float(degrees.double().mean()) == pytest.approx(4.0)
    assert float(degrees.double().median()) <= 3
    assert int(degrees.max()) > 60
    tail = [int((degrees >= bound).sum()) for bound in (5, 10, 20, 40)]
    assert all(0 < more < less for less, more in itertools.pairwise(tail))


def test_the_same_seed_gives_the_same_bytes_and_another_seed_another_graph() -> None:
    def digest(seed: int) -> str:
        data = citation_graph(nodes=500, seed=seed)
        return hashlib.sha256(
            b"".join(part.numpy().tobytes() for part in (data.x, data.edge_index, data.y))
        ).hexdigest()

    assert digest(0) == digest(0) != digest(1)


def test_arguments_that_make_no_graph_are_all_named_at_once() -> None:
    with pytest.raises(InputError) as caught:
        citation_graph(nodes=20, homophily=1.2, on_topic=-0.1, mean_degree=0.0, words=10)
    names = [fault.split(":")[0] for fault in caught.value.faults]
    assert names == ["classes", "homophily", "on_topic", "mean_degree", "topic_words"]


def test_an_audit_of_it_shows_a_leak() -> None:
    """Train 0.99, test 0.87, and BASE on 0-hop queries an AUC of 0.75 with a TPR above 10 % at 1 % FPR."""
    trainer = GNNTrainer(hidden=64, dropout=0.5, epochs=50, optimizer=adam(lr=0.01), device="cpu")
    members = random_subsets(2000, models=1, fraction=0.5, seed=0)[0]
    shadow_members = complementary_halves(2000, models=8, seed=0)
    seeds = [seed_for(0, "target"), *(seed_for(0, "shadow", index) for index in range(8))]
    target, *shadows = trainer.train_many(GRAPH, np.concatenate([members[None], shadow_members]), seeds)

    def accuracy(nodes: np.ndarray) -> float:
        graph = induced(GRAPH, nodes)
        return float((target(graph.x, graph.edge_index).argmax(1) == graph.y).double().mean())

    def zero_hop(model: torch.nn.Module) -> np.ndarray:
        with torch.no_grad():
            return tensor_losses(model(GRAPH.x, torch.empty(2, 0, dtype=torch.long)), GRAPH.y).numpy()

    scores = BASE().score(
        Evidence(
            target_loss=zero_hop(target),
            shadow_loss=np.stack([zero_hop(model) for model in shadows]),
            shadow_members=shadow_members,
        )
    )
    assert accuracy(members) > 0.97
    assert 0.84 < accuracy(~members) < 0.92
    assert 0.71 < auc(scores, members) < 0.79
    assert tpr_at_fpr(scores, members, 0.01) > 0.08
