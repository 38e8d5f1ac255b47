from __future__ import annotations

import pickle
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from glasshouse.errors import InputError
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


def test_a_profiled_model_is_not_tried_again_on_such_a_graph_and_only_measured_where_parts_are_asked_about() -> None:
    calls: list[int] = []

    def counting(x: Tensor, edge_index: Tensor) -> Tensor:
        calls.append(len(x))
        return x

    tried = profile_models([counting], DATA, parts=False)
    asked = len(calls)
    assert profile_models(tried, DATA, parts=False) == tried
    assert len(calls) == asked
    measured = profile_models(tried, DATA)
    assert measured[0].profile.measured
    assert calls[asked:].count(len(X)) < asked + calls[asked:].count(len(X))  # the first calls were not repeated
    asked = len(calls)
    assert profile_models(measured, DATA) == measured
    assert len(calls) == asked


def test_a_profile_of_a_graph_with_other_values_of_edges_is_made_anew() -> None:
    known = met(Taking(lambda x: x))
    weighted = Data(x=X, edge_index=DATA.edge_index, edge_weight=torch.ones(6))
    (other,) = profile_models([known], weighted)
    assert other is not known
    assert (known.profile.arguments.held, other.profile.arguments.held) == ((), (("edge_weight", 1),))


def test_what_is_known_of_a_model_travels_with_it_and_is_not_given_to_another() -> None:
    model = met(nn.Linear(3, 2))
    copy = pickle.loads(pickle.dumps(model))
    assert copy.profile == model.profile
    assert not isinstance(copy.model, Profiled)


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
