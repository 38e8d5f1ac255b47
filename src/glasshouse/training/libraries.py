"""Train a torch module on the members of a population through other libraries: Lightning, transformers, and Opacus.

Lightning and transformers get the members as a torch dataset. Opacus trains with differential privacy (DP-SGD), to
compare a claimed ε with what attacks find.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import importlib
import logging
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

from glasshouse.core.arrays import BoolArray
from glasshouse.core.errors import InputError, first_line, needs_extra, raise_faults
from glasshouse.core.randomness import seed_for
from glasshouse.data import Population, select
from glasshouse.training.batches import answers_for, fitting_threads, labels_of, logits_of, mean_loss
from glasshouse.training.inputs import Inputs, moved, place_of, reader_for, rows_of
from glasshouse.training.trainer import ModuleTrainer, seeded

_QUIET = {  # what Lightning shows or writes otherwise; a user's own option goes first
    "logger": False,
    "enable_checkpointing": False,
    "enable_progress_bar": False,
    "enable_model_summary": False,
    "devices": 1,
}
_NOTES = (  # of Lightning: advice about data loaders, though the records are in memory; the last is torch's, inside it
    "does not have many workers",
    "is smaller than the logging interval",
    "no `val_dataloader`",
    "isinstance.treespec, LeafSpec.",
)
# warnings of Opacus about choices made here on purpose: seeded noise, an input that needs no gradient, a small ε
_EXPECTED_WARNINGS = ("Secure RNG turned off", "Full backward hook is firing", "Optimal order is the")


class _Members(Dataset[Any]):
    """Records in memory: features [N, ...], or a dict of these, and labels [N]. A data loader asks for whole batches.

    A module whose ``forward`` does not give logits for the population's classes is refused here.
    """

    def __init__(self, model: nn.Module, population: Population, members: BoolArray) -> None:
        self.x = reader_for(model, population.x)(select(population.x, members))
        self.y = torch.from_numpy(population.y[members])
        few = moved(rows_of(self.x, slice(8)), place_of(model))
        logits_of(model, few, classes=len(population.classes))

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, rows: Any) -> tuple[Inputs, Tensor]:
        return rows_of(self.x, rows), self.y[rows]

    def __getitems__(self, rows: list[int]) -> tuple[Inputs, Tensor]:
        """A batch: features [B, ...] and labels [B]."""
        return self[torch.tensor(rows)]


@contextlib.contextmanager
def _fitted_by(library: str, model: nn.Module, advice: str = "") -> Iterator[None]:
    """Around the training by a library: what fails there becomes a refusal in one line."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        told = f"{first_line(error).rstrip('.')}. {advice}".rstrip()
        raise InputError(f"module: {type(model).__name__} could not be trained by {library}: {told}") from error


@dataclass(frozen=True, kw_only=True)
class LightningTrainer(ModuleTrainer):
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

    epochs: int = 50
    batch_size: int = 128
    batch: Callable[[Any, Tensor], Any] | None = None
    trainer_options: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, population: Population, members: BoolArray, seed: int) -> nn.Module:
        """A trained module in evaluation mode."""
        quiet = _ignoring(_NOTES, loggers=("lightning.pytorch", "pytorch_lightning"))
        with seeded(seed), tempfile.TemporaryDirectory() as folder, quiet:
            model = self.module()
            bases = [base for base in type(model).__mro__ if base.__name__ == "LightningModule"]
            if not bases:
                name = type(model).__name__
                raise InputError(f"module: {name} is not a LightningModule. Use TorchTrainer for a plain torch module.")
            library = importlib.import_module(bases[0].__module__.partition(".")[0])  # or the older pytorch_lightning
            records = _Members(model, population, members)
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
            advice = "Its training_step gets a batch (x, y), or what batch= makes of it."
            with _fitted_by("lightning.Trainer", model, advice):
                trainer.fit(model, loader)
        return model.eval()

    def _collated(self, rows: Any) -> Any:
        return self.batch(*rows) if self.batch is not None else rows if isinstance(rows[0], Tensor) else _named(rows)


