"""Train a LightningModule on the members of a population, through Lightning's own Trainer.

Trainers of other libraries get the members as a torch dataset.
"""

from __future__ import annotations

import contextlib
import copy
import importlib
import logging
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from glasshouse.core.arrays import BoolArray
from glasshouse.core.errors import InputError, first_line, needs_extra
from glasshouse.core.randomness import seed_for
from glasshouse.data import Population, select
from glasshouse.training.batches import logits_of
from glasshouse.training.inputs import Inputs, called, first_tensor, moved, reader_for, rows_of
from glasshouse.training.trainer import check_factory, seeded

_LOOK = 8  # records that show what a module answers with


class MembersDataset(Dataset[Any]):
    """Records in memory. A data loader asks for a whole batch at once, as pairs of features and labels.

    Args:
        x: [N, ...] features: a tensor, or a dict of tensors.
        y: [N] labels.

    Example:
        >>> records = MembersDataset(torch.eye(3), torch.arange(3))
        >>> records.__getitems__([2, 0])[1]
        tensor([2, 0])
    """

    def __init__(self, x: Inputs, y: Tensor) -> None:
        self.x, self.y = x, y

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, row: int) -> tuple[Any, Tensor]:
        return rows_of(self.x, row), self.y[row]  # type: ignore[arg-type]

    def __getitems__(self, rows: list[int]) -> tuple[Inputs, Tensor]:
        """A batch: features [B, ...] and labels [B]."""
        some = torch.tensor(rows)
        return rows_of(self.x, some), self.y[some]


def check_logits(model: nn.Module, read: Callable[[Any], Inputs], population: Population) -> None:
    """Refuse a module whose ``forward`` does not give logits for the population's classes, before it is trained.

    Example:
        >>> from glasshouse.training.inputs import reader_for
        >>> population = Population(np.eye(3), ["a", "b", "c"])
        >>> model = nn.Linear(3, 2)
        >>> check_logits(model, reader_for(model, population.x), population)
        Traceback (most recent call last):
        glasshouse.InputError: module: it gives 2 logits, but there are 3 classes; give one per class.
    """
    few = read(select(population.x, np.arange(min(_LOOK, len(population)))))
    weights = next(model.parameters(), None)
    few = moved(few, "cpu" if weights is None else weights.device)
    logits_of(model, first_tensor(few), classes=len(population.classes), call=lambda module: called(module, few))


_QUIET = {  # what Lightning shows or writes otherwise; a user's own option goes first
    "logger": False,
    "enable_checkpointing": False,
    "enable_progress_bar": False,
    "enable_model_summary": False,
    "devices": 1,
}


@dataclass(frozen=True, kw_only=True)
class LightningTrainer:
    """Trains a fresh LightningModule with its own ``training_step`` and optimizers; same seed, same weights.

    Nothing is shown and nothing is written: no bars, no ``lightning_logs``, no checkpoints, unless the options ask for
    them. Its ``forward`` must give logits, since that is what an audit asks.

    Args:
        module: makes an untrained module, such as ``lambda: MyModule()``.
        epochs: passes over the members.
        batch_size: records per step.
        batch: from features and labels of a batch to what ``training_step`` takes. By default a pair ``(x, y)``; if the
            records are a dict of arrays, a dict with ``labels``. Labels are int64 columns of ``population.classes``.
        trainer_options: of ``lightning.Trainer``, such as ``{"gradient_clip_val": 1.0}``. Callbacks are copied for
            every model.

    Example:
        >>> trainer = LightningTrainer(module=nn.Identity, epochs=3, trainer_options={"gradient_clip_val": 1.0})
        >>> trainer.batch_size
        128
    """

    module: Callable[[], nn.Module]
    epochs: int = 50
    batch_size: int = 128
    batch: Callable[[Any, Tensor], Any] | None = None
    trainer_options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_factory(self.module, place="module")

    def __call__(self, population: Population, members: BoolArray, seed: int) -> nn.Module:
        """A trained module in evaluation mode."""
        with seeded(seed), tempfile.TemporaryDirectory() as folder, _silence():
            model = self.module()
            library = _library_of(model)
            read = reader_for(model, population.x)
            check_logits(model, read, population)
            records = MembersDataset(read(select(population.x, members)), torch.from_numpy(population.y[members]))
            loader = DataLoader(
                records,
                batch_size=min(self.batch_size, len(records)),
                shuffle=True,
                # a last batch of one record, on which batch norm fails, is left out of an epoch
                drop_last=len(records) % self.batch_size == 1 < len(records),
                collate_fn=self._collated,
                generator=torch.Generator().manual_seed(seed_for(seed, "batches")),
            )
            options = {"max_epochs": self.epochs, "default_root_dir": folder, **_QUIET}
            trainer = library.Trainer(**(options | copy.deepcopy(dict(self.trainer_options))))
            try:
                trainer.fit(model, loader)
            except InputError:
                raise
            except Exception as error:
                raise InputError(
                    f"module: {type(model).__name__} could not be trained by lightning.Trainer: "
                    f"{first_line(error).rstrip('.')}. Its training_step gets a batch (x, y), or what batch= makes of "
                    f"it."
                ) from error
        return model.eval()

    def restore(self, population: Population, tensors: dict[str, Tensor]) -> nn.Module:
        """A trained module again, from its stored weights."""
        model = self.module()
        model.load_state_dict(tensors)
        return model.eval()

    def _collated(self, rows: Any) -> Any:
        x, y = rows  # whole batches, as `MembersDataset` gives them
        if self.batch is not None:
            return self.batch(x, y)
        return {**x, "labels": y} if isinstance(x, dict) else (x, y)


def _library_of(model: nn.Module) -> Any:
    """The package whose Trainer fits this module: ``lightning``, or the older ``pytorch_lightning``."""
    bases = [base for base in type(model).__mro__ if base.__name__ == "LightningModule"]
    if not bases:
        raise InputError(
            f"module: {type(model).__name__} is not a LightningModule. Use TorchTrainer for a plain torch module."
        )
    name = bases[0].__module__.partition(".")[0]
    with needs_extra("LightningTrainer", package="lightning", extra="lightning"):
        return importlib.import_module(name)


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """No notes about GPUs, and no advice about data loaders: the records are in memory already."""
    loggers = [logging.getLogger(name) for name in ("lightning.pytorch", "pytorch_lightning")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            for text in ("does not have many workers", "is smaller than the logging interval", "no `val_dataloader`"):
                warnings.filterwarnings("ignore", message=f".*{text}")
            warnings.filterwarnings("ignore", message=".*isinstance.treespec, LeafSpec.")  # torch's, inside Lightning
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
