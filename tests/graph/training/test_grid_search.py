from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from glasshouse.core.errors import InputError
from glasshouse.core.randomness import seed_for
from glasshouse.data import random_subsets
from glasshouse.graph.data.population import induced
from glasshouse.graph.data.synthetic import citation_graph
from glasshouse.graph.training.grid_search import PAPER_GRID, grid_search
from glasshouse.graph.training.trainer import GNNTrainer, adam

DATA = citation_graph(nodes=200, classes=3, words=100, topic_words=40)
BASE = GNNTrainer(hidden=8, epochs=10, device="cpu")


def accuracy(model: nn.Module, nodes: np.ndarray) -> float:
    graph = induced(DATA, nodes)
    return float((model(graph.x, graph.edge_index).argmax(1) == graph.y).double().mean())


def test_every_row_equals_a_trial_trained_on_its_own() -> None:
    """The search reads several epochs off one run; here each is a run of its own."""
    grid: dict[str, Any] = {"learning_rate": [0.01, 0.001], "epochs": [3, 20], "dropout": [0.0, 0.5]}
    table = grid_search(DATA, grid, base=BASE, minimum_gap=-1.0, splits=2, seed=5).table
    assert table.height == 8
    halves = random_subsets(200, models=2, fraction=0.5, seed=seed_for(5, "grid search"))
    for row in table.rows():
        trainer = replace(BASE, optimizer=adam(lr=row["learning_rate"]), epochs=row["epochs"], dropout=row["dropout"])
        models = [trainer(DATA, half, seed_for(5, "grid search", split)) for split, half in enumerate(halves)]
        train = np.mean([accuracy(model, half) for model, half in zip(models, halves, strict=True)])
        test = np.mean([accuracy(model, ~half) for model, half in zip(models, halves, strict=True)])
        assert (row["train_accuracy"], row["test_accuracy"]) == pytest.approx((train, test))
        assert row["gap"] == pytest.approx(train - test)


def test_the_best_is_the_best_on_test_among_those_that_reach_the_gap() -> None:
    grid: dict[str, Any] = {"hidden": [4, 32], "epochs": [5, 30, 100], "learning_rate": [0.01]}
    everything = grid_search(DATA, grid, base=BASE, minimum_gap=-1.0, splits=1).table
    minimum = float(np.median(everything["gap"]))
    found = grid_search(DATA, grid, base=BASE, minimum_gap=minimum, splits=1)
    rows = [row for row in found.table.rows() if row["reaches_gap"]]
    assert 0 < len(rows) < found.table.height
    assert all(row["gap"] >= minimum - 1e-9 for row in rows)
    best = max(rows, key=lambda row: row["test_accuracy"])
    assert (found.best.hidden, found.best.epochs) == (best["hidden"], best["epochs"])
    assert found.best.optimizer([nn.Parameter(torch.zeros(1))]).defaults["lr"] == 0.01
    assert found.best.architecture == BASE.architecture


def test_weight_decay_and_architecture_are_searched_as_well() -> None:
    grid: dict[str, Any] = {"architecture": ["gcn", "sgc"], "weight_decay": [0.0, 0.1]}
    found = grid_search(DATA, grid, base=BASE, minimum_gap=-1.0, splits=1)
    assert found.table["architecture"].tolist() == ["gcn", "gcn", "sgc", "sgc"]
    chosen = found.best.optimizer([nn.Parameter(torch.zeros(1))]).defaults
    assert chosen["weight_decay"] in (0.0, 0.1)
    assert chosen["lr"] == 0.01  # the base's own, which the grid does not name


def test_a_gap_that_nothing_reaches_is_said_with_the_largest_one_seen() -> None:
    with pytest.raises(InputError, match=r"no setting reaches 0.99; the largest gap is -?\d\.\d{3}"):
        grid_search(DATA, {"epochs": [1, 2]}, base=BASE, minimum_gap=0.99, splits=1)


def only_a_rate(parameters: Iterable[nn.Parameter], *, lr: float = 0.1) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, lr=lr)


@pytest.mark.parametrize(
    ("grid", "base", "message"),
    [
        ({"momentum": [0.9]}, BASE, '"momentum" cannot be searched'),
        ({"hidden": []}, BASE, "hidden has no values"),
        ({"epochs": [10, 0]}, BASE, "epochs: 0 is too small"),
        ({"dropout": [1.5]}, BASE, "dropout: 1.5"),
        ({"architecture": ["gcn", "gta"]}, BASE, 'architecture: "gta" is not a network. Did you mean "gat"'),
        ({"hidden": [8]}, replace(BASE, model=lambda: nn.Identity()), "no effect on a model of your own"),
        ({"weight_decay": [0.1]}, replace(BASE, optimizer=only_a_rate), "its optimizer does not take"),
    ],
)
def test_a_grid_that_cannot_be_searched_is_refused_before_anything_is_trained(
    grid: dict[str, Any], base: GNNTrainer, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(GNNTrainer, "__call__", None)
    with pytest.raises(InputError, match=message):
        grid_search(DATA, grid, base=base)


def test_the_papers_grid_is_a_grid() -> None:
    assert set(PAPER_GRID) == {"learning_rate", "weight_decay", "dropout", "hidden", "epochs"}
    assert (min(PAPER_GRID["epochs"]), max(PAPER_GRID["epochs"])) == (20, 1600)
