"""Made-up files of CIFAR's forms: every image one colour that its number gives, so that each can be told apart."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image


def colours(numbers: NDArray[np.int64]) -> NDArray[np.uint8]:
    """[N, 3] a colour for each image; the first pixel's red is one more, so that mirrored images would show."""
    return np.stack([numbers % 251, numbers // 251 % 251, numbers % 7], axis=1).astype(np.uint8)


def images(numbers: NDArray[np.int64]) -> NDArray[np.uint8]:
    """[N, 3, 32, 32]."""
    pixels = np.tile(colours(numbers)[:, :, None, None], (1, 1, 32, 32))
    pixels[:, 0, 0, 1] += 1
    pixels[:, 1, 2, 0] += 1
    return pixels


def write_binary(path: Path, labels: NDArray[np.uint8], *, start: int, count: int) -> None:
    """A file for ``count`` images of which the first [L, label bytes] are written, and the rest is a hole of zeros."""
    rows = np.concatenate([labels, images(start + np.arange(len(labels))).reshape(len(labels), -1)], axis=1)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.write(rows.tobytes())
        file.truncate(count * rows.shape[1])


def write_sheet(path: Path, *, start: int) -> None:
    """A lossless sheet of 100 x 100 images."""
    tiles = images(start + np.arange(10_000)).reshape(100, 100, 3, 32, 32).transpose(0, 3, 1, 4, 2)
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(tiles.reshape(3200, 3200, 3)).save(path, lossless=True, quality=0, method=0)
