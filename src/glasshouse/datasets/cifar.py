"""CIFAR-10 and CIFAR-100: 50 000 training images of 32 x 32 pixels, from files that the user has placed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from glasshouse.arrays import IntArray
from glasshouse.datasets.cifar_files import ImageFiles, binary_files, sheet_files
from glasshouse.datasets.dataset import Dataset, data_root
from glasshouse.errors import InputError
from glasshouse.population import Population
from glasshouse.randomness import generator

__all__ = ["cifar10", "cifar100"]

_IMAGES = 50_000


@dataclass(frozen=True, kw_only=True)
class _Kind:
    """One of the two data sets: its name, its official files, and the mean and deviation of its colours."""

    name: str
    title: str
    archive: str
    md5: str  # of the archive, as cs.toronto.edu/~kriz/cifar.html prints it
    classes: int
    binary: tuple[str, ...]
    label_bytes: int
    mean: tuple[float, float, float]
    deviation: tuple[float, float, float]


_CIFAR_10 = _Kind(
    name="cifar10",
    title="CIFAR-10",
    archive="cifar-10-binary.tar.gz",
    md5="c32a1d4ab5d03f1284b67883e8d87530",
    classes=10,
    binary=tuple(f"data_batch_{part}.bin" for part in range(1, 6)),
    label_bytes=1,
    mean=(0.4914, 0.4822, 0.4465),
    deviation=(0.2470, 0.2435, 0.2616),
)
_CIFAR_100 = _Kind(
    name="cifar100",
    title="CIFAR-100",
    archive="cifar-100-binary.tar.gz",
    md5="03b5dce01913d631647c71ecec9e9cb8",
    classes=100,
    binary=("train.bin",),
    label_bytes=2,  # the coarse class, which is not used, then the fine one
    mean=(0.5071, 0.4865, 0.4409),
    deviation=(0.2673, 0.2564, 0.2762),
)


def cifar10(*, records: int | None = None, first: int = _IMAGES, seed: int = 0) -> Dataset:
    """CIFAR-10's training images, float32 [N, 3, 32, 32], under ``cifar10`` of `data_root`.

    Two kinds of files are read: the official binary version, ``data_batch_1.bin`` to ``data_batch_5.bin``; or lossless
    WebP sheets of 100 x 100 images, ``train_1.webp`` to ``train_5.webp``, with ``labels.npz`` (needs Pillow).
    The test images are not used: members and others are both drawn from the training images.

    Args:
        records: how many to draw; all by default.
        first: draw only from this many first images; files that hold none of them may be missing.
        seed: of the draw.
    """
    return _cifar(_CIFAR_10, records=records, first=first, seed=seed)


def cifar100(*, records: int | None = None, first: int = _IMAGES, seed: int = 0) -> Dataset:
    """CIFAR-100's training images with their fine classes, as `cifar10`; its official binary file is ``train.bin``.

    Args:
        records: how many to draw; all by default.
        first: draw only from this many first images.
        seed: of the draw.
    """
    return _cifar(_CIFAR_100, records=records, first=first, seed=seed)


def _cifar(kind: _Kind, *, records: int | None, first: int, seed: int) -> Dataset:
    if not 2 <= first <= _IMAGES:
        raise InputError(f"first: {first} is not between 2 and {_IMAGES}, the number of training images.")
    if records is not None and not 2 <= records <= first:
        raise InputError(f"records: {records} is not between 2 and {first}, the number of images to draw from.")
    chosen = np.sort(generator(seed, kind.name).permutation(first)[:records])
    x, y = _read(kind, chosen)
    ids = np.char.add(f"{kind.name}-", np.char.zfill(chosen.astype(str), 5))
    about = f"{kind.title}'s training images, {len(chosen)} of {_IMAGES} (32 x 32 pixels, {kind.classes} classes)."
    return Dataset(name=kind.name, about=about, population=Population(x, y, ids=ids, classes=np.arange(kind.classes)))


def _read(kind: _Kind, chosen: IntArray) -> tuple[NDArray[np.float32], IntArray]:
    """Chosen images as float32 [N, 3, 32, 32] and labels [N]; only one file is in memory at a time."""
    files = _files(kind)
    x = np.empty((len(chosen), 3, 32, 32), dtype=np.float32)
    y = np.empty(len(chosen), dtype=np.int64)
    each = _IMAGES // len(files.paths)
    for part in np.unique(chosen // each).tolist():
        here = chosen // each == part
        pixels, labels = files.read(part, each)
        if labels.max() >= kind.classes:
            image = part * each + int(labels.argmax())
            raise InputError(
                f"{files.labels_at(part)}: label {labels.max()} of image {image} is not one of {kind.title}'s classes, "
                f"0 to {kind.classes - 1}. Place the file again."
            )
        x[here], y[here] = pixels[chosen[here] % each], labels[chosen[here] % each]
    # fixed numbers, not computed from the draw: an image is the same input in every draw
    x /= 255
    x -= np.array(kind.mean, dtype=np.float32)[:, None, None]
    x /= np.array(kind.deviation, dtype=np.float32)[:, None, None]
    return x, y


def _files(kind: _Kind) -> ImageFiles:
    """The files that are there, of either kind; the official kind first."""
    folder = data_root() / kind.name
    found = binary_files(folder, kind.binary, label_bytes=kind.label_bytes) or sheet_files(folder, parts=5)
    if found is None:
        raise InputError(
            f"{folder}: there is neither {kind.binary[0]} nor train_1.webp. Place the files of {kind.title}'s binary "
            f"version there ({kind.archive} from cs.toronto.edu/~kriz/cifar.html, md5 {kind.md5}), "
            f"or set GLASSHOUSE_DATA."
        )
    return found
