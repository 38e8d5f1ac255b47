"""Data sets by name: the embedded digits, and Adult and CIFAR from files that the user has placed."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits

from glasshouse.core.arrays import BoolArray, FloatArray, IntArray
from glasshouse.core.errors import InputError, needs_extra
from glasshouse.core.numerics import check_finite
from glasshouse.core.randomness import generator
from glasshouse.core.registry import Registry
from glasshouse.data import Population
from glasshouse.io.arrays import read_npz
from glasshouse.io.guarded import guarded, read_content
from glasshouse.io.limits import check_memory

_TIMES = 12  # how much larger the cells are than the file
_IMAGES = 50_000
_SIDE = 32
_PIXELS = 3 * _SIDE * _SIDE
_ACROSS = 100  # images in a row, and in a column, of a sheet
_SHEETS = 5
_LABELS = "labels.npz"  # beside the sheets
_COLOURS = (3, _SIDE, _SIDE)
Bytes = NDArray[np.uint8]


@dataclass(frozen=True, eq=False, kw_only=True)
class Dataset:
    """A population with its name and a description."""

    name: str  # by which it is loaded
    about: str  # a sentence for readers of figures; it says what in the data is made up
    population: Population
    wrong_labels: BoolArray | None = None  # [N] which labels were made wrong on purpose; None if there are none
    groups: Mapping[str, NDArray[Any]] = field(default_factory=dict)  # columns [N] that divide the records, by name
    members: BoolArray | None = None  # [N] which records trained the target; None if the data does not say
    notes: tuple[str, ...] = ()  # what a reader of the report should know about how the features were made
    warnings: tuple[str, ...] = ()  # columns that are probably not meant as features, labels that only one file has
    remade: tuple[str, ...] = ()  # columns that were encoded: a model of the user's own cannot know how


def data_root() -> Path:
    """The folder of data files: ``GLASSHOUSE_DATA``, or ``data`` in the working folder."""
    return Path(os.environ.get("GLASSHOUSE_DATA", "data"))


def digits(*, mislabelled: float = 0.1, seed: int = 0) -> Dataset:
    """1 797 handwritten digits of 8 x 8 pixels, part of scikit-learn, some with a wrong label on purpose.

    Clean digits leak little. A wrong label can only be memorised, so a share of them shows what a leak looks like.

    Args:
        mislabelled: share of records whose label is changed to another at random.
        seed: of the choice.

    Example:
        >>> data = digits()
        >>> len(data.population), int(data.wrong_labels.sum())
        (1797, 180)
    """
    if not 0 <= mislabelled < 1:
        raise InputError(f"mislabelled: {mislabelled} is not a share below 1.")
    bunch = load_digits()
    labels = bunch.target.astype(np.int64)
    random = generator(seed, "wrong labels")
    wrong = np.zeros(len(labels), dtype=np.bool_)
    wrong[random.permutation(len(labels))[: round(mislabelled * len(labels))]] = True
    labels[wrong] = (labels[wrong] + random.integers(1, 10, size=int(wrong.sum()))) % 10
    about = "scikit-learn's digits (8 x 8 pixels, 10 classes)."
    if wrong.any():
        about += (
            f" {int(wrong.sum())} of {len(labels)} labels were made wrong on purpose: clean digits leak little, and a "
            f"wrong label can only be memorised."
        )
    population = Population(bunch.data / 16, labels, ids=[f"digit-{i:04d}" for i in range(len(labels))])
    return Dataset(name="digits", about=about, population=population, wrong_labels=wrong)


def adult(*, records: int | None = None, seed: int = 0) -> Dataset:
    """Census income (UCI Adult): ``adult/adult.data`` and ``adult/adult.test`` under `data_root`, all or some records.

    Numbers are standardised and categories are one-hot, so that one population works for every kind of model.
    """
    folder = data_root() / "adult"
    rows: list[list[str]] = []
    for name in ("adult.data", "adult.test"):
        path = folder / name
        if not path.is_file():
            raise InputError(f"{path}: there is no such file. Place UCI's {name} there, or set GLASSHOUSE_DATA.")
        with guarded(path, what=f"UCI's {name}"):
            lines = read_content(path, times=_TIMES).decode().splitlines()
            rows += [row for row in csv.reader(lines, skipinitialspace=True) if len(row) == 15]
    if not rows:
        raise InputError(f"{folder}: holds no records. Place UCI's files there again.")
    if records is not None:
        chosen = generator(seed, "adult").permutation(len(rows))[:records]
        rows = [rows[index] for index in np.sort(chosen).tolist()]
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    features = np.concatenate([_encoded(column) for column in columns[:14]], axis=1)
    advice = "Place UCI's files again."
    check_finite(features, np.arange(len(features)).astype(str), place=str(folder), advice=advice)
    labels = np.char.rstrip(columns[14], ".")
    about = f"UCI Adult (census income), {len(labels)} records."
    return Dataset(name="adult", about=about, population=Population(features, labels))


def _encoded(column: np.ndarray) -> FloatArray:
    """A column of text as numbers: standardised [N, 1], or one-hot [N, values]."""
    try:
        values = column.astype(np.float64)
    except ValueError:
        found = np.unique(column)
        check_memory(9 * len(column) * len(found), place="adult", what="a column with a feature for each text takes")
        return np.asarray(column[:, None] == found[None, :], dtype=np.float64)
    return np.asarray((values - values.mean()) / (values.std() or 1.0))[:, None]


@dataclass(frozen=True, kw_only=True)
class _Kind:
    """One of the two data sets: its official files, and the mean and deviation of its colours."""

    classes: int
    md5: str  # of the archive, as cs.toronto.edu/~kriz/cifar.html prints it
    files: tuple[str, ...]  # of the binary version
    label_bytes: int
    mean: tuple[float, float, float]
    deviation: tuple[float, float, float]


_CIFAR_10 = _Kind(
    classes=10,
    md5="c32a1d4ab5d03f1284b67883e8d87530",
    files=tuple(f"data_batch_{part}.bin" for part in range(1, 6)),
    label_bytes=1,
    mean=(0.4914, 0.4822, 0.4465),
    deviation=(0.2470, 0.2435, 0.2616),
)
_CIFAR_100 = _Kind(
    classes=100,
    md5="03b5dce01913d631647c71ecec9e9cb8",
    files=("train.bin",),
    label_bytes=2,  # the coarse class, which is not used, then the fine one
    mean=(0.5071, 0.4865, 0.4409),
    deviation=(0.2673, 0.2564, 0.2762),
)


def cifar10(*, records: int | None = None, first: int = _IMAGES, seed: int = 0) -> Dataset:
    """CIFAR-10's training images, float32 [N, 3, 32, 32], under ``cifar10`` of `data_root`.

    Files are the official binary version, ``data_batch_1.bin`` to ``data_batch_5.bin``; or lossless WebP sheets of 100
    x 100 images, ``train_1.webp`` to ``train_5.webp``, with ``labels.npz`` (needs Pillow). ``records`` is how many to
    draw, from the ``first`` ones alone: files that hold none of these may be missing.
    """
    return _cifar(_CIFAR_10, records=records, first=first, seed=seed)


def cifar100(*, records: int | None = None, first: int = _IMAGES, seed: int = 0) -> Dataset:
    """CIFAR-100's training images with their fine classes, as `cifar10`; its official binary file is ``train.bin``."""
    return _cifar(_CIFAR_100, records=records, first=first, seed=seed)


