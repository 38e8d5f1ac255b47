from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.datasets import Planetoid

from glasshouse.graph.models.gnn import build_gnn
from glasshouse.graph.rule.reference import reference_losses
from glasshouse.graph.rule.toggle import toggle_losses

SOURCE = Path(os.environ.get("GLASSHOUSE_DATA", "/work/shared/datasets")) / "planetoid"


def load(name: str, scratch: Path) -> Data:
    if not (SOURCE / name).exists():
        pytest.skip(f"{SOURCE / name} is not there; set GLASSHOUSE_DATA")
    shutil.copytree(SOURCE / name / "raw", scratch / name / "raw")
    return Planetoid(str(scratch), name)[0]


@pytest.mark.parametrize(
    ("name", "architecture", "hidden"),
    [("Cora", "gcn", 64), ("CiteSeer", "gat", 64), ("PubMed", "sage", 128), ("PubMed", "gcn", 64)],
)
@pytest.mark.parametrize("engine", ["auto", "layered"])
def test_nodes_of_citation_graphs_get_the_rules_numbers(
    name: str, architecture: str, hidden: int, engine: str, tmp_path: Path
) -> None:
    """The busiest node and some others, inside and outside the mask, on the whole graph in float32."""
    torch.manual_seed(0)
    data = load(name, tmp_path)
    models = [
        build_gnn(architecture, features=data.x.shape[1], hidden=hidden, classes=int(data.y.max()) + 1)
        for _ in range(1)
    ]
    degree = torch.bincount(data.edge_index[0], minlength=len(data.x))
    nodes = torch.cat([degree.argmax().reshape(1), torch.randperm(len(data.x))[:2]])
    masks = torch.stack([torch.rand(len(data.x)) < 0.5 for _ in range(2)])
    masks[0, nodes[0]], masks[1, nodes[0]] = True, False
    slow = reference_losses(models, data, masks, nodes)
    fast = toggle_losses(models, data, masks, nodes, engine=engine)
    torch.testing.assert_close(fast, slow, atol=1e-4, rtol=0)