@contextlib.contextmanager
def _ignoring(texts: Iterable[str], *, loggers: Iterable[str] = ()) -> Iterator[None]:
    """Without warnings that hold one of these texts, and without what these loggers say below errors."""
    levels = {logger: logger.level for logger in map(logging.getLogger, loggers)}
    try:
        with warnings.catch_warnings():
            for text in texts:
                warnings.filterwarnings("ignore", message=f".*{text}")
            for logger in levels:
                logger.setLevel(logging.ERROR)
            yield
    finally:
        for logger, level in levels.items():
            logger.setLevel(level)


@dataclass(frozen=True, kw_only=True)
class TransformersTrainer(ModuleTrainer):
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

    epochs: float = 3
    batch_size: int = 16
    arguments: Mapping[str, Any] = field(default_factory=dict)

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
            records = _Members(model, population, members)
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
            with _fitted_by("transformers.Trainer", model):
                trainer.train()
        return model.eval()


def _named(rows: Any) -> dict[str, Tensor]:
    """A whole batch by the names of the arguments of ``forward``; a single tensor holds token numbers."""
    x, y = rows  # as `_Members` gives them
    return {**(x if isinstance(x, dict) else {"input_ids": x}), "labels": y}


@functools.cache
def _noise(epsilon: float, delta: float, rate: float, epochs: int) -> float:
    """The noise multiplier, the same for all models of a pool: to find it takes as long as to train a small model."""
    found = importlib.import_module("opacus.accountants.utils").get_noise_multiplier
    return float(found(target_epsilon=epsilon, target_delta=delta, sample_rate=rate, epochs=epochs, accountant="rdp"))


@dataclass(frozen=True, kw_only=True)
class PrivateTrainer(ModuleTrainer):
    """DP-SGD with Poisson sampling; the noise is chosen so that all epochs together spend (epsilon, delta).

    The noise follows the seed, so that an audit can be repeated. A released model needs noise that nobody can repeat.

    Args:
        module: makes an untrained module without batch normalisation (it mixes records).
        epsilon: ε to spend.
        delta: δ, below one over the number of members.
        optimizer: makes an optimizer from parameters.
        epochs: passes over the members, on average.
        batch_size: records per step, on average.
        clipping: largest norm of one record's gradient.

    Example:
        >>> from glasshouse.training import mlp
        >>> PrivateTrainer(module=mlp(64, 10), epsilon=3.0, delta=1e-5).clipping
        1.0
    """

    epsilon: float
    delta: float
    optimizer: Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer] = torch.optim.Adam
    epochs: int = 20
    batch_size: int = 128
    clipping: float = 1.0

    def __call__(self, population: Population, members: BoolArray, seed: int) -> nn.Module:
        """A trained plain module in evaluation mode, on the CPU."""
        with needs_extra("PrivateTrainer", package="opacus", extra="dp"):
            import opacus
            import opacus.validators
        with torch.random.fork_rng(), _ignoring(_EXPECTED_WARNINGS):
            torch.manual_seed(seed_for(seed, "weights"))
            model = self.module()
            faults = opacus.validators.ModuleValidator.validate(model, strict=False)
            raise_faults([f"module: DP-SGD cannot train it: {fault}" for fault in faults])
            x = reader_for(model, population.x)(select(population.x, members))
            if not isinstance(x, Tensor):
                raise InputError("population: DP-SGD trains on one tensor, not on a dict of arrays; give one array.")
            records = TensorDataset(x, labels_of(population)[torch.from_numpy(members)])
            read = answers_for(population, model, x)
            random = torch.Generator().manual_seed(seed_for(seed, "batches"))
            loader = DataLoader(records, batch_size=self.batch_size, generator=random)
            private, optimizer, loader = opacus.PrivacyEngine(accountant="rdp").make_private(
                module=model.train(),
                optimizer=self.optimizer(model.parameters()),
                data_loader=loader,
                noise_multiplier=_noise(self.epsilon, self.delta, 1 / len(loader), self.epochs),
                max_grad_norm=self.clipping,
                noise_generator=torch.Generator().manual_seed(seed_for(seed, "noise")),
            )
            with fitting_threads(model, records.tensors[0], self.batch_size):
                for _ in range(self.epochs):
                    for x, y in loader:  # Poisson sampling may draw an empty batch; its step only adds noise
                        optimizer.zero_grad()
                        mean_loss(read(private(x)), y).backward()
                        optimizer.step()
            # a fresh one, without Opacus's hooks, so that the result is an ordinary module
            return self.restore(population, private._module.state_dict())
