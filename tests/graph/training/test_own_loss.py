"""A loss of the user's own on a graph: the rule written by hand, and audits against a threshold on that loss."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data, HeteroData
from torch_geometric.nn import GCN, GraphSAGE, HeteroConv, SAGEConv

from glasshouse import CoxLoss, GaussianLoss, InputError, MultiLabelLoss
from glasshouse.auditing.options import Attacker
from glasshouse.core.numerics import area_under_roc
from glasshouse.graph import GNNTrainer, audit, citation_graph, toggle_losses
from glasshouse.graph.models.profile import profile_models
from glasshouse.graph.training.plain import with_outcomes
from tests.graph.random_graphs import FEATURES
from tests.graph.simple_graphs import simple_graph

NODES = 14


def absolute(model: Any, batch: Any) -> Any:
    """A user's own loss, of a model that answers with one number per node."""
    return np.abs(np.asarray(model(batch.x)).reshape(len(batch.y)) - batch.y)


class Opaque(nn.Module):
    """A model that cannot be taken apart, called with the whole graph."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = GCN(FEATURES, 6, 2, 1)

    def forward(self, data: Data) -> Tensor:
        if float(data.x.sum()) == torch.inf:
            raise ValueError
        found: Tensor = self.inner(data.x, data.edge_index, data.edge_weight)[:, 0]
        return found


# of each: a model, outcomes, the loss, and the same from answers [n, columns] and outcomes by hand
ZOO: dict[str, tuple[Callable[[], nn.Module], Callable[[], Tensor], Any, Callable[[Tensor, Tensor], Tensor]]] = {
    "labels": (
        lambda: GCN(FEATURES, 6, 2, 4),
        lambda: torch.randint(0, 2, (NODES, 4)),
        MultiLabelLoss(),
        lambda answer, y: nn.functional.binary_cross_entropy_with_logits(answer, y, reduction="none").sum(1),
    ),
    "regression": (
        lambda: GraphSAGE(FEATURES, 6, 2, 1),
        lambda: torch.randn(NODES),
        GaussianLoss(scale=0.5),
        lambda answer, y: 2 * (answer[:, 0] - y) ** 2,
    ),
    "black box": (Opaque, lambda: torch.randn(NODES), absolute, lambda answer, y: (answer.reshape(-1) - y).abs()),
}


@pytest.mark.parametrize("name", ZOO)
def test_the_rule_holds_for_a_loss_of_ones_own(name: str) -> None:
    torch.manual_seed(0)
    make, outcomes, loss, by_hand = ZOO[name]
    data, model = simple_graph(size=NODES, edges=20, seed=5), make().eval()
    data.y, data.edge_weight = outcomes(), torch.ones(data.edge_index.shape[1])
    plain, wrapped = with_outcomes(data, loss)
    (asked,) = profile_models([wrapped(model)], plain)
    assert asked.profile.hops == 2
    assert (asked.profile.program is None) == (name == "black box")
    masks = torch.rand(2, NODES, generator=torch.Generator().manual_seed(1)) < 0.6
    found = toggle_losses([asked], plain, masks, torch.arange(NODES))[0]

    def losses(present: Tensor) -> tuple[Tensor, Tensor]:
        edges = data.edge_index[:, present[data.edge_index].all(0)]
        graph = Data(x=data.x, edge_index=edges, edge_weight=torch.ones(edges.shape[1]))
        with torch.no_grad():
            answer = model(graph) if name == "black box" else model(graph.x, edges)
        return by_hand(answer.double(), data.y.double()), edges

    for row, mask in enumerate(masks):
        for node in range(NODES):
            inside, outside = mask.clone(), mask.clone()
            inside[node], outside[node] = True, False
            (with_node, edges), (without, _) = losses(inside), losses(outside)
            near = torch.zeros(NODES, dtype=torch.bool)
            near[node] = True
            for _ in range(2):
                near[edges[1, near[edges[0]]]] = True
            wanted = with_node[node] + (with_node - without)[near & outside].sum()
            assert float(found[row, node]) == pytest.approx(float(wanted), abs=1e-5)


def trained(data: Data, members: Any, seed: int) -> Any:
    """Fitted to the members' outcomes: labels [n, L] or numbers [n]."""
    torch.manual_seed(seed)
    part = data.subgraph(torch.from_numpy(members) & ~data.y.reshape(data.num_nodes, -1).isnan().any(1))
    model = GraphSAGE(data.x.shape[1], 16, 2, part.y.reshape(len(part.y), -1).shape[1])
    steps = torch.optim.Adam(model.parameters(), 0.03)
    for _ in range(60):
        steps.zero_grad()
        answer = model(part.x, part.edge_index).reshape(part.y.shape)
        labels = part.y.ndim == 2
        criterion = nn.functional.binary_cross_entropy_with_logits if labels else nn.functional.mse_loss
        criterion(answer, part.y).backward()
        steps.step()
    return model.eval()


@pytest.mark.parametrize("labels", [3, 0])
def test_nodes_of_any_outcome_are_audited(labels: int) -> None:
    data = citation_graph(nodes=80, classes=2)
    random = torch.Generator().manual_seed(0)
    data.x = data.x[:, :100]
    shape = (80, labels) if labels else (80,)
    data.y = torch.rand(shape, generator=random).round() if labels else torch.randn(shape, generator=random)
    data.y[7] = torch.nan  # it has no outcome, and stays in the graph
    members, nodes = np.arange(80) % 2 == 0, np.arange(80) != 7
    model, loss = trained(data, members, 0), MultiLabelLoss() if labels else GaussianLoss(scale=1.0)
    how: dict[str, Any] = {"members": members, "trainer": trained, "shadows": 4, "progress": False}
    found: Any = audit(data, model=model, loss=loss, attacks=["loss", "g-base"], **how)
    with torch.no_grad():
        answer = model(data.x, torch.empty(2, 0, dtype=torch.long)).reshape(shape).double()
    y = data.y.double()
    whole = nn.functional.binary_cross_entropy_with_logits(answer, y, reduction="none") if labels else (answer - y) ** 2
    own = whole.reshape(80, -1).sum(1).numpy()[nodes]
    assert found.outcomes["loss"].metrics.auc == pytest.approx(area_under_roc(-own, members[nodes]), abs=1e-6)
    assert found.table()["auc"][1] > 0.7
    assert any("1 node has no label" in note or "1 nodes have no label" in note for note in found.context.notes)
    assert found.context.train_accuracy is None  # there are no classes


