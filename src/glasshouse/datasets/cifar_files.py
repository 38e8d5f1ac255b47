"""The two kinds of files with CIFAR's images: the official bytes, and sheets of 100 x 100 images."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from glasshouse.errors import InputError, needs_extra
from glasshouse.reading import read_npz

__all__ = ["ImageFiles", "binary_files", "sheet_files"]

Bytes = NDArray[np.uint8]
_SIDE = 32
_PIXELS = 3 * _SIDE * _SIDE
_ACROSS = 100  # images in a row, and in a column, of a sheet


@dataclass(frozen=True)
class ImageFiles(ABC):
    """Files that hold the images one after another, the same number in each.

    Args:
        paths: in the order of the images; files of images that are not needed may be missing.
    """

    paths: tuple[Path, ...]

    @abstractmethod
    def read(self, part: int, count: int) -> tuple[Bytes, Bytes]:
        """Images [count, 3, 32, 32] and labels [count] of one file."""

    @abstractmethod
    def labels_at(self, part: int) -> str:
        """Where a file's labels are, for errors."""

    def place(self, part: int) -> Path:
        """A file's path; an error if it does not exist."""
        path = self.paths[part]
        if not path.is_file():
            raise InputError(f"{path}: there is no such file. Place it beside {self.paths[0].name}, or use fewer.")
        return path


@dataclass(frozen=True)
class _BinaryFiles(ImageFiles):
    label_bytes: int

    def read(self, part: int, count: int) -> tuple[Bytes, Bytes]:
        path = self.place(part)
        expected = count * (self.label_bytes + _PIXELS)
        if path.stat().st_size != expected:
            raise InputError(
                f"{path}: has {path.stat().st_size} bytes instead of {expected} ({count} records of {self.label_bytes} "
                f"label and {_PIXELS} pixel bytes). It is incomplete or another file: place it again."
            )
        rows = np.memmap(path, dtype=np.uint8, mode="r").reshape(count, -1)
        return rows[:, self.label_bytes :].reshape(count, 3, _SIDE, _SIDE), np.array(rows[:, self.label_bytes - 1])

    def labels_at(self, part: int) -> str:
        return str(self.paths[part])


@dataclass(frozen=True)
class _SheetFiles(ImageFiles):
    @property
    def labels_path(self) -> Path:
        return self.paths[0].with_name("labels.npz")

    def read(self, part: int, count: int) -> tuple[Bytes, Bytes]:
        path = self.place(part)
        sheet = _pixels(path, _ACROSS * _SIDE)
        # rows of images, rows of pixels, columns of images, columns of pixels, colours
        tiles = sheet.reshape(_ACROSS, _SIDE, _ACROSS, _SIDE, 3).transpose(0, 2, 4, 1, 3)
        return tiles.reshape(-1, 3, _SIDE, _SIDE), self._labels(count)[part * count : (part + 1) * count]

    def labels_at(self, part: int) -> str:
        return f"{self.labels_path}: train"

    def _labels(self, count: int) -> Bytes:
        labels = read_npz(self.labels_path, only=["train"]).get("train")
        if labels is None:
            raise InputError(f"{self.labels_path}: train: is missing. It holds the images' classes: place it again.")
        expected = (count * len(self.paths),)
        if labels.shape != expected or labels.dtype != np.uint8:
            raise InputError(
                f"{self.labels_path}: train: {labels.dtype} of shape {labels.shape} instead of uint8 of shape "
                f"{expected}, one class per image. Place it again."
            )
        return labels


def binary_files(folder: Path, names: Sequence[str], *, label_bytes: int) -> ImageFiles | None:
    """The official binary version: records of label bytes and 3 072 pixels, colour by colour; None if not there.

    Args:
        folder: where they are, or one folder down, as the archive unpacks.
        names: of the files.
        label_bytes: before the pixels; the last of them is the class.
    """
    for first in sorted([*folder.glob(names[0]), *folder.glob(f"*/{names[0]}")]):
        return _BinaryFiles(tuple(first.with_name(name) for name in names), label_bytes)
    return None


def sheet_files(folder: Path, *, parts: int) -> ImageFiles | None:
    """WebP sheets ``train_1.webp``, … with ``labels.npz``; None if they are not there."""
    paths = tuple(folder / f"train_{part}.webp" for part in range(1, parts + 1))
    return _SheetFiles(paths) if any(path.is_file() for path in paths) else None


def _pixels(path: Path, side: int) -> Bytes:
    """[side, side, 3]; an image of another size is refused by its header, before it is unpacked."""
    with needs_extra("Reading image sheets", package="Pillow", extra="images"):
        from PIL import Image, UnidentifiedImageError, features
    if not features.check("webp"):
        raise InputError(f"{path}: this Pillow cannot read WebP. Install one that can, or place the binary version.")
    try:
        with Image.open(path) as image:
            if image.size != (side, side):
                raise InputError(
                    f"{path}: has {image.width} x {image.height} pixels instead of {side} x {side} ({_ACROSS} x "
                    f"{_ACROSS} images of {_SIDE} x {_SIDE}). Place the sheet again."
                )
            return np.asarray(image.convert("RGB"))
    except (OSError, UnidentifiedImageError, Image.DecompressionBombError) as error:
        raise InputError(f"{path}: is not an image that can be read ({error}). Place the sheet again.") from error
