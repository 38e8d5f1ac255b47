"""Random changes to a batch of images while training."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

__all__ = ["CropAndFlip"]


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