def test_kinds_of_nodes_may_have_several_labels() -> None:
    random, data = torch.Generator().manual_seed(0), HeteroData()
    data["paper"].x, data["author"].x = torch.randn(40, 6, generator=random), torch.ones(8, 1)
    data["paper"].y = torch.rand(40, 3, generator=random) > 0.5
    kinds = [("author", "writes", "paper"), ("paper", "by", "author")]
    data[kinds[0]].edge_index = torch.stack([torch.arange(40) % 8, torch.arange(40)])
    data[kinds[1]].edge_index = data[kinds[0]].edge_index.flip(0)

    def train(data: Any, members: Any, seed: int) -> Any:
        torch.manual_seed(seed)
        model, part = (
            HeteroConv({kind: SAGEConv((-1, -1), 3) for kind in kinds}),
            data.subgraph({"paper": torch.from_numpy(members)}),
        )
        model(part.x_dict, part.edge_index_dict)
        steps = torch.optim.Adam(model.parameters(), 0.05)
        for _ in range(60):
            steps.zero_grad()
            answer = model(part.x_dict, part.edge_index_dict)["paper"]
            nn.functional.binary_cross_entropy_with_logits(answer, part["paper"].y.float()).backward()
            steps.step()
        return model.eval()

    members = np.arange(40) % 2 == 0
    model, how = train(data, members, 0), {"members": members, "trainer": train, "shadows": 2}
    found: Any = audit(data, model=model, loss=MultiLabelLoss(), attacks=["loss"], progress=False, **how)
    with torch.no_grad():
        answer = model(data.x_dict, dict.fromkeys(kinds, torch.empty(2, 0, dtype=torch.long)))["paper"].double()
    own = nn.functional.binary_cross_entropy_with_logits(answer, data["paper"].y.double(), reduction="none").sum(1)
    assert found.outcomes["loss"].metrics.auc == pytest.approx(area_under_roc(-own.numpy(), members), abs=1e-6)


def test_the_whole_graph_shows_whether_a_model_gives_probabilities() -> None:
    data = simple_graph(size=NODES, edges=20, seed=5)
    data.x[:, 0], data.y = torch.linspace(-3, 0.5, NODES), torch.ones(NODES, 1)
    plain, wrapped = with_outcomes(data, MultiLabelLoss())
    model = wrapped(lambda x, edge_index: x[:, :1])
    alone = Data(x=plain.x[-1:], edge_index=plain.edge_index[:, :0])  # a logit of 0.5 could be a probability
    found = nn.functional.cross_entropy(model(alone), torch.tensor([0]))
    assert float(found) == pytest.approx(np.log1p(np.exp(-0.5)), abs=1e-5)


def test_what_does_not_fit_is_refused_with_what_to_do() -> None:
    data = simple_graph(size=NODES, edges=20, seed=5)
    data.y = torch.randn(NODES)
    for trainer in (None, GNNTrainer()):
        with pytest.raises(InputError, match=r"trainer: with a loss of your own pass a function"):
            audit(data, trainer=trainer, loss=absolute)
    with pytest.raises(InputError, match="attacker.graph: is not taken together with"):
        audit(data, trainer=trained, loss=absolute, attacker=Attacker(graph=data))
    with pytest.raises(InputError, match="loss: it needs all records in one batch"):
        with_outcomes(data, CoxLoss())
    with pytest.raises(InputError, match=r"data.y: some labels are not whole numbers.*loss=GaussianLoss\(scale=…\)"):
        audit(data)

    def asked(loss: Any, y: Tensor | None = None) -> Tensor:
        given = data.clone()
        given.y = data.y if y is None else y
        plain, wrapped = with_outcomes(given, loss)
        answer: Tensor = wrapped(lambda x, edge_index: x[:, 0])(plain)
        return answer

    assert asked(absolute).shape == (NODES, 2)
    assert with_outcomes(data, absolute)[1](lambda x, edge_index: x[:, 0])(
        Data(x=torch.zeros(0, FEATURES + 1), edge_index=data.edge_index[:, :0])
    ).shape == (0, 2)
    with pytest.raises(InputError, match=r"ask model\(batch.x\)"):
        asked(lambda model, batch: model(batch.y))
    with pytest.raises(InputError, match="loss: the function failed: ValueError: no such thing"):
        asked(lambda model, batch: (_ for _ in ()).throw(ValueError("no such thing")))
    with pytest.raises(InputError, match="loss: negative for"):
        asked(lambda model, batch: -absolute(model, batch) - 1)
    density: Any = lambda model, batch: -absolute(model, batch) - 1  # noqa: E731 (it gets an attribute)
    density.density = True
    with pytest.raises(InputError, match="must not be negative; add a constant"):
        asked(density)
    partly = torch.rand(NODES, 2).round()
    partly[3, 0] = torch.nan
    with pytest.raises(InputError, match="all of its outcomes, or NaN for all"):
        asked(MultiLabelLoss(), partly)
    with pytest.raises(InputError, match="data.y: give the outcomes of every node"):
        asked(absolute, torch.rand(3))
