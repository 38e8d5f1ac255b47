"""Desks of graphs: own and library networks, kinds of edges, tables, unlabelled nodes. Their truth: each node alone."""

from __future__ import annotations

import functools
import importlib
import sys
import tempfile
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pandas as pd
import torch
import torch_geometric
import torch_geometric.nn as pyg
from desks import QUICK, Found, desk, softmax_losses
from torch import nn
from torch_geometric.data import Data
from torch_geometric.loader import NeighborLoader, RandomNodeLoader

from glasshouse import GaussianLoss, MultiLabelLoss, Population, audit
from glasshouse.graph import GNNTrainer, GraphClassifierTrainer, citation_graph, load_graph
from glasshouse.graph import audit as audit_graph

GRAPH = citation_graph(nodes=200, classes=3)
COUNT, FEATURES = GRAPH.x.shape
IN = np.random.default_rng(0).permutation(COUNT) < COUNT // 2
NO_EDGES = torch.zeros(2, 0, dtype=torch.long)
GRAPH_QUICK = {**QUICK, "attacks": ["loss", "base", "g-base"]}


def node_desk(
    make: Callable[[], Any],
    data: Data = GRAPH,
    *,
    members: Any = IN,
    alone: Callable[..., Any] | None = None,
    **options: Any,
) -> Found:
    """The audit of a module that GNNTrainer trains, beside its own logits about each node alone."""
    settings = {"setting": options["setting"]} if "setting" in options else {}
    trainer = GNNTrainer(model=make, epochs=5, device="cpu", **settings)
    model = trainer(data, members, 0)
    result = audit_graph(data, model=model, members=members, trainer=trainer, **{**GRAPH_QUICK, **options})
    y = torch.where(data.y.isnan(), -1, data.y).long().numpy() if data.y.is_floating_point() else data.y.numpy()
    nodes = np.flatnonzero(y >= 0)
    with torch.no_grad():
        edges = data.edge_index if settings else NO_EDGES
        logits = (alone or (lambda model, edges: model(data.x, edges)))(model, edges)
    return Found(result, softmax_losses(logits.double().numpy()[nodes], y[nodes]), members[nodes])


class Own(nn.Module):
    """Residual, BatchNorm and F.dropout, as in many scripts."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = pyg.GCNConv(FEATURES, 16), pyg.GCNConv(16, 16)
        self.norm, self.head = nn.BatchNorm1d(16), nn.Linear(16, 3)

    def forward(self, x: Any, edge_index: Any) -> Any:
        h = self.norm(self.first(x, edge_index)).relu()
        h = nn.functional.dropout(h, 0.5, training=self.training)
        return self.head(h + self.second(h, edge_index))


class Stack(nn.Module):
    """One layer of a kind, and a head; further arguments of the layer by name."""

    def __init__(self, make: Callable[[], Any], width: int, *, first: bool = False) -> None:
        super().__init__()
        self.before = nn.Linear(FEATURES, width) if first else nn.Identity()
        self.layer, self.head, self.first = make(), nn.Linear(width, 3), first

    def forward(self, x: Any, edge_index: Any) -> Any:
        h = self.before(x).relu() if self.first else x
        h = self.layer(h, h, edge_index) if isinstance(self.layer, pyg.GCN2Conv) else self.layer(h, edge_index)
        return self.head(h.relu())


desk("graphs", "own GCN with residual, BatchNorm, dropout")(lambda: node_desk(Own))
for _name, _make in {
    "PyG's GCN": lambda: pyg.GCN(FEATURES, 16, 2, 3),
    "JumpingKnowledge": lambda: pyg.GraphSAGE(FEATURES, 16, 2, 3, jk="cat"),
    "GATv2": lambda: pyg.GAT(FEATURES, 16, 2, 3, v2=True),
    "transformer": lambda: Stack(lambda: pyg.TransformerConv(FEATURES, 16), 16),
    "APPNP": lambda: Stack(lambda: pyg.APPNP(3, 0.1), 16, first=True),
    "GCNII": lambda: Stack(lambda: pyg.GCN2Conv(16, 0.1), 16, first=True),
}.items():
    desk("graphs", _name)(functools.partial(node_desk, _make))


@desk("graphs", "GATv2 with edge features")
def _edge_features() -> Found:
    class Edged(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer, self.head = pyg.GATv2Conv(FEATURES, 8, edge_dim=2), nn.Linear(8, 3)

        def forward(self, x: Any, edge_index: Any, edge_attr: Any) -> Any:
            return self.head(self.layer(x, edge_index, edge_attr).relu())

    data = GRAPH.clone()
    data.edge_attr = torch.rand(data.edge_index.shape[1], 2)
    return node_desk(Edged, data, alone=lambda model, edges: model(data.x, edges, data.edge_attr[: edges.shape[1]]))


class Typed(nn.Module):
    """RGCN, as in PyG's examples."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = pyg.RGCNConv(FEATURES, 16, 2), pyg.RGCNConv(16, 3, 2)

    def forward(self, x: Any, edge_index: Any, edge_type: Any) -> Any:
        return self.second(self.first(x, edge_index, edge_type).relu(), edge_index, edge_type)


