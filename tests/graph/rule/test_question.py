from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data

from glasshouse.core.errors import InputError
from glasshouse.graph.rule.question import ask
from glasshouse.graph.rule.toggling import toggle_losses


def graph(**changes: Tensor | None) -> Data:
    parts = {
        "x": torch.ones(3, 2),
        "edge_index": torch.tensor([[0, 1], [1, 0]]),
        "y": torch.tensor([0, 1, 0]),
        **changes,
    }
    return Data(**parts)


def features_as_logits(x: Tensor, edge_index: Tensor) -> Tensor:
    return x


def first_feature(x: Tensor, edge_index: Tensor) -> Tensor:
    return x[:, :1]


EVERYONE = torch.ones(1, 3, dtype=torch.bool)
FIRST = torch.tensor([0])


@pytest.mark.parametrize(
    ("data", "masks", "nodes", "message"),
    [
        (graph(y=None), EVERYONE, FIRST, "data.y: is missing; x, edge_index and y are all needed"),
        (graph(), torch.ones(2, 4, dtype=torch.bool), FIRST, r"masks: each has 4 entries .* Pass bool \[masks, 3\]"),
        (graph(), EVERYONE, torch.tensor([3]), "nodes: ids outside 0 ... 2"),
        (graph(), EVERYONE, torch.tensor([-1]), "nodes: ids outside 0 ... 2"),
        (graph(), EVERYONE, torch.tensor([0.5]), "nodes: have type torch.float32"),
        (graph(x=torch.tensor([[1.0], [torch.nan], [0.0]])), EVERYONE, FIRST, "data.x: node 1 has a NaN"),
        (graph(edge_index=torch.tensor([[0], [7]])), EVERYONE, FIRST, "data.edge_index: names nodes outside"),
        (graph(y=torch.tensor([0, 1])), EVERYONE, FIRST, r"data.y: has shape \(2,\) for 3 nodes"),
        (graph(y=torch.tensor([0.0, 1.5, 1.0])), EVERYONE, FIRST, "data.y: some labels are not whole numbers"),
        (graph(y=torch.tensor([-1, 1, 0])), EVERYONE, FIRST, "data.y: 1 target nodes have no label"),
    ],
)
def test_bad_input_is_named_with_its_remedy(data: Data, masks: Tensor, nodes: Tensor, message: str) -> None:
    with pytest.raises(InputError, match=message):
        ask(data, masks, nodes)


def test_several_faults_are_told_at_once() -> None:
    data = graph(x=torch.full((3, 1), torch.nan), edge_index=torch.tensor([[0], [7]]))
    with pytest.raises(InputError) as caught:
        ask(data, torch.ones(1, 4, dtype=torch.bool), torch.tensor([9]))
    assert [fault.split(":")[0] for fault in caught.value.faults] == ["data.x", "data.edge_index", "masks", "nodes"]


def test_labels_may_be_missing_where_nobody_asks() -> None:
    data = graph(y=torch.tensor([0, 1, -1]))
    masks = torch.tensor([[True, True, False]])
    signal = toggle_losses([features_as_logits], data, masks, torch.tensor([0, 1]))
    assert signal.shape == (1, 1, 2)


def test_too_few_logits_are_named() -> None:
    with pytest.raises(InputError, match="logits have 1 columns for 2 classes"):
        toggle_losses([first_feature], graph(), EVERYONE, FIRST)


def test_a_bool_mask_of_targets_is_their_ids() -> None:
    assert ask(graph(), EVERYONE, torch.tensor([True, False, True])).nodes.tolist() == [0, 2]
