from __future__ import annotations

import torch
from torch_geometric.data import Data

from glasshouse.graph.fingerprint import graph_fingerprint


def test_features_edges_and_labels_all_count() -> None:
    parts = {"x": torch.eye(2), "edge_index": torch.tensor([[0], [1]]), "y": torch.tensor([0, 1])}
    changed = {"x": torch.ones(2, 2), "edge_index": torch.tensor([[1], [0]]), "y": torch.tensor([1, 1])}
    prints = {graph_fingerprint(Data(**(parts | {name: value}))) for name, value in changed.items()}
    assert len(prints | {graph_fingerprint(Data(**parts))}) == 4