@desk("graphs", "RGCN with edge_type")
def _typed() -> Found:
    data = GRAPH.clone()
    data.edge_type = torch.randint(0, 2, (data.edge_index.shape[1],))
    return node_desk(Typed, data, alone=lambda model, edges: model(data.x, edges, data.edge_type[: edges.shape[1]]))


@desk("graphs", "HeteroData")
def _hetero() -> Found:
    from torch_geometric.data import HeteroData

    data = HeteroData()
    data["paper"].x, data["paper"].y, data["author"].x = GRAPH.x, GRAPH.y, torch.rand(20, 3)
    kinds = [("paper", "cites", "paper"), ("author", "writes", "paper"), ("paper", "by", "author")]
    data[kinds[0]].edge_index = GRAPH.edge_index
    data[kinds[1]].edge_index = torch.stack([torch.arange(COUNT) % 20, torch.arange(COUNT)])
    data[kinds[2]].edge_index = data[kinds[1]].edge_index.flip(0)

    class Kinds(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList(
                pyg.HeteroConv({kind: pyg.SAGEConv((-1, -1), width) for kind in kinds}) for width in (16, 3)
            )

        def forward(self, x: Any, edges: Any) -> Any:
            first, second = self.layers
            return second({name: one.relu() for name, one in first(x, edges).items()}, edges)

    def train(data: Any, members: Any, seed: int) -> Any:
        torch.manual_seed(seed)
        model, part = Kinds(), data.subgraph({"paper": torch.from_numpy(members)})
        step = torch.optim.Adam(model.parameters(), 0.01) if model(part.x_dict, part.edge_index_dict) else None
        for _ in range(10):
            loss = nn.functional.cross_entropy(model(part.x_dict, part.edge_index_dict)["paper"], part["paper"].y)
            loss.backward()
            step.step()  # type: ignore[union-attr]
        return model.eval()

    model = train(data, IN, 0)
    result = audit_graph(data, model=model, members=IN, trainer=train, **GRAPH_QUICK)
    with torch.no_grad():
        logits = model(data.x_dict, dict.fromkeys(kinds, NO_EDGES))["paper"]
    return Found(result, softmax_losses(logits.double().numpy(), GRAPH.y.numpy()), IN)


@desk("graphs", "virtual node (a mean over the graph)")
def _virtual() -> Found:
    class Virtual(Own):
        def forward(self, x: Any, edge_index: Any) -> Any:
            return super().forward(x, edge_index) + self.head(
                self.norm(self.first(x, edge_index)).mean(0, keepdim=True)
            )

    small = GRAPH.subgraph(torch.arange(60))
    return node_desk(Virtual, small, members=np.arange(60) % 2 == 0)


@desk("graphs", "transductive masks")
def _masks() -> Found:
    return node_desk(Own, setting="transductive", attacks=["loss", "base"])


@desk("graphs", "isolated and unlabelled nodes")
def _unlabelled() -> Found:
    data = GRAPH.clone()
    data.y[::4] = -1
    data.edge_index = data.edge_index[:, (data.edge_index != 1).all(0)]
    return node_desk(Own, data)


@desk("graphs", "unlabelled nodes as NaN")
def _nan_labels() -> Found:
    data = GRAPH.clone()
    data.y = torch.where(torch.arange(COUNT) % 4 == 0, torch.nan, data.y.float())
    return node_desk(Own, data)


@desk("graphs", "NaN features")
def _nan() -> Found:
    data = GRAPH.clone()
    data.x = data.x.clone()
    data.x[3, 0] = torch.nan
    return node_desk(Own, data)


@desk("graphs", "directed")
def _directed() -> Found:
    data = GRAPH.clone()
    data.edge_index = data.edge_index[:, data.edge_index[0] < data.edge_index[1]]
    return node_desk(Own, data)


@desk("graphs", "text ids")
def _ids() -> Found:
    data = GRAPH.clone()
    data.ids = [f"paper {number}" for number in range(COUNT)]
    return node_desk(Own, data)


@desk("graphs", "two csv files")
def _csv() -> Found:
    table = pd.DataFrame(GRAPH.x.numpy(), columns=[f"word {at}" for at in range(FEATURES)])
    table["paper"], table["topic"] = [f"p{at}" for at in range(COUNT)], GRAPH.y.numpy()
    pairs = GRAPH.edge_index.numpy()
    edges = pd.DataFrame({"source": [f"p{at}" for at in pairs[0]], "target": [f"p{at}" for at in pairs[1]]})
    with tempfile.TemporaryDirectory() as folder:
        table.to_csv(Path(folder) / "nodes.csv", index=False)
        edges.to_csv(Path(folder) / "edges.csv", index=False)
        data = load_graph(f"{folder}/nodes.csv", edges=f"{folder}/edges.csv", label="topic", ids="paper")
    return node_desk(Own, data)


@desk("graphs", "networkx")
def _networkx() -> Found:
    graph = networkx.Graph(GRAPH.edge_index.T.tolist())
    graph.add_nodes_from(range(COUNT))
    for node in graph:
        graph.nodes[node].update(x=GRAPH.x[node].tolist(), label=int(GRAPH.y[node]))
    return node_desk(Own, load_graph(graph))


def outcome_desk(y: torch.Tensor, loss: Any, criterion: Callable[..., Any]) -> Found:
    """Nodes with outcomes [n] or [n, L], the user's own loop, and the loss by torch's own function."""
    data = GRAPH.clone()
    data.y = y

    def train(data: Data, members: Any, seed: int) -> Any:
        torch.manual_seed(seed)
        model, part = pyg.GCN(FEATURES, 16, 2, y[0].numel()), data.subgraph(torch.from_numpy(members))
        step = torch.optim.Adam(model.parameters(), 0.01)
        for _ in range(20):
            step.zero_grad()
            criterion(model(part.x, part.edge_index).view_as(part.y), part.y).backward()
            step.step()
        return model.eval()

    model = train(data, IN, 0)
    result = audit_graph(data, model=model, members=IN, trainer=train, loss=loss, **GRAPH_QUICK)
    with torch.no_grad():
        answer = model(data.x, NO_EDGES).view_as(y).double()
    return Found(result, criterion(answer, y.double(), reduction="none").reshape(COUNT, -1).sum(1).numpy(), IN)


@desk("graphs", "multi-label nodes")
def _multi_label() -> Found:
    y = (torch.rand(COUNT, 4) > 0.5).float()
    return outcome_desk(y, MultiLabelLoss(), nn.functional.binary_cross_entropy_with_logits)


@desk("graphs", "multi-label nodes, each alone, by Population.for_loss")
def _multi_label_alone() -> Found:
    y = (np.random.default_rng(0).random((COUNT, 2)) > 0.5).astype(int)

    def train(population: Any, members: Any, seed: int) -> Any:
        torch.manual_seed(seed)
        model, at = pyg.GCN(FEATURES, 16, 2, 2), np.flatnonzero(members)
        x, labels = torch.as_tensor(population.x[at]), torch.as_tensor(population.y[at]).float()
        keep = np.full(COUNT, -1)
        keep[at] = np.arange(len(at))
        edges = torch.as_tensor(keep)[GRAPH.edge_index]
        step = torch.optim.Adam(model.parameters(), 0.02)
        for _ in range(20):
            step.zero_grad()
            nn.functional.binary_cross_entropy_with_logits(model(x, edges[:, (edges >= 0).all(0)]), labels).backward()
            step.step()
        return lambda x: model(torch.as_tensor(x), NO_EDGES).sigmoid().detach().numpy()

    population = Population.for_loss(GRAPH.x.numpy(), y)
    model = train(population, IN, 0)
    result = audit(population, model=model, members=IN, trainer=train, loss=MultiLabelLoss(), **QUICK)
    chance = model(GRAPH.x.numpy()).astype(np.float64)
    return Found(result, -np.log(np.where(y == 1, chance, 1 - chance)).sum(axis=1), IN)


@desk("graphs", "node regression")
def _regression() -> Found:
    return outcome_desk(torch.rand(COUNT), GaussianLoss(scale=0.5), nn.functional.mse_loss)


def loader_desk(loader: Callable[[Data], Any]) -> Found:
    """A target that was trained in parts, by a loader of PyG's: only the members and the edges between them."""

    def train(data: Data, members: Any, seed: int) -> Any:
        torch.manual_seed(seed)
        model = pyg.GraphSAGE(FEATURES, 16, 2, 3)
        step = torch.optim.Adam(model.parameters(), 0.01)
        for _ in range(5):
            for part in loader(data.subgraph(torch.from_numpy(members))):
                step.zero_grad()
                nn.functional.cross_entropy(model(part.x, part.edge_index), part.y).backward()
                step.step()
        return model.eval()

    model = train(GRAPH, IN, 0)
    result = audit_graph(GRAPH, model=model, members=IN, trainer=train, **GRAPH_QUICK)
    with torch.no_grad():
        logits = model(GRAPH.x, NO_EDGES)
    return Found(result, softmax_losses(logits.double().numpy(), GRAPH.y.numpy()), IN)


@desk("graphs", "RandomNodeLoader of one's own")
def _random_loader() -> Found:
    return loader_desk(lambda data: RandomNodeLoader(data, num_parts=3))


@desk("graphs", "NeighborLoader of one's own")
def _neighbor_loader() -> Found:
    if not (torch_geometric.typing.WITH_PYG_LIB or torch_geometric.typing.WITH_TORCH_SPARSE):
        raise ImportError(name="pyg-lib")  # which NeighborLoader needs
    return loader_desk(lambda data: NeighborLoader(data, [10, 10], batch_size=32))


@desk("graphs", "DGL's graph and layers")
def _dgl() -> Found:
    # the newest wheel has a part for an older torch, which neither graphs nor layers need
    sys.modules.setdefault("dgl.graphbolt", types.ModuleType("dgl.graphbolt"))
    dgl = importlib.import_module("dgl")
    SAGEConv = importlib.import_module("dgl.nn").SAGEConv
    own = dgl.graph(tuple(GRAPH.edge_index), num_nodes=COUNT)
    own.ndata["feat"], own.ndata["label"] = GRAPH.x, GRAPH.y

    class Theirs(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = SAGEConv(FEATURES, 16, "mean"), SAGEConv(16, 3, "mean")

        def forward(self, x: Any, edge_index: Any) -> Any:
            graph = dgl.graph(tuple(edge_index), num_nodes=len(x))
            return self.second(graph, self.first(graph, x).relu())

    data = Data(x=own.ndata["feat"], edge_index=torch.stack(own.edges()), y=own.ndata["label"])
    return node_desk(Theirs, data)


@desk("graphs", "link prediction")
def _links() -> Found:
    data = GRAPH.clone()
    data.edge_label, data.edge_label_index = torch.ones(4), data.edge_index[:, :4]
    data.y = None
    return node_desk(Own, data)


def graph_list() -> list[Data]:
    made = torch.Generator().manual_seed(0)
    return [
        Data(
            x=torch.rand(5, 4, generator=made),
            edge_index=torch.randint(0, 5, (2, 8), generator=made),
            y=torch.tensor([number % 2]),
        )
        for number in range(60)
    ]


class Pooled(nn.Module):
    """Graph classification."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.head = pyg.GCNConv(4, 8), nn.Linear(8, 2)

    def forward(self, x: Any, edge_index: Any, batch: Any) -> Any:
        return self.head(pyg.global_mean_pool(self.layer(x, edge_index).relu(), batch))


@desk("graphs", "list of graphs")
def _list() -> Found:
    graphs, trainer, members = (
        graph_list(),
        GraphClassifierTrainer(module=Pooled, epochs=5, device="cpu"),
        np.arange(60) % 2 == 0,
    )
    members = np.roll(members, 1) ^ (np.arange(60) % 4 == 0)
    data = Population(graphs)
    model = trainer(data, members, 0)
    result = audit(data, model=model, members=members, trainer=trainer, **QUICK)
    with torch.no_grad():
        logits = torch.cat([model(one.x, one.edge_index, torch.zeros(5, dtype=torch.long)) for one in graphs])
    return Found(result, softmax_losses(logits.double().numpy(), np.arange(60) % 2), members)


@desk("graphs", "20 000 nodes")
def _large() -> Found:
    data = citation_graph(nodes=20_000, classes=3)
    members = np.arange(20_000) % 2 == 0
    width = data.x.shape[1]
    return node_desk(lambda: pyg.GCN(width, 8, 2, 3), data, members=members, attacks=["loss", "base"])
