"""What users' own GNNs return: logits, or something else that must not be read as logits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv

from glasshouse import Evaluation, InputError
from glasshouse.graph import GBASE, GNNTrainer, audit, toggle_losses
from tests.verdicts.test_graphs import DATA, MEMBERS, MyGNN, inductive_script

Answer = Callable[[Tensor, Tensor], Any]


class Wrapped(nn.Module):
    """A trained network, and what a user returns of its hidden layer and its logits."""

    def __init__(self, network: nn.Module, answer: Answer) -> None:
        super().__init__()
        self.network, self.answer = network, answer

    def forward(self, x: Tensor, edge_index: Tensor) -> Any:
        convs: Any = self.network.convs
        return self.answer(convs[0](x, edge_index).relu(), self.network(x, edge_index))


def returning(answer: Answer) -> Callable[[Data, Any, int], nn.Module]:
    """The user's script, whose network returns this."""
    return lambda data, members, seed: Wrapped(inductive_script(data, members, seed), answer)


def audited(**given: Any) -> Any:
    return audit(
        DATA, members=MEMBERS, attacks=["base", GBASE(samples=1)], shadows=2, evaluation=Evaluation(fprs=[0.1]), **given
    )


def hidden_first(hidden: Tensor, logits: Tensor) -> tuple[Tensor, Tensor]:
    return hidden, logits


def test_a_hidden_layer_before_the_logits_is_not_read_as_logits() -> None:
    """16 hidden units for 3 classes: they would have been logits of 16 classes, of which 13 never occur."""
    said = r"it answers with arrays of shapes \[\d+, 16\] and \[\d+, 3\], and there are 3 classes"
    with pytest.raises(InputError, match=said):
        audited(trainer=returning(hidden_first))
    with pytest.raises(InputError, match=said):
        audited(trainer=GNNTrainer(model=lambda: Wrapped(MyGNN(), hidden_first), epochs=2))
    model = Wrapped(MyGNN(), hidden_first).eval()
    masks = torch.from_numpy(MEMBERS)[None]
    with pytest.raises(InputError, match=said):
        toggle_losses([model], DATA, masks, torch.tensor([0, 1]))


def test_logits_before_a_hidden_layer_are_judged_as_alone() -> None:
    alone, both = (audited(trainer=returning(answer)) for answer in (lambda _, logits: logits, lambda h, y: (y, h)))
    np.testing.assert_allclose(alone.evidence.target_loss, both.evidence.target_loss)
    for name in alone.outcomes:
        np.testing.assert_allclose(alone.outcomes[name].scores, both.outcomes[name].scores, atol=1e-6)


def test_percentages_are_refused_and_shares_that_do_not_sum_to_one_are_noted() -> None:
    with pytest.raises(InputError, match="not negative and sum to 100, as percentages"):
        audited(trainer=returning(lambda _, logits: 100 * logits.softmax(dim=1)))
    notes = audited(trainer=returning(lambda _, logits: logits.sigmoid())).context.notes
    assert "The model answers with numbers between 0 and 1 that do not sum to 1" in notes[0]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64], ids=str)
def test_answers_of_another_type_than_the_layers_are_judged_as_the_rule_says(dtype: torch.dtype) -> None:
    """The layers' weights have one type, the answers another; no engine may compute in the wrong one."""
    torch.manual_seed(0)
    model = Wrapped(MyGNN(), lambda _, logits: logits.to(dtype)).eval()
    masks, nodes = torch.rand(2, 120) < 0.5, torch.arange(6)
    found, wanted = (toggle_losses([model], DATA, masks, nodes, engine=engine) for engine in ("auto", "reference"))
    torch.testing.assert_close(found, wanted, atol=1e-5, rtol=0)


def test_a_target_that_gives_embeddings_is_refused() -> None:
    encoder = returning(lambda hidden, _: hidden)(DATA, MEMBERS, 0)
    with pytest.raises(InputError, match="it answers with 16 logits per node, and shadow model 0 with 3"):
        audited(model=encoder, trainer=inductive_script)


def test_a_target_that_cannot_answer_is_refused_before_anything_is_trained() -> None:
    def never(*_: Any) -> nn.Module:
        raise AssertionError("a shadow model was trained")

    with pytest.raises(InputError, match=r"one answers with shape \(120, 2\), but the labels go up to 2"):
        audited(model=lambda x, edge_index: x[:, :2], trainer=never)


def test_columns_in_another_order_are_noted() -> None:
    swapped = returning(lambda _, logits: logits.roll(1, dims=1))
    assert not audited(trainer=inductive_script).context.notes
    notes = audited(model=swapped(DATA, MEMBERS, 0), trainer=inductive_script).context.notes
    assert "if its columns are put into another order" in notes[0]


class Dense(nn.Module):
    """Takes a matrix of the graph, which it is not given."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(60, 3)

    def forward(self, x: Tensor, adjacency: Tensor) -> Tensor:
        return adjacency.float() @ self.layer(x)  # type: ignore[no-any-return]


class Masking(nn.Module):
    """Answers about the nodes of a mask, which a graph of members does not have."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = GCNConv(60, 3)

    def forward(self, data: Data) -> Tensor:
        return self.layer(data.x, data.edge_index)[data.train_mask]  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (Dense, r"it cannot be called as model\(x, edge_index\): RuntimeError: "),
        (Masking, r"it cannot be called as model\(data\): AttributeError: .*train_mask.* The data has edge_index, x\."),
    ],
)
def test_a_network_that_fails_is_refused_in_one_line(made: Callable[[], nn.Module], said: str) -> None:
    with pytest.raises(InputError, match=said) as error:
        audited(trainer=GNNTrainer(model=made, epochs=2))
    assert len(error.value.faults) == 1
