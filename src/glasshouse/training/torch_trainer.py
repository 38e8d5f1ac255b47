"""Train a torch module on the members of a population."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from glasshouse.errors import InputError
from glasshouse.population import BoolArray, Population, as_members
from glasshouse.randomness import generator, seed_for
from glasshouse.training.threads import fitting_threads

__all__ = ["EarlyStopping", "TorchTrainer", "batches", "classification_loss", "tensor_of"]


@dataclass(frozen=True, kw_only=True)
class EarlyStopping:
    """Stop when the loss on held-out records has not improved for ``patience`` epochs; keep the best weights.

    The held-out records are drawn from the non-members, so that every member is trained on.

    Example:
        >>> EarlyStopping(patience=5).records
        1000
    """

    patience: int = 10
    records: int = 1000


@dataclass(frozen=True, kw_only=True)
class TorchTrainer:
    """Trains a fresh module by mini-batches; same seed, same weights.

    Args:
        module: makes an untrained module, such as ``lambda: MyNet()`` or ``mlp(64, 10)``. It gives logits [B, C]; or
            [B] or [B, 1] where there are two classes.
        optimizer: makes an optimizer from parameters, such as ``functools.partial(torch.optim.SGD, lr=0.1)``.
        scheduler: makes a learning-rate scheduler from the optimizer, stepped once an epoch.
        epochs: passes over the members.
        batch_size: records a step.
        augmentation: ``(batch, generator) -> batch``, applied to training batches only, such as `CropAndFlip`.
        early_stopping: when to end before the last epoch; never by default.
        device: where to train; the GPU where there is one.
        mixed_precision: bfloat16 autocast and channels-last memory, on a GPU only.

    Example:
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
    epochs: int = 50
    batch_size: int = 128
    augmentation: Callable[[Tensor, torch.Generator], Tensor] | None = None
    early_stopping: EarlyStopping | None = None
    device: str | None = None
    mixed_precision: bool = True

    @property
    def place(self) -> torch.device:
        """Where models are trained."""
        return torch.device(self.device or ("cuda" if torch.cuda.is_available() else "cpu"))

    def train_many(self, population: Population, members: BoolArray, seeds: Sequence[int]) -> list[nn.Module]:
        """Like one call for each row of ``members`` [K, N] with its seed, in a fraction of the time for small models.

        Without dropout the models are those of single calls up to rounding; with it, they draw other random numbers.
        Modules or optimizers that will not stack are trained one at a time, and the log ``glasshouse`` says why.
        """
        from glasshouse.training.stacked import train_stacked  # it builds on this module

        masks = as_members(members, (len(seeds), len(population.y)), place="members")
        return train_stacked(self, population, masks, seeds)

    def __call__(self, population: Population, members: BoolArray, seed: int) -> nn.Module:
        """A trained module in evaluation mode."""
        device = self.place
        fast = self.mixed_precision and device.type == "cuda"
        with torch.random.fork_rng():  # weights and dropout follow our seed, and the user's own stream stays as it was
            torch.manual_seed(seed_for(seed, "weights"))
            model = self.module().to(device)
            x = tensor_of(population.x)[torch.from_numpy(members)].to(device)
            y = torch.from_numpy(population.y[members]).to(device)
            if fast and x.ndim == 4:
                model = model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
                x = x.contiguous(memory_format=torch.channels_last)
            optimizer = self.optimizer(model.parameters())
            scheduler = self.scheduler(optimizer) if self.scheduler else None
            stopper = _Stopper(self.early_stopping, population, members, seed, device) if self.early_stopping else None
            shuffling = torch.Generator().manual_seed(seed_for(seed, "batches"))
            with fitting_threads(model, x, self.batch_size):
                for _ in range(self.epochs):
                    model.train()
                    for rows in batches(len(x), self.batch_size, shuffling):
                        batch = x[rows.to(device)]
                        if self.augmentation is not None:
                            batch = self.augmentation(batch, shuffling)
                        optimizer.zero_grad(set_to_none=True)
                        with torch.autocast(device.type, dtype=torch.bfloat16, enabled=fast):
                            logits = model(batch)
                        classification_loss(logits.float(), y[rows.to(device)]).backward()
                        optimizer.step()
                    if scheduler:
                        scheduler.step()
                    if stopper and stopper.has_enough(model):
                        break
                if stopper:
                    stopper.restore(model)
        return model.eval()

    def restore(self, population: Population, tensors: dict[str, Tensor]) -> nn.Module:
        """A trained module again, from its stored weights; on the device that the trainer uses."""
        model = self.module()
        model.load_state_dict(tensors)
        return model.to(self.device or ("cuda" if torch.cuda.is_available() else "cpu")).eval()


