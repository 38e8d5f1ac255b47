from __future__ import annotations

import numpy as np
import pytest

from glasshouse.core.errors import InputError
from glasshouse.graph import citation_graph
from glasshouse.graph.data.audited import chosen_nodes, sample_nodes

DATA = citation_graph(nodes=700, classes=5, seed=0)
IDS = np.array([f"n{node}" for node in range(700)])
TRUTH = np.arange(700) % 3 == 0


def test_every_node_is_drawn_equally_often() -> None:
    counts = np.zeros(700)
    for seed in range(1500):
        counts[sample_nodes(DATA, 70, seed=seed).nodes] += 1
    # a tenth of 1500, give or take five standard deviations of a binomial
    assert np.abs(counts - 150).max() < 5 * np.sqrt(1500 * 0.1 * 0.9)


def test_classes_and_degrees_are_in_the_sample_as_in_the_graph() -> None:
    labels = DATA.y.numpy()
    degree = np.bincount(DATA.edge_index[1].numpy(), minlength=700)
    plain: list[list[float]] = []
    ours: list[list[float]] = []
    random = np.random.default_rng(0)
    for seed in range(100):
        nodes = sample_nodes(DATA, 140, seed=seed).nodes
        other = random.choice(700, 140, replace=False)
        for found, rows in ((ours, nodes), (plain, other)):
            found.append([(labels[rows] == 2).mean(), np.log(degree[rows]).mean()])
    assert (np.std(ours, axis=0) < np.array([0.5, 0.9]) * np.std(plain, axis=0)).all()
    assert np.mean(ours, axis=0) == pytest.approx([(labels == 2).mean(), np.log(degree).mean()], abs=0.02)


@pytest.mark.parametrize("count", [1, 3, 50, 699])
def test_a_sample_has_as_many_nodes_as_wanted_each_once_and_the_same_again(count: int) -> None:
    sample = sample_nodes(DATA, count, seed=4)
    assert len(sample.nodes) == len(np.unique(sample.nodes)) == count
    assert sample.sizes.sum() == 700
    assert (sample.sizes > 0).all()
    assert count < 4 or np.bincount(sample.strata, minlength=len(sample.sizes)).min() >= 2
    assert (sample_nodes(DATA, count, seed=4).nodes == sample.nodes).all()


def test_nodes_may_be_a_number_positions_a_mask_or_names() -> None:
    def chosen(nodes: object) -> np.ndarray | None:
        return chosen_nodes(nodes, DATA, ids=IDS, members=TRUTH, seed=0).nodes  # type: ignore[arg-type]

    assert chosen(None) is None
    assert chosen(700) is None
    assert chosen(9000) is None
    drawn = chosen(np.int64(20))
    assert drawn is not None
    assert len(drawn) == 20
    assert chosen([4, 2]).tolist() == [4, 2]  # type: ignore[union-attr]
    assert chosen(["n4", "n2"]).tolist() == [2, 4]  # type: ignore[union-attr]
    assert chosen(TRUTH) is not None


def test_what_a_reader_must_know_is_said() -> None:
    found = chosen_nodes(20, DATA, ids=IDS, members=TRUTH, seed=0)
    assert "estimated from a sample of 20 of 700 nodes" in found.note
    assert found.sampled is not None
    assert found.sampled.members == TRUTH.sum()
    named = chosen_nodes([1, 2], DATA, ids=IDS, members=TRUTH, seed=0)
    assert named.sampled is None
    assert "hold for these alone" in named.note
    assert not chosen_nodes(np.arange(700), DATA, ids=IDS, members=TRUTH, seed=0).note


@pytest.mark.parametrize(("nodes", "said"), [(0, "too few"), (2.5, "neither a number"), (["n4", "zz"], "not in")])
def test_senseless_nodes_are_refused(nodes: object, said: str) -> None:
    with pytest.raises(InputError, match=said):
        chosen_nodes(nodes, DATA, ids=IDS, members=TRUTH, seed=0)  # type: ignore[arg-type]
