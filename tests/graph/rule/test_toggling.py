from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data

from glasshouse import InputError
from glasshouse.graph.models.networks import Model
from glasshouse.graph.rule.reference import reference_losses
from glasshouse.graph.rule.toggling import toggle_answers, toggle_losses
from tests.graph.random_graphs import random_models


def black_box(x: Tensor, edge_index: Tensor) -> Tensor:
    return x[:, :3]


def small() -> tuple[Data, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    data = Data(
        x=torch.randn(10, 5, generator=generator, dtype=torch.float64),
        edge_index=torch.randint(0, 10, (2, 30), generator=generator),
        y=torch.randint(0, 3, (10,), generator=generator),
    )
    return data, torch.rand(2, 10, generator=generator) < 0.6, torch.arange(5)


def test_models_of_all_kinds_may_be_asked_together() -> None:
    """Each group of one shape gets the engine that fits; the order of the models is kept."""
    data, masks, nodes = small()
    gcn, sage = random_models("gcn", layers=2), random_models("sage", layers=3)
    models: list[Model] = [gcn[0], sage[0], black_box, gcn[1], sage[1]]
    torch.testing.assert_close(
        toggle_losses(models, data, masks, nodes), reference_losses(models, data, masks, nodes), atol=1e-7, rtol=0
    )


@pytest.mark.parametrize(
    ("architecture", "engine"), [("gcn", "layered"), ("sage", "layered"), ("gat", "layered"), ("gin", "packed")]
)
def test_own_losses_are_those_of_the_rule_as_written(architecture: str, engine: str) -> None:
    data, masks, nodes = small()
    models = random_models(architecture, layers=2)
    found, wanted = (
        toggle_answers(models, data, masks, nodes, engine=engine),
        toggle_answers(models, data, masks, nodes, engine="reference"),
    )
    torch.testing.assert_close(found.own, wanted.own, atol=1e-9, rtol=0)
    torch.testing.assert_close(found.signal, toggle_losses(models, data, masks, nodes, engine=engine))


def test_the_reference_is_an_engine_too() -> None:
    data, masks, nodes = small()
    models = random_models("gin", layers=1)
    torch.testing.assert_close(
        toggle_losses(models, data, masks, nodes, engine="reference"), reference_losses(models, data, masks, nodes)
    )


def test_an_unknown_engine_is_named() -> None:
    data, masks, nodes = small()
    with pytest.raises(
        ValueError, match=r"engine: 'warp' is not known. Use auto, toggle, reference or one of .*packed"
    ):
        toggle_losses(random_models("gin", layers=1), data, masks, nodes, engine="warp")


def test_a_black_box_cannot_be_toggled_row_by_row() -> None:
    data, masks, nodes = small()
    with pytest.raises(ValueError, match=r'cannot toggle function row by row. Use "auto"'):
        toggle_losses([black_box], data, masks, nodes, engine="toggle")


@pytest.mark.parametrize("engine", ["packed", "reference"])
def test_a_signal_that_is_not_finite_is_refused_with_its_model_and_nodes(engine: str) -> None:
    """The whole graph does not show it: node 0 has no answer without all its edges."""
    data, masks, nodes = small()

    def hollow(x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        degrees = torch.bincount(edge_index[1], minlength=len(x))
        spoilt = (x == data.x[0]).all(dim=1) & (degrees < (data.edge_index[1] == 0).sum())
        return torch.where(spoilt[:, None], torch.nan, black_box(x, edge_index))

    with pytest.raises(InputError, match=r"^models\[1\], asked about parts of the graph: NaN or infinite for \d+ of"):
        toggle_losses([black_box, hollow], data, masks, nodes, engine=engine)


def test_nothing_asked_is_nothing_answered() -> None:
    data, masks, _ = small()
    nobody = torch.zeros(0, dtype=torch.long)
    assert toggle_losses(random_models("gcn", layers=2), data, masks, nobody).shape == (2, 2, 0)
