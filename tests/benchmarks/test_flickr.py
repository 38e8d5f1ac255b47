"""Small versions of benchmarks/graphs/flickr_size.py and open_cells.py: they run, and name every attack."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from glasshouse.attacks import attack_names
from glasshouse.attacks.attack import find_attack
from glasshouse.graph import citation_graph
from glasshouse_experiments.cells import Cell
from tests.benchmarks.scripts import benchmark


def test_every_attack_is_measured_on_a_graph_of_flickrs_size(tmp_path: Path) -> None:
    size = benchmark("flickr_size")
    known = size.attacks()
    on_nodes = {name for name in attack_names() if find_attack(name).kind != "edges"}
    assert on_nodes - {*known} == {"best", "g-base", "g-base-tempered"}
    assert {name.removeprefix("g-base-") for name in known if name.startswith("g-base")} == {
        "independent",
        "mia",
        "gibbs",
        "metropolis",
    }
    scene, truth, _ = size.trained(citation_graph(nodes=120), epochs=2, folder=tmp_path)
    for name in ("base", "g-base-mia"):
        seconds, busy, memory, _, area = size.measured(known[name], scene, truth)
        assert min(seconds, busy, memory) > 0
        assert 0 <= area <= 100


def test_a_graph_of_flickrs_size_has_the_edges_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = benchmark("made_graphs")
    monkeypatch.setenv("GLASSHOUSE_DATA", str(tmp_path))
    raw = tmp_path / "flickr" / "raw"
    raw.mkdir(parents=True)
    np.savez(raw / "adj_full.npz", indptr=[0, 1, 3, 4], indices=[1, 0, 2, 1])
    data = made.flickr_graph()
    assert data.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert data.x.shape == (3, 500)


def test_the_spread_between_seeds_stands_beside_the_papers() -> None:
    names = ("MIAGNN", "Cora", "online", "8", "", "BASE", "auc_pct")
    found = [[Cell(*names, (80.0, 82.0))], [Cell(*names, (84.0, 84.0))]]
    line = benchmark("open_cells").rows(found)[0]
    assert line == "| Cora | BASE, online, auc_pct | 82.50 | 2.12 | 81.00 | 84.00 | 82.45 | 1.45 |"