class _Stopper:
    """Follows the loss on held-out non-members and remembers the best weights."""

    def __init__(
        self, rule: EarlyStopping, population: Population, members: BoolArray, seed: int, device: torch.device
    ) -> None:
        outside = np.flatnonzero(~members)
        if not len(outside):
            raise InputError("early_stopping: every record is a member, so none is left to stop by; leave it out.")
        held = torch.from_numpy(generator(seed, "early stopping").permutation(outside)[: rule.records])
        self.x = tensor_of(population.x)[held].to(device)
        self.y = torch.from_numpy(population.y)[held].to(device)
        self.patience = rule.patience
        self.best = float("inf")
        self.best_state: dict[str, Any] | None = None
        self.waited = 0

    @torch.no_grad()
    def has_enough(self, model: nn.Module) -> bool:
        model.eval()
        parts = zip(torch.split(self.x, 1024), torch.split(self.y, 1024), strict=True)
        loss = sum(float(classification_loss(model(x).float(), y)) * len(y) for x, y in parts) / len(self.y)
        if loss < self.best:
            self.best, self.waited = loss, 0
            self.best_state = copy.deepcopy(model.state_dict())
        else:
            self.waited += 1
        return self.waited >= self.patience

    def restore(self, model: nn.Module) -> None:
        if self.best_state is not None:
            model.load_state_dict(self.best_state)


def classification_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Mean cross-entropy; logits [B, C], or [B] or [B, 1] for two classes.

    Example:
        >>> round(float(classification_loss(torch.zeros(3), torch.tensor([0, 1, 1]))), 4)
        0.6931
    """
    if logits.ndim == 1 or logits.shape[1] == 1:
        return nn.functional.binary_cross_entropy_with_logits(logits.reshape(-1), labels.to(logits.dtype))
    return nn.functional.cross_entropy(logits, labels)


def tensor_of(x: Any) -> Tensor:
    """Features as a tensor: arrays, tensors, sparse matrices and numeric data frames; float64 becomes float32.

    Example:
        >>> tensor_of(np.zeros((2, 3))).dtype
        torch.float32
    """
    if isinstance(x, Tensor):
        return x
    if hasattr(x, "toarray"):
        x = x.toarray()
    array = x.to_numpy() if hasattr(x, "to_numpy") else np.asarray(x)
    if array.dtype.kind not in "fiub":
        raise InputError(f"population: torch models need numbers, but the features are of type {array.dtype}.")
    # a copy where numpy's memory is read-only or strided: torch would warn or refuse
    return torch.from_numpy(np.require(array.astype(np.float32, copy=False), requirements=["C", "W"]))


def batches(count: int, size: int, random: torch.Generator) -> Iterator[Tensor]:
    """Row indices of one epoch's shuffled batches; a lone last record joins the batch before it (batch norm needs two).

    Example:
        >>> [len(rows) for rows in batches(5, 2, torch.Generator().manual_seed(0))]
        [2, 3]
    """
    order = torch.randperm(count, generator=random)
    edges = [*range(0, count, size), count]
    if len(edges) > 2 and edges[-1] - edges[-2] == 1:
        del edges[-2]
    for start, end in itertools.pairwise(edges):
        yield order[start:end]
