from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.data import Subset
from torch_geometric.data import Batch, Data, HeteroData
from torch_geometric.loader import DataLoader

import glasshouse.graph
from glasshouse import InputError, Population, audit
from glasshouse.data import features
from glasshouse.graph.data.graph_list import _MOST, Graphs, check_one_graph
from tests.graph.molecules import Dataset, molecules

GRAPHS = molecules(12, bonds=True)


def changed(how: Callable[[Data], Any], place: int | None = None) -> list[Data]:
    """Copies of the graphs, of which all or one are changed."""
    found = [graph.clone() for graph in GRAPHS]
    for number, graph in enumerate(found):
        if place in (None, number):
            how(graph)
    return found


def give(name: str, value: Any) -> Callable[[Data], None]:
    return lambda graph: setattr(graph, name, value(graph) if callable(value) else value)


@pytest.mark.parametrize(
    "door",
    [
        list,
        tuple,
        Dataset,
        Batch.from_data_list,
        Graphs,
        lambda graphs: Subset(Dataset(graphs), range(len(graphs))),
    ],
    ids=["list", "tuple", "dataset", "batch", "graphs", "subset"],
)
def test_the_population_is_the_same_through_every_door(door: Callable[[list[Data]], Any]) -> None:
    plain, other = Population(GRAPHS), Population(door(GRAPHS))
    assert other.fingerprint() == plain.fingerprint()
    assert (other.digests() == plain.digests()).all()
    assert (other.y == [int(graph.y) for graph in GRAPHS]).all()
    assert isinstance(other.x, Graphs)


def test_two_lists_of_graphs_become_one_population_and_its_members() -> None:
    found, members = Population.from_parts(Population(GRAPHS[:7]), Population(GRAPHS[7:]))
    assert (found.digests() == Population(GRAPHS).digests()).all()
    assert members.tolist() == [True] * 7 + [False] * 5
    with pytest.raises(InputError, match="train are of type Graphs and those of holdout of type ndarray"):
        Population.from_parts(Population(GRAPHS), Population(np.zeros((3, 2)), [0, 1, 0]))


def test_labels_of_ones_own_replace_those_of_the_graphs() -> None:
    names = ["toxic" if number % 3 else "harmless" for number in range(12)]
    population = Population(changed(give("y", None)), names)
    assert population.classes.tolist() == ["harmless", "toxic"]
    whole = Population(changed(give("y", lambda graph: graph.y.double().view(1, 1))))
    assert whole.classes.tolist() == [0, 1]


def test_equal_graphs_have_equal_digests_and_any_difference_shows() -> None:
    def swap_two_edges(graph: Data) -> None:
        graph.edge_index = graph.edge_index.flip(1)

    plain = Population(GRAPHS).digests()
    assert (Population(changed(give("name", "benzene"))).digests() == plain).all(), "a name is no part of a graph"
    for how in (
        lambda graph: graph.x.add_(1),
        lambda graph: graph.edge_attr.add_(1),
        lambda graph: graph.edge_index.zero_(),
        swap_two_edges,  # the same graph in another order: digests are of what is stored
        give("y", lambda graph: 1 - graph.y),
        give("pos", lambda graph: torch.zeros(graph.num_nodes, 3)),
    ):
        assert (Population(changed(how)).digests() != plain).all()
    twice = Population([*GRAPHS, GRAPHS[3].clone()]).digests()
    assert twice[-1] == twice[3]
    assert len(set(twice.tolist())) == 12


