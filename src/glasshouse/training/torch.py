"""Train a torch module on the members of a population."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from glasshouse.core.arrays import BoolArray
from glasshouse.core.errors import InputError
from glasshouse.core.randomness import seed_for
from glasshouse.data import Population, as_members, select
from glasshouse.io.caches import keep_code_private
from glasshouse.training.batched import train_batched
from glasshouse.training.batches import answers_for, batch_count, batches, fitting_threads, labels_of, loss_for
from glasshouse.training.inputs import called, first_tensor, moved, reader_for, refuse_missing, rows_of
from glasshouse.training.schedules import EarlyStopping, Schedule, Stopper, following
from glasshouse.training.trainer import check_factory


@dataclass(frozen=True, kw_only=True)
class TorchTrainer:
    """Trains a fresh module by mini-batches; same seed, same weights.

    Args:
        module: makes an untrained module, such as ``lambda: MyNet()`` or ``mlp(64, 10)``. It gives logits [B, C]; or
            [B] or [B, 1] where there are two classes. A dict, a tuple or an object with ``logits`` is unwrapped, and
            a module that ends in softmax is trained on the logarithms of its probabilities. For a regression it gives
            predictions [B] or [B, 1], trained by squared error, or mean and log-variance [B, 2], by their likelihood.
            If the records are a dict of arrays, it is called with them by name.
        optimizer: makes an optimizer from parameters, such as ``functools.partial(torch.optim.SGD, lr=0.1)``.
        scheduler: makes a learning-rate scheduler from the optimizer, stepped once per epoch.
        schedule: from the share of training that is done to a factor on the learning rate, at every step; such as
            `OneCycle`. It works for any number of epochs.
        epochs: passes over the members.
        batch_size: records per step.
        augmentation: ``(batch, generator) -> batch``, applied to training batches only, such as `CropAndFlip`.
        early_stopping: when to end before the last epoch; never by default.
        device: where to train; the GPU where there is one.
        mixed_precision: bfloat16 autocast and channels-last memory, on a GPU only.
        compiled: train through ``torch.compile``: the first model waits about a minute for it, and all steps are then
            shorter. Models that are trained in one batch are not compiled.

    Example:
        >>> import numpy as np
        >>> from glasshouse.training import mlp
        >>> population = Population(np.eye(4, dtype=np.float32), [0, 1, 0, 1])
        >>> trainer = TorchTrainer(module=mlp(4, 2), epochs=3)
        >>> model = trainer(population, np.array([True, True, False, False]), seed=0)
        >>> model(torch.eye(4)).shape
        torch.Size([4, 2])
    """

    module: Callable[[], nn.Module]
    optimizer: Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer] = torch.optim.Adam
    scheduler: Callable[[torch.optim.Optimizer], torch.optim.lr_scheduler.LRScheduler] | None = None
    schedule: Schedule | None = None
    epochs: int = 50
    batch_size: int = 128
    augmentation: Callable[[Any, torch.Generator], Any] | None = None
    early_stopping: EarlyStopping | None = None
    device: str | None = None
    mixed_precision: bool = True
    compiled: bool = False

    def __post_init__(self) -> None:
        check_factory(self.module, place="module")

    @property
    def place(self) -> torch.device:
        """Where models are trained."""
        chosen = torch.device(self.device or ("cuda" if torch.cuda.is_available() else "cpu"))
        if chosen.type == "cuda" and not torch.cuda.is_available():
            raise InputError(
                f"device: torch finds no GPU for {self.device!r} here; leave device out to train on the CPU."
            )
        return chosen

    def train_many(self, population: Population, members: BoolArray, seeds: Sequence[int]) -> list[nn.Module]:
        """Like one call for each row of ``members`` [K, N] with its seed, in a fraction of the time for small models.

        Without dropout the models equal those of single calls up to rounding; with it, they draw other random numbers.
        Modules or optimizers that cannot be batched are trained one at a time, and the log ``glasshouse`` says why.
        """
        masks = as_members(members, (len(seeds), len(population.y)), place="members")
        return train_batched(self, population, masks, seeds)

    def __call__(
        self,
        population: Population,
        members: BoolArray,
        seed: int,
        *,
        after_epoch: Callable[[nn.Module], object] | None = None,
    ) -> nn.Module:
        """A trained module in evaluation mode.

        Args:
            population: the records.
            members: [N] which of them train it.
            seed: of weights, batches, dropout and augmentation.
            after_epoch: called with the module after every epoch, such as ``LossTrace(population).record``; it must
                not draw random numbers from torch.
        """
        device = self.place
        fast = self.mixed_precision and device.type == "cuda"
        with torch.random.fork_rng():  # weights and dropout follow our seed; the user's own random stream is unchanged
            torch.manual_seed(seed_for(seed, "weights"))
            model = self.module().to(device)
            inputs = reader_for(model, population.x)
            x = moved(inputs(select(population.x, members)), device)
            y = labels_of(population)[torch.from_numpy(members)].to(device)
            if fast and isinstance(x, Tensor) and x.ndim == 4:
                model = model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
                x = x.contiguous(memory_format=torch.channels_last)
            refuse_missing(model, x, names=getattr(population.x, "columns", None))
            optimizer = self.optimizer(model.parameters())
            scheduler = self.scheduler(optimizer) if self.scheduler else None
            rates = following(self.schedule, optimizer, steps=self.epochs * batch_count(len(y), self.batch_size))
            read = answers_for(population, model, x, classes=len(population.classes))
            loss_of = loss_for(population)
            stopper = None
            if self.early_stopping:
                stopper = Stopper(self.early_stopping, population, members, seed, device, inputs, read)
            shuffling = torch.Generator().manual_seed(seed_for(seed, "batches"))
            augmenting = torch.Generator(device).manual_seed(seed_for(seed, "augmentation"))
            if self.compiled:
                keep_code_private()
            forward = torch.compile(model) if self.compiled else model
            with fitting_threads(model, first_tensor(x), self.batch_size):
                for _ in range(self.epochs):
                    model.train()
                    for rows in batches(len(y), self.batch_size, shuffling, device):
                        batch = rows_of(x, rows)
                        if self.augmentation is not None:
                            batch = self.augmentation(batch, augmenting)
                        optimizer.zero_grad(set_to_none=True)
                        with torch.autocast(device.type, dtype=torch.bfloat16, enabled=fast):
                            answer = called(forward, batch)
                        loss_of(read(answer), y[rows]).backward()
                        optimizer.step()
                        if rates:
                            rates.step()
                    if scheduler:
                        scheduler.step()
                    if after_epoch is not None:
                        after_epoch(model)
                    if stopper and stopper.has_enough(model):
                        break
                if stopper:
                    stopper.restore(model)
        return model.eval()

    def restore(self, population: Population, tensors: dict[str, Tensor]) -> nn.Module:
        """A trained module again, from its stored weights; on the device that the trainer uses."""
        model = self.module()
        model.load_state_dict(tensors)
        return model.to(self.place).eval()
