"""Audit a graph neural network: which of its training nodes can be found from outside?

Run: python audit_gnn.py. It runs as it is, on a made-up graph; put your own where it says "yours".
It needs the extra `graph`: pip install 'glasshouse[graph]'.
"""

import numpy as np
from torch import Tensor, nn
from torch_geometric.nn import GCNConv

from glasshouse.graph import GNNTrainer, adam, audit, citation_graph


class Network(nn.Module):
    """Yours: the network that you train, (x, edge_index) -> logits [n, classes]."""

    def __init__(self, features: int, classes: int) -> None:
        super().__init__()
        self.first, self.second = GCNConv(features, 32), GCNConv(32, classes)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Logits, [n, classes]."""
        logits: Tensor = self.second(self.first(x, edge_index).relu(), edge_index)
        return logits


def main() -> None:
    """Train a target as you do, audit it, and write the report."""
    # Yours: a torch_geometric Data with x, edge_index and y; load_graph("cora") reads raw files under GLASSHOUSE_DATA.
    data = citation_graph(nodes=400, classes=3, seed=0)

    # Yours: which nodes trained the model, as truth values [n]. Draw them at random if you can.
    members = np.random.default_rng(0).permutation(400) < 200

    # Yours: how the model was trained. By default a model sees its members and the edges between them; for the usual
    # Planetoid script (the whole graph, and a mask of labelled nodes) add setting="transductive" to both calls.
    trainer = GNNTrainer(
        model=lambda: Network(data.num_features, int(data.y.max()) + 1), epochs=30, optimizer=adam(lr=0.01)
    )

    # Yours: the trained model. Here it is trained on the members.
    model = trainer(data, members, 1)

    result = audit(
        data,
        model=model,
        members=members,
        trainer=trainer,
        shadows=4,  # use 8 or more for figures that you rely on
        attacks=["base", "lira", "g-base"],  # without this line: the default list with g-stacked, stronger and slower
        title="My graph neural network",
    )
    print(result.table())
    print(result.summary().verdict)
    print("Report:", (result.save("runs/gnn", overwrite=True) / "report.html").resolve())


if __name__ == "__main__":  # worker processes import this file, and must not run it
    main()
