"""Hyper-parameters by grid search, among models that memorise some of their members (paper, App. A)."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import nn
from torch_geometric.data import Data

from glasshouse.core.arrays import FloatArray
from glasshouse.core.errors import InputError, raise_faults
from glasshouse.core.progress import track
from glasshouse.core.randomness import seed_for
from glasshouse.core.table import Table
from glasshouse.data import random_subsets
from glasshouse.graph.training.setting import node_accuracy
from glasshouse.graph.training.trainer import GNNTrainer

PAPER_GRID: dict[str, Sequence[Any]] = {
    "learning_rate": (0.01, 0.001),
    "weight_decay": (1e-4, 1e-5),
    "dropout": (0.0, 0.25, 0.5),
    "hidden": (32, 64, 128, 256, 512),
    "epochs": (20, 50, 100, 200, 400, 800, 1600),
}

_KEYS = ("architecture", "learning_rate", "weight_decay", "dropout", "hidden", "epochs")
_OPTIMIZER_NAMES = {"learning_rate": "lr", "weight_decay": "weight_decay"}  # ours -> torch's

Setting = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class GridSearch:
    """What a grid search found.

    Args:
        best: the trainer with the best test accuracy among those that reach the gap.
        table: one row per trial, in the grid's order: its setting, mean ``train_accuracy`` and ``test_accuracy``, their
            difference ``gap``, and whether it ``reaches_gap``.
    """

    best: GNNTrainer
    table: Table


def grid_search(
    data: Data,
    grid: Mapping[str, Sequence[Any]],
    *,
    base: GNNTrainer,
    minimum_gap: float = 0.08,
    splits: int = 3,
    seed: int = 0,
    progress: bool | None = None,
) -> GridSearch:
    """The trainer with the best test accuracy among those whose generalisation gap is large enough for an audit.

    Every trial is trained on the same random halves of the nodes. Train accuracy is measured on the graph induced by
    the members, test accuracy on the graph induced by the non-members, each with only the edges inside it: the model is
    inductive, and new nodes are a separate graph. Trials that differ only in ``epochs`` are measured in one run, so all
    of them together cost as much as the longest.

    Args:
        data: the graph.
        grid: what to try, by name: ``architecture``, ``learning_rate``, ``weight_decay``, ``dropout``, ``hidden``,
            ``epochs``; `PAPER_GRID` holds the paper's values.
        base: everything that the grid does not name. If the grid names the learning rate or the weight decay, its
            optimizer must take ``lr`` and ``weight_decay`` as keywords, as torch's do.
        minimum_gap: smallest mean difference of train and test accuracy that is accepted.
        splits: halves to average over.
        seed: of the halves and of the models.
        progress: whether to show a bar; by default on a terminal, and elsewhere a plain line now and then.

    Example:
        >>> from glasshouse.graph.data.synthetic import citation_graph
        >>> found = grid_search(
        ...     citation_graph(nodes=200),
        ...     {"hidden": [8], "learning_rate": [0.01], "epochs": [1, 40]},
        ...     base=GNNTrainer(device="cpu"),
        ...     splits=1,
        ... )
        >>> found.best.epochs, found.table["epochs"].tolist()
        (40, [1, 40])
    """
    _check(grid, base, splits)
    settings = [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]
    stations = sorted({int(setting.get("epochs", base.epochs)) for setting in settings})
    runs = [dict(shared) for shared in dict.fromkeys(_without_epochs(setting) for setting in settings)]
    halves = random_subsets(int(data.num_nodes or 0), models=splits, fraction=0.5, seed=seed_for(seed, "grid search"))
    measured: dict[tuple[object, ...], list[tuple[float, ...]]] = {}
    jobs = track(
        itertools.product(runs, range(splits)),
        total=len(runs) * splits,
        label="Grid search",
        unit="models",
        show=progress,
    )
    for run, split in jobs:
        trainer = replace(_configured(base, run), epochs=stations[-1])
        sides = halves[split], ~halves[split]

        def watch(epoch: int, model: nn.Module, run: Setting = run, sides: Any = sides) -> None:
            if epoch in stations:
                accuracies = tuple(node_accuracy(model, data, side) for side in sides)
                measured.setdefault((_without_epochs(run), epoch), []).append(accuracies)

        trainer(data, sides[0], seed_for(seed, "grid search", split), after_epoch=watch)
    means = np.array(
        [
            np.mean(measured[_without_epochs(setting), int(setting.get("epochs", base.epochs))], axis=0)
            for setting in settings
        ]
    )  # [trials, 2]
    table = _table(grid, settings, means, minimum_gap)
    if not table["reaches_gap"].any():
        raise InputError(
            f"minimum_gap: no setting reaches {minimum_gap:g}; the largest gap is {table['gap'].max():.3f}. "
            "Lower it, or try more epochs, less weight decay or wider layers."
        )
    best = int(np.argmax(np.where(table["reaches_gap"], table["test_accuracy"], -np.inf)))
    return GridSearch(best=_configured(base, settings[best]), table=table)


def _without_epochs(setting: Setting) -> tuple[tuple[str, Any], ...]:
    return tuple((name, value) for name, value in setting.items() if name != "epochs")


def _configured(base: GNNTrainer, setting: Setting) -> GNNTrainer:
    """The base with one setting of the grid."""
    options = {_OPTIMIZER_NAMES[name]: value for name, value in setting.items() if name in _OPTIMIZER_NAMES}
    fields = {name: value for name, value in setting.items() if name not in _OPTIMIZER_NAMES}
    optimizer: Callable[..., torch.optim.Optimizer] = base.optimizer
    return replace(base, optimizer=functools.partial(optimizer, **options) if options else base.optimizer, **fields)


def _check(grid: Mapping[str, Sequence[Any]], base: GNNTrainer, splits: int) -> None:
    faults = [f'grid: "{name}" cannot be searched. Known: {", ".join(_KEYS)}.' for name in grid if name not in _KEYS]
    faults += [
        f"grid: {name} has no values; give one or more, or leave it out." for name in grid if not len(grid[name])
    ]
    if base.model is not None:
        fixed = [name for name in ("architecture", "hidden", "dropout") if name in grid]
        faults += [f"grid: {name} has no effect on a model of your own; leave it out." for name in fixed]
    if splits < 1:
        faults.append(f"splits: {splits} is too small; use 1 or more.")
    raise_faults(faults)
    for values in itertools.product(*grid.values()):  # a value out of range is reported now, not after hours
        trainer = _configured(base, dict(zip(grid, values, strict=True)))
    try:
        trainer.optimizer([nn.Parameter(torch.zeros(1))])
    except TypeError as error:
        raise InputError(
            f"base: its optimizer does not take what the grid names ({error}). Use adam() or sgd(), or leave "
            "learning_rate and weight_decay out of the grid."
        ) from None


def _table(
    grid: Mapping[str, Sequence[Any]], settings: Sequence[Setting], means: FloatArray, minimum_gap: float
) -> Table:
    train, test = means.T
    gap = train - test
    columns: dict[str, Any] = {name: [setting[name] for setting in settings] for name in grid}
    return Table(
        columns
        | {
            "train_accuracy": train,
            "test_accuracy": test,
            "gap": gap,
            "reaches_gap": gap >= minimum_gap - 1e-12,  # a gap of exactly the minimum counts in spite of rounding
        }
    )
