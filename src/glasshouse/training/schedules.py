"""What changes while a torch model is trained: the learning rate, the images of a batch, and when training ends."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from glasshouse.core.errors import number_faults, raise_faults

Schedule = Callable[[float], float]


@dataclass(frozen=True, kw_only=True)
class OneCycle:
    """Up linearly, down along a cosine: good accuracy in few epochs (Smith and Topin, 2018).

    Args:
        warmup: share of the training with a rising rate; with 0 there is only the cosine.
        start: factor on the learning rate at the start.
        end: factor at the end.

    Example:
        >>> cycle = OneCycle(warmup=0.2)
        >>> tuple(round(cycle(done), 2) for done in (0.0, 0.1, 0.2, 0.6, 1.0))
        (0.1, 0.55, 1.0, 0.5, 0.0)
    """

    warmup: float = 0.2
    start: float = 0.1
    end: float = 0.0

    def __post_init__(self) -> None:
        raise_faults(number_faults(self, shares=("warmup",)))

    def __call__(self, done: float) -> float:
        """The factor after a share ``done`` of the training."""
        if done < self.warmup:
            return self.start + (1 - self.start) * done / self.warmup
        fallen = (1 - math.cos(math.pi * (done - self.warmup) / (1 - self.warmup))) / 2
        return 1 + (self.end - 1) * fallen


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
class CropAndFlip:
    """Shift each image by up to ``padding`` pixels and mirror half of them: the usual CIFAR augmentation.

    The empty border after a shift is filled with the image's own reflection. Padding 0 mirrors and does not shift.

    Example:
        >>> batch = torch.arange(2 * 3 * 8 * 8.0).reshape(2, 3, 8, 8)
        >>> CropAndFlip(padding=2)(batch, torch.Generator().manual_seed(0)).shape
        torch.Size([2, 3, 8, 8])
    """

    padding: int = 4

    def __call__(self, batch: Tensor, random: torch.Generator) -> Tensor:
        """Augmented copy of a batch [B, C, H, W]; draws come from ``random`` alone, on its own device.

        With a generator on the batch's device, a GPU does not have to wait for the CPU.
        """
        size, _, height, width = batch.shape
        place = random.device
        down, right = torch.randint(-self.padding, self.padding + 1, (2, size, 1), generator=random, device=place)
        mirrored = torch.rand((size, 1), generator=random, device=place) < 0.5
        rows, columns = torch.arange(height, device=place), torch.arange(width, device=place)
        rows = _reflected(rows + down, height)  # [B, H]
        columns = _reflected(torch.where(mirrored, width - 1 - columns, columns) + right, width)  # [B, W]
        # one gather for the whole batch, without a padded copy: images [B, 1, 1], [B, H, 1], [B, 1, W]
        images = torch.arange(size, device=batch.device)[:, None, None]
        moved = batch.permute(0, 2, 3, 1)[images, rows.to(batch.device)[:, :, None], columns.to(batch.device)[:, None]]
        return moved.permute(0, 3, 1, 2)


def _reflected(places: Tensor, count: int) -> Tensor:
    """Places outside 0 … count - 1, reflected at the edge; the edge itself is not repeated."""
    last = count - 1
    return last - (last - places.abs()).abs()
