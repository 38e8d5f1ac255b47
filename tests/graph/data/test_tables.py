from __future__ import annotations

from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pandas as pd
import pytest

from glasshouse import InputError
from glasshouse.graph import load_graph

NODES = pd.DataFrame(
    {
        "paper": ["p0", "p1", "p2", "p3"],
        "words": [1.0, None, 3.0, 2.0],
        "kind": ["a", "b", "a", "b"],
        "topic": ["x", "y", None, "x"],
    }
)
EDGES = pd.DataFrame({"year": [7, 8], "from": ["p0", "p1"], "to": ["p1", "p3"], "weight": [0.5, 2.0]})
X = [[0, 1, 1, 0], [1, 2, 0, 1], [0, 3, 1, 0], [0, 2, 0, 1]]  # is empty, words, a, b


def from_csv(folder: Path) -> Any:
    NODES.to_csv(folder / "nodes.csv", index=False)
    EDGES.to_csv(folder / "edges.csv", index=False)
    return load_graph(folder / "nodes.csv", edges=folder / "edges.csv", label="topic")


def from_parquet(folder: Path) -> Any:
    NODES.to_parquet(folder / "nodes.parquet")
    EDGES.to_parquet(folder / "edges.parquet")
    return load_graph(str(folder / "nodes.parquet"), edges=str(folder / "edges.parquet"), label="topic")


@pytest.mark.parametrize(
    "read",
    [from_csv, from_parquet, lambda _: load_graph(NODES, edges=EDGES, label="topic", ids="paper")],
    ids=["csv", "parquet", "frames"],
)
def test_two_tables_are_a_graph(read: Any, tmp_path: Path) -> None:
    data = read(tmp_path)
    assert data.ids == ["p0", "p1", "p2", "p3"]
    assert data.x.tolist() == X
    assert data.y.tolist() == [0, 1, -1, 0]
    assert data.classes == ["x", "y"]
    assert data.edge_index.tolist() == [[0, 1, 1, 3], [1, 0, 3, 1]]
    assert data.edge_weight.tolist() == [0.5, 0.5, 2.0, 2.0]
    assert "in both directions" in data.about
    assert "Text became one feature per value: kind" in data.about


def test_a_networkx_graph_keeps_its_direction_and_lists_of_numbers() -> None:
    graph = networkx.DiGraph([("b", "a"), ("b", "c")])
    for at, node in enumerate(graph):
        graph.nodes[node].update(x=[float(at), 1.0], label=at % 2)
    data = load_graph(graph)
    assert data.ids == ["b", "a", "c"]
    assert data.x.tolist() == [[0, 1], [1, 1], [2, 1]]
    assert data.edge_index.tolist() == [[0, 0], [1, 2]]
    assert data.y.tolist() == [0, 1, 0]
    both = load_graph(graph.to_undirected())
    assert both.edge_index.shape == (2, 4)


def test_numbers_of_classes_keep_their_order_and_pairs_are_edges() -> None:
    table = {"id": [3, 1, 2], "f": [1, 2, 3], "y": [10, 9, 2]}
    data = load_graph(table, edges=np.array([[1, 2], [2, 3], [1, 2]]), directed=True)
    assert data.classes == ["2", "9", "10"]
    assert data.edge_index.tolist() == [[1, 2, 1], [2, 0, 2]]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, r"edges: missing; .* Give load_graph\(nodes, edges=…\)"),
        ({"edges": EDGES}, "which column holds the labels"),
        ({"edges": EDGES, "label": "theme"}, "has no column 'theme'. Columns: 'paper', 'words'"),
        ({"edges": [["p0", "p9"]], "label": "topic"}, "no column has all ends of the edges. Give ids="),
        ({"edges": [["p0", "p9"]], "label": "topic", "ids": "paper"}, "1 ends are no node of .*, first 'p9'"),
        ({"edges": [["p0"]], "label": "topic"}, r"edges: shape \(1, 1\)"),
        ({"edges": EDGES.assign(weight="heavy"), "label": "topic"}, "edges: weight: some cells are not numbers"),
        ({"edges": EDGES, "label": "topic", "leave_out": ["words", "kind"]}, "no column of features"),
    ],
)
def test_what_is_missing_is_named_with_the_line_that_works(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        load_graph(NODES, **given)


def test_a_column_of_many_texts_is_not_a_feature() -> None:
    table = {"id": range(200), "title": [f"title {number}" for number in range(200)], "y": [0, 1] * 100}
    with pytest.raises(InputError, match=r"title: has 200 different texts.*leave_out=\['title'\]"):
        load_graph(table, edges=[[0, 1]], ids="id")
