"""Random changes to a batch of images while training."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

__all__ = ["CropAndFlip"]


@dataclass(frozen=True, kw_only=True)
class CropAndFlip:
    """Shift each image by up to ``padding`` pixels and mirror half of them: the usual CIFAR augmentation.

    Example:
        >>> batch = torch.arange(2 * 3 * 8 * 8.0).reshape(2, 3, 8, 8)
        >>> CropAndFlip(padding=2)(batch, torch.Generator().manual_seed(0)).shape
        torch.Size([2, 3, 8, 8])
    """

    padding: int = 4

    def __call__(self, batch: Tensor, random: torch.Generator) -> Tensor:
        """Augmented copy of a batch [B, C, H, W]; draws come from ``random`` alone, on the CPU."""
        size, _, height, width = batch.shape
        pad = self.padding
        padded = torch.nn.functional.pad(batch, (pad, pad, pad, pad), mode="reflect")
        down, right = torch.randint(2 * pad + 1, (2, size), generator=random)
        mirrored = torch.rand(size, generator=random) < 0.5
        columns = torch.arange(width).expand(size, width)
        columns = torch.where(mirrored[:, None], width - 1 - columns, columns) + right[:, None]
        rows = torch.arange(height)[None, :] + down[:, None]
        device = batch.device
        # one gather for the whole batch: images [B, 1, 1], rows [B, H, 1], columns [B, 1, W]
        images = torch.arange(size, device=device)[:, None, None]
        picked = padded[images, :, rows.to(device)[:, :, None], columns.to(device)[:, None, :]]  # [B, H, W, C]
        return picked.permute(0, 3, 1, 2)
