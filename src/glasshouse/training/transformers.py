"""Train a sequence classifier of Hugging Face on the members of a population, through ``transformers.Trainer``."""

from __future__ import annotations

import importlib
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from glasshouse.core.arrays import BoolArray
from glasshouse.core.errors import InputError, first_line, needs_extra
from glasshouse.core.randomness import seed_for
from glasshouse.data import Population, select
from glasshouse.training.inputs import reader_for
from glasshouse.training.lightning import MembersDataset, check_logits
from glasshouse.training.trainer import check_factory, seeded


@dataclass(frozen=True, kw_only=True)
class TransformersTrainer:
    """Fine-tunes a fresh sequence classifier; same seed, same weights. Nothing is shown, logged or saved.

    For a training loop without ``transformers.Trainer`` (and without its package accelerate), `TorchTrainer` takes the
    same modules and populations.

    Args:
        module: makes a model as it is before fine-tuning, such as
            ``lambda: AutoModelForSequenceClassification.from_pretrained("…", num_labels=3)``.
        epochs: passes over the members.
        batch_size: records per step.
        arguments: more of ``transformers.TrainingArguments``, such as ``{"learning_rate": 5e-5}``.

    Example:
        >>> TransformersTrainer(module=nn.Identity, epochs=1).batch_size
        16
    """

    module: Callable[[], nn.Module]
    epochs: float = 3
    batch_size: int = 16
    arguments: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_factory(self.module, place="module")

    def __call__(self, population: Population, members: BoolArray, seed: int) -> nn.Module:
        """A trained model in evaluation mode."""
        with needs_extra("TransformersTrainer", package="transformers with accelerate", extra="text"):
            importlib.import_module("accelerate")  # transformers.Trainer fails late without it
            import transformers
        with seeded(seed), tempfile.TemporaryDirectory() as folder:
            model = self.module()
            if getattr(getattr(model, "config", None), "num_labels", None) == 1:
                raise InputError(
                    "module: num_labels=1 makes transformers train a regression; give one per class, at least 2. A "
                    "regression is trained by TorchTrainer(module=…)."
                )
            read = reader_for(model, population.x)
            check_logits(model, read, population)
            records = MembersDataset(read(select(population.x, members)), torch.from_numpy(population.y[members]))
            options: dict[str, Any] = {
                "output_dir": folder,
                "num_train_epochs": self.epochs,
                "per_device_train_batch_size": self.batch_size,
                "seed": seed_for(seed, "seed") % 2**31,
                "data_seed": seed_for(seed, "data_seed") % 2**31,
                "report_to": "none",
                "save_strategy": "no",
                "logging_strategy": "no",
                "disable_tqdm": True,
                "dataloader_pin_memory": False,
            }
            arguments = transformers.TrainingArguments(**(options | dict(self.arguments)))
            trainer = transformers.Trainer(model=model, args=arguments, train_dataset=records, data_collator=_named)
            trainer.remove_callback(transformers.PrinterCallback)  # prints its figures where there is no bar
            try:
                trainer.train()
            except Exception as error:
                raise InputError(
                    f"module: {type(model).__name__} could not be trained by transformers.Trainer: {first_line(error)}"
                ) from error
        return model.eval()

    def restore(self, population: Population, tensors: dict[str, Tensor]) -> nn.Module:
        """A trained model again, from its stored weights."""
        model = self.module()
        model.load_state_dict(tensors)
        return model.eval()


def _named(rows: Any) -> dict[str, Tensor]:
    """A batch by the names of the arguments of ``forward``; a single tensor holds token numbers."""
    x, y = rows  # whole batches, as `MembersDataset` gives them
    return {**(x if isinstance(x, dict) else {"input_ids": x}), "labels": y}
