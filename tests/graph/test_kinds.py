"""Kinds of nodes and edges: the rule written by hand on the user's own form of the graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import HeteroData
from torch_geometric.nn import HeteroConv, HGTConv, SAGEConv, to_hetero

from glasshouse import InputError
from glasshouse.graph import GNNTrainer, audit, toggle_losses
from glasshouse.graph.training.plain import as_plain

PAPERS, AUTHORS = 10, 5
KINDS = [("paper", "cites", "paper"), ("author", "writes", "paper"), ("paper", "written", "author")]


def library(papers: int = PAPERS, authors: int = AUTHORS, *, seed: int = 0) -> HeteroData:
    random, data = torch.Generator().manual_seed(seed), HeteroData()
    data["author"].x = torch.randn(authors, 3, generator=random)
    data["paper"].x = torch.randn(papers, 4, generator=random)
    data["paper"].y = (data["paper"].x[:, 0] + torch.randn(papers, generator=random) > 0).long()
    ends = {"paper": papers, "author": authors}
    for kind in KINDS:
        pairs = [torch.randint(ends[end], (2 * papers,), generator=random) for end in (kind[0], kind[2])]
        data[kind].edge_index = torch.stack(pairs).unique(dim=1)
    return data


class Convs(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(HeteroConv({kind: SAGEConv((-1, -1), width) for kind in KINDS}) for width in (6, 2))

    def forward(self, x: Any, edges: Any) -> Any:
        first, second = self.layers
        return second({name: one.relu() for name, one in first(x, edges).items()}, edges)


class Transformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        meta = (["paper", "author"], KINDS)
        self.first, self.head = HGTConv({"paper": 4, "author": 3}, 6, meta, heads=2), nn.Linear(6, 2)

    def forward(self, x: Any, edges: Any) -> Tensor:
        found: Tensor = self.head(self.first(x, edges)["paper"])
        return found


class Plain(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = SAGEConv((-1, -1), 6), SAGEConv((-1, -1), 2)

    def forward(self, x: Any, edge_index: Any) -> Any:
        return self.second(self.first(x, edge_index).relu(), edge_index)


ZOO: dict[str, Callable[[], nn.Module]] = {
    "HeteroConv": Convs,
    "HGT": Transformer,
    "to_hetero": lambda: to_hetero(Plain(), (["paper", "author"], KINDS)),
}


def losses(model: Any, data: HeteroData, present: Tensor) -> Tensor:
    """Losses of papers, 0 for absent ones, on the graph of the present papers and all authors."""
    part = data.subgraph({"paper": present})
    with torch.no_grad():
        answer = model(part.x_dict, part.edge_index_dict)
    answer = answer["paper"] if isinstance(answer, dict) else answer
    found = torch.zeros(len(present), dtype=torch.float64)
    found[present] = nn.functional.cross_entropy(answer.double(), part["paper"].y, reduction="none")
    return found


def near(data: HeteroData, node: int, present: Tensor, hops: int) -> Tensor:
    """The papers that see a paper within so many steps along edges of any kind."""
    reached = {"paper": torch.zeros(len(present), dtype=torch.bool), "author": torch.zeros(AUTHORS, dtype=torch.bool)}
    reached["paper"][node] = True
    for _ in range(hops):
        before = {name: one.clone() for name, one in reached.items()}
        for source, name, end in KINDS:
            one, other = data[source, name, end].edge_index
            lives = before[source][one]
            if source == "paper":
                lives = lives & present[one]
            reached[end][other[lives]] = True
    return reached["paper"]


@pytest.mark.parametrize("name", ZOO)
def test_toggling_a_node_of_one_kind_is_the_rule_written_by_hand(name: str) -> None:
    data = library()
    torch.manual_seed(0)
    model = ZOO[name]().eval()
    with torch.no_grad():
        model(data.x_dict, data.edge_index_dict)  # lazy layers take their sizes
    plain, wrapped = as_plain(data)
    asked = wrapped(model).eval()
    assert asked.hops == (1 if name == "HGT" else 2)
    masks = torch.rand(2, PAPERS, generator=torch.Generator().manual_seed(1)) < 0.6
    found = toggle_losses([asked], plain, torch.cat([masks, torch.ones(2, AUTHORS) > 0], dim=1), torch.arange(PAPERS))
    for row, mask in enumerate(masks):
        for node in range(PAPERS):
            inside, outside = mask.clone(), mask.clone()
            inside[node], outside[node] = True, False
            summed = near(data, node, inside, asked.hops) & outside
            with_node, without = losses(model, data, inside), losses(model, data, outside)
            wanted = float(with_node[node] + (with_node - without)[summed].sum())
            assert float(found[0, row, node]) == pytest.approx(wanted, abs=1e-5)


def trained(data: HeteroData, members: Any, seed: int) -> nn.Module:
    torch.manual_seed(seed)
    model, part = Convs(), data.subgraph({"paper": torch.from_numpy(members)})
    model(part.x_dict, part.edge_index_dict)
    steps = torch.optim.Adam(model.parameters(), 0.03)
    for _ in range(100):
        steps.zero_grad()
        answer = model(part.x_dict, part.edge_index_dict)["paper"]
        nn.functional.cross_entropy(answer, part["paper"].y).backward()
        steps.step()
    return model.eval()


def test_one_kind_is_audited_and_the_others_are_context() -> None:
    data, members = library(60, 12), np.arange(60) % 2 == 0
    attacks = ["loss", "base", "g-base", "g-stacked"]
    found = audit(
        data,
        model=trained(data, members, 0),
        members=members,
        trainer=trained,
        attacks=attacks,
        shadows=4,
        progress=False,
    )
    *others, stacked = found.table()["auc"]
    assert min(others) > 0.55
    assert stacked > 0.65
    assert found.records()["id"].tolist() == [str(number) for number in range(60)]
    assert any("12 nodes have no label" in note for note in found.context.notes)
    assert "of which paper is audited" in found.context.about


def test_what_does_not_fit_is_refused_with_the_line_that_works() -> None:
    data = library()
    with pytest.raises(InputError, match=r"trains on data.subgraph\(\{'paper': torch.from_numpy\(members\)\}\)"):
        audit(data, trainer=GNNTrainer())
    both = library()
    both["author"].y = torch.zeros(AUTHORS)
    with pytest.raises(InputError, match=r"2 kinds of nodes have labels y \(author, paper\).*del data\['author'\].y"):
        audit(both, trainer=trained)
    valued = library()
    valued[KINDS[0]].edge_attr = torch.rand(valued[KINDS[0]].edge_index.shape[1])
    with pytest.raises(InputError, match="edges with values are not taken together with kinds"):
        audit(valued, trainer=trained)
    bare = library()
    del bare["author"].x
    with pytest.raises(InputError, match=r"data\['author'\].x: is missing"):
        audit(bare, trainer=trained)
    with pytest.raises(InputError, match="give it an attribute hops, such as 2"):
        as_plain(data)[1](lambda x, edges: x)