def test_a_list_of_graphs_brings_its_room_along(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever has graphs and a training function of their own need not import glasshouse.graph."""
    monkeypatch.setattr(features, "_MAKERS", {})
    monkeypatch.delitem(sys.modules, "glasshouse.graph.data.graph_list")
    assert repr(Population(GRAPHS).x) == "Graphs(12)"


def test_rows_are_chosen_as_in_an_array() -> None:
    graphs = Graphs(GRAPHS)
    mask = np.arange(12) % 3 == 0
    for rows in (mask, np.flatnonzero(mask), slice(0, 12, 3)):
        assert [one.num_nodes for one in graphs[rows]] == [graph.num_nodes for graph in GRAPHS[::3]]
    assert graphs[3] is GRAPHS[3]
    assert graphs[np.int64(-1)] is GRAPHS[-1]
    loaded = next(iter(DataLoader(graphs[mask], batch_size=4)))
    assert loaded.num_graphs == 4


@given(st.lists(st.integers(1, _MOST), min_size=2, max_size=12), st.integers(1, 5))
def test_batches_are_as_large_as_nodes_and_number_allow_and_hold_each_graph_once(sizes: list[int], most: int) -> None:
    graphs = Graphs([Data(num_nodes=size) for size in sizes])
    found = [rows.tolist() for rows in graphs.batches(most)]
    assert [row for rows in found for row in rows] == list(range(len(sizes)))
    for rows, after in zip(found, [*found[1:], None], strict=True):
        nodes = sum(sizes[row] for row in rows)
        assert len(rows) == 1 or (len(rows) <= most and nodes <= _MOST)
        assert after is None or len(rows) == most or nodes + sizes[after[0]] > _MOST


def test_features_are_sizes_and_means() -> None:
    found = Graphs(GRAPHS).features()
    assert found.shape == (12, 2 + 5 + 3)
    first = GRAPHS[0]
    expected = [first.num_nodes, first.num_edges, *first.x.mean(0).tolist(), *first.edge_attr.mean(0).tolist()]
    assert np.allclose(found[0], np.array(expected, dtype=np.float64), atol=1e-6)
    bare = [Data(edge_index=graph.edge_index, num_nodes=graph.num_nodes) for graph in GRAPHS]
    assert (Graphs(bare).features() == found[:, :2]).all()


def nan(graph: Data) -> None:
    graph.x[0, 0] = torch.nan


@pytest.mark.parametrize(
    ("graphs", "message"),
    [
        (GRAPHS[0], "one graph; its nodes are the records. Call glasshouse.graph.audit"),
        (GRAPHS[:1], r"it holds one graph.* Call glasshouse.graph.audit\(graphs\[0\]"),
        ([HeteroData(), HeteroData()], "record 0 is a HeteroData"),
        (changed(give("y", None), 3), "graph 3 has no y"),
        (changed(give("y", torch.tensor([0.3])), 2), "graph 2 is 0.3, which is not a class"),
        (changed(give("y", torch.tensor([torch.nan])), 2), "graph 2 has no label"),
        (changed(give("y", torch.zeros(1, 40)), 1), "has 40 entries, several tasks"),
        (changed(give("y", lambda graph: torch.zeros(graph.num_nodes)), 0), "one per node: labels of nodes"),
        (changed(nan, 4), "graph 4 has a NaN or infinite feature"),
        (changed(lambda graph: graph.edge_index.add_(99), 5), "graph 5: data.edge_index: names nodes outside"),
        (changed(give("edge_attr", None), 6), "graphs 0 and 6 do not both have edge_attr"),
        (changed(give("x", lambda graph: torch.zeros(graph.num_nodes, 4)), 7), "x of graph 7 has rows of shape .4."),
        (changed(give("x", lambda graph: graph.x.double()), 7), "float64, that of graph 0 of .*float32"),
        ([*GRAPHS, Data(x=torch.zeros(0, 5), edge_index=GRAPHS[0].edge_index[:, :0])], "graph 12 has no nodes"),
    ],
)
def test_what_is_no_list_of_labelled_graphs_is_refused_in_one_line(graphs: Any, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        Population(graphs)
    assert len(caught.value.faults) == 1


@pytest.mark.parametrize("given_", [GRAPHS, tuple(GRAPHS), Dataset(GRAPHS), Batch.from_data_list(GRAPHS)])
def test_both_audits_say_how_a_list_of_graphs_is_audited(given_: Any) -> None:
    for call in (audit, glasshouse.graph.audit):
        with pytest.raises(InputError, match=r"a record. Call glasshouse.audit\(Population\(graphs\), trainer=Graph"):
            call(given_)


def test_the_audit_of_a_graph_sends_records_and_lists_of_one_to_the_right_place() -> None:
    for given_, message in (
        (Population(GRAPHS), r"data: a Population of records. Call glasshouse.audit"),
        (GRAPHS[:1], r"holds one graph. Call glasshouse.graph.audit\(data\[0\]"),
        (HeteroData(), r"0 kinds of nodes have labels y \(none\); one kind is audited at a time"),
    ):
        with pytest.raises(InputError, match=message):
            glasshouse.graph.audit(given_)
    check_one_graph(GRAPHS[0])
    with pytest.raises(InputError, match=r"one graph; its nodes are the records. Call glasshouse.graph.audit\(data"):
        audit(GRAPHS[0])


def test_graphs_are_not_taken_for_rows_of_numbers() -> None:
    with pytest.raises(InputError, match="graphs are not rows of numbers. Train with glasshouse.graph.GraphClassifier"):
        np.asarray(Graphs(GRAPHS))