def _cifar(kind: _Kind, *, records: int | None, first: int, seed: int) -> Dataset:
    if not 2 <= first <= _IMAGES:
        raise InputError(f"first: {first} is not between 2 and {_IMAGES}, the number of training images.")
    if records is not None and not 2 <= records <= first:
        raise InputError(f"records: {records} is not between 2 and {first}, the number of images to draw from.")
    name = f"cifar{kind.classes}"
    chosen = np.sort(generator(seed, name).permutation(first)[:records])
    x, y = _read(kind, chosen, data_root() / name)
    ids = np.char.add(f"{name}-", np.char.zfill(chosen.astype(str), 5))
    images = f"CIFAR-{kind.classes}'s training images, {len(chosen)} of {_IMAGES}"
    about = f"{images} (32 x 32 pixels, {kind.classes} classes)."
    return Dataset(name=name, about=about, population=Population(x, y, ids=ids, classes=np.arange(kind.classes)))


def _read(kind: _Kind, chosen: IntArray, folder: Path) -> tuple[NDArray[np.float32], IntArray]:
    """Chosen images as float32 [N, 3, 32, 32] and labels [N]; only one file is in memory at a time."""
    title = f"CIFAR-{kind.classes}"
    # the official version, where it was placed or one folder down, as the archive unpacks; else sheets
    binary = sorted([*folder.glob(kind.files[0]), *folder.glob(f"*/{kind.files[0]}")])
    sheets = [folder / f"train_{part}.webp" for part in range(1, _SHEETS + 1)]
    paths = [binary[0].with_name(name) for name in kind.files] if binary else sheets
    if not binary and not any(path.is_file() for path in sheets):
        raise InputError(
            f"{folder}: there is neither {kind.files[0]} nor {sheets[0].name}. Place the files of {title}'s binary "
            f"version there ({title.lower()}-binary.tar.gz from cs.toronto.edu/~kriz/cifar.html, md5 {kind.md5}), "
            f"or set GLASSHOUSE_DATA."
        )
    x = np.empty((len(chosen), *_COLOURS), dtype=np.float32)
    y = np.empty(len(chosen), dtype=np.int64)
    each = _IMAGES // len(paths)
    for part in np.unique(chosen // each).tolist():
        path, here = paths[part], chosen // each == part
        if not path.is_file():
            raise InputError(f"{path}: there is no such file. Place it beside {paths[0].name}, or use fewer.")
        pixels, labels = _binary(path, each, kind.label_bytes) if binary else _sheet(path, part, each)
        if labels.max() >= kind.classes:
            place = path if binary else f"{path.with_name(_LABELS)}: train"
            raise InputError(
                f"{place}: label {labels.max()} of image {part * each + int(labels.argmax())} is not one of "
                f"{title}'s classes, 0 to {kind.classes - 1}. Place the file again."
            )
        x[here], y[here] = pixels[chosen[here] % each], labels[chosen[here] % each]
    # fixed numbers, not computed from the draw: an image is the same input in every draw
    x /= 255
    x -= np.array(kind.mean, dtype=np.float32)[:, None, None]
    x /= np.array(kind.deviation, dtype=np.float32)[:, None, None]
    return x, y


def _binary(path: Path, count: int, label_bytes: int) -> tuple[Bytes, Bytes]:
    """Images [count, 3, 32, 32] and labels [count]: records of label bytes, of which the last counts, and pixels."""
    size, expected = path.stat().st_size, count * (label_bytes + _PIXELS)
    if size != expected:
        raise InputError(
            f"{path}: has {size} bytes instead of {expected} ({count} records of {label_bytes} label and {_PIXELS} "
            f"pixel bytes). It is incomplete or another file: place it again."
        )
    rows = np.memmap(path, dtype=np.uint8, mode="r").reshape(count, -1)
    return rows[:, label_bytes:].reshape(count, *_COLOURS), np.array(rows[:, label_bytes - 1])


def _sheet(path: Path, part: int, count: int) -> tuple[Bytes, Bytes]:
    """Images [count, 3, 32, 32] and labels [count] of a sheet."""
    # rows of images, rows of pixels, columns of images, columns of pixels, colours
    tiles = _pixels(path, _ACROSS * _SIDE).reshape(_ACROSS, _SIDE, _ACROSS, _SIDE, 3).transpose(0, 2, 4, 1, 3)
    place = path.with_name(_LABELS)
    labels = read_npz(place, only=["train"]).get("train")
    if labels is None:
        raise InputError(f"{place}: train: is missing. It holds the images' classes: place it again.")
    if labels.shape != (count * _SHEETS,) or labels.dtype != np.uint8:
        raise InputError(
            f"{place}: train: {labels.dtype} of shape {labels.shape} instead of uint8 of shape {(count * _SHEETS,)}, "
            f"one class per image. Place it again."
        )
    return tiles.reshape(-1, *_COLOURS), labels[part * count : (part + 1) * count]


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


_DATASETS: Registry[Callable[..., Dataset]] = Registry("a data set")
for _named in (digits, adult, cifar10, cifar100):
    _DATASETS.add(_named.__name__, _named)


def load_dataset(name: str, **options: object) -> Dataset:
    """A data set by name."""
    return _DATASETS.find(name)(**options)
