from __future__ import annotations

import pickle
from typing import Any
from unittest.mock import Mock

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GCN

from glasshouse.core.errors import InputError
from glasshouse.graph.models import profile
from glasshouse.graph.models.profile import Profiled, ask_model, evaluation_mode, profile_models

X = torch.randn(6, 3, generator=torch.Generator().manual_seed(0))
DATA = Data(x=X, edge_index=torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]]))


class Taking:
    """A user's own callable of one kind of answer."""

    def __init__(self, answer: Any, *, takes_data: bool = False) -> None:
        self.answer, self.takes_data = answer, takes_data

    def __call__(self, *given: Any) -> Any:
        if self.takes_data:
            (data,) = given
            assert isinstance(data, Data)
            return self.answer(data.x)
        x, _ = given
        return self.answer(x)


def met(model: Any) -> Profiled:
    return profile_models([model], DATA)[0]


def test_a_model_is_called_with_features_and_edges_or_with_one_data() -> None:
    for takes_data in (False, True):
        model = met(Taking(lambda x: x, takes_data=takes_data))
        assert model.profile.arguments.takes_data == takes_data
        assert torch.equal(ask_model(model, DATA), X)


def test_probabilities_are_turned_into_logits_of_the_same_softmax() -> None:
    model = met(Taking(lambda x: x.softmax(1)))
    assert model.profile.probabilities
    torch.testing.assert_close(ask_model(model, DATA).softmax(1), X.softmax(1))
    assert any("probabilities" in note for note in model.profile.notes)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (lambda x: x.argmax(1), "whole numbers"),
        (lambda x: x[:2], "answered 6 nodes with shape"),
        (lambda x: x @ torch.ones(7, 1), "cannot be called as model"),
    ],
)
def test_answers_that_are_not_logits_are_refused(answer: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        met(Taking(answer))


def test_a_model_is_tried_once_and_measured_once_where_parts_are_asked_about(monkeypatch: pytest.MonkeyPatch) -> None:
    tried, measured = Mock(wraps=profile._tried), Mock(wraps=profile._measured)
    monkeypatch.setattr(profile, "_tried", tried)
    monkeypatch.setattr(profile, "_measured", measured)
    known = profile_models([Taking(lambda x: x)], DATA, parts=False)
    assert profile_models(known, DATA, parts=False) == known
    assert (tried.call_count, measured.call_count) == (1, 0)
    more = profile_models(known, DATA)
    assert profile_models(more, DATA) == more
    assert (tried.call_count, measured.call_count) == (1, 1)
    assert more[0].profile.measured > known[0].profile.measured


def test_a_profile_of_a_graph_with_other_values_of_edges_is_made_anew() -> None:
    known = met(Taking(lambda x: x))
    weighted = Data(x=X, edge_index=DATA.edge_index, edge_weight=torch.ones(6))
    (other,) = profile_models([known], weighted)
    assert other is not known
    assert (known.profile.arguments.held, other.profile.arguments.held) == ((), (("edge_weight", 1),))


def test_what_is_known_of_a_model_travels_with_it() -> None:
    """A worker does not measure it again, and its program still runs."""
    known = met(GCN(3, 4, num_layers=2, out_channels=2))
    there: Profiled = pickle.loads(pickle.dumps(known))
    assert known.profile.program is not None
    assert there.profile.program is not None
    assert (there.profile.hops, there.profile.program.signature) == (2, known.profile.program.signature)
    given = {"x": X, "edge_index": DATA.edge_index, "edge_weight": None, "edge_attr": None}
    with evaluation_mode([known, there]):
        assert torch.equal(
            there.profile.program.run(there.root, given)[there.profile.program.output], known.logits(DATA)
        )


def test_modules_are_in_evaluation_mode_within_and_as_before_afterwards() -> None:
    training, resting = nn.Dropout().train(), nn.Dropout().eval()
    with pytest.raises(ZeroDivisionError), evaluation_mode([training, resting, lambda x, edges: x]):
        assert not training.training
        assert not torch.is_grad_enabled()
        raise ZeroDivisionError
    assert (training.training, resting.training) == (True, False)


def test_a_stated_reach_counts_where_the_weights_leave_it_unused() -> None:
    class Stated(nn.Module):
        hops = 3

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            return x

    assert met(Stated()).profile.hops == 3


def test_the_log_says_why_a_model_is_asked_as_a_black_box(caplog: pytest.LogCaptureFixture) -> None:
    class Branching(nn.Module):
        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            return x if x.sum() > 0 else -x

    with caplog.at_level("INFO", logger="glasshouse"):
        (model,) = profile_models([Branching()], Data(x=torch.eye(4), edge_index=torch.tensor([[0, 1], [1, 0]])))
    (line,) = [record.message for record in caplog.records if "Branching" in record.message]
    assert line.startswith("The model Branching is asked as a black box: its forward pass cannot be traced (")
    assert model.profile.notes[0].startswith("The model is asked as a black box, which is exact but slow: its forward")
