from __future__ import annotations

import numpy as np

from glasshouse.report.pictures.neighbourhood import Surroundings, neighbourhood_picture


def test_degrees_and_neighbours_agree_with_sets_of_pairs() -> None:
    random = np.random.default_rng(0)
    edges = random.integers(40, size=(2, 120))  # with loops and repetitions, in either direction
    pairs = {frozenset(pair) for pair in edges.T.tolist() if pair[0] != pair[1]}
    labels = np.arange(40) % 3
    around = Surroundings(edges, members=np.arange(40) < 20, labels=labels, nodes=np.arange(40))
    for node in range(40):
        near = sorted({other for pair in pairs if node in pair for other in pair} - {node})
        assert around.degrees[node] == len(near)
        found = around.neighbourhood(node, drawn=100)
        assert found.member == tuple(one < 20 for one in [node, *near])
        assert found.alike == tuple(bool(labels[one] == labels[node]) for one in [node, *near])
        assert len(found.edges) == sum(pair <= {node, *near} for pair in pairs)
        assert found.hidden == 0


def test_a_hub_is_drawn_in_part_and_says_so() -> None:
    star = Surroundings([[0] * 30, range(1, 31)], members=[1] * 31, labels=[0] * 31, nodes=[0])
    found = star.neighbourhood(0)
    assert len(found.member) == 11
    assert found.hidden == 20
    assert found.sentence() == "10 neighbours of 30: 10 members, 10 of its own class"
    assert neighbourhood_picture(found).count("<circle") == 11


def test_a_node_alone_is_drawn_alone() -> None:
    lonely = Surroundings(np.empty((2, 0)), members=[0], labels=[1], nodes=[0]).neighbourhood(0)
    assert lonely.sentence() == "0 neighbours: 0 members, 0 of its own class"
    assert neighbourhood_picture(lonely).count("<circle") == 1
