from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from glasshouse import InputError
from glasshouse.data.named import Dataset, cifar10, cifar100
from glasshouse.io.limits import memory_limit
from tests.data.made_up_images import images, write_binary, write_sheet

FINE = (np.arange(50_000) * 7 % 10).astype(np.uint8)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GLASSHOUSE_DATA", str(tmp_path))
    return tmp_path


@pytest.fixture(scope="module")
def sheet(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("sheet") / "train_2.webp"
    write_sheet(path, start=10_000)
    return path.read_bytes()


def pixels(data: Dataset) -> np.ndarray:
    """Bytes again, from normalised numbers: the other way round, and for CIFAR-10's numbers alone."""
    mean, deviation = np.array([[0.4914, 0.4822, 0.4465], [0.2470, 0.2435, 0.2616]])[:, :, None, None]
    return np.asarray(255 * (data.population.x * deviation + mean))


def numbers(data: Dataset) -> np.ndarray:
    return np.array([int(name.split("-")[1]) for name in data.population.ids])


def test_cifar10_is_read_from_its_official_bytes(home: Path) -> None:
    for part in (0, 1):
        path = home / "cifar10" / "cifar-10-batches-bin" / f"data_batch_{part + 1}.bin"
        write_binary(path, FINE[10_000 * part :][:10_000, None], start=10_000 * part, count=10_000)
    data = cifar10(first=20_000, records=300)
    which = numbers(data)
    assert len(which) == 300
    assert which.min() < 10_000 <= which.max()
    assert data.population.x.dtype == np.float32
    np.testing.assert_allclose(pixels(data), images(which), atol=1e-3)
    assert (data.population.y == FINE[which]).all()
    assert data.population.classes.tolist() == list(range(10))
    with pytest.raises(InputError, match=r"data_batch_3.bin: there is no such file. Place it beside data_batch_1.bin"):
        cifar10(records=300)


def test_cifar100_is_read_with_its_fine_classes(home: Path) -> None:
    labels = np.stack([np.full(200, 3), np.arange(200) % 100], axis=1).astype(np.uint8)
    write_binary(home / "cifar100" / "train.bin", labels, start=0, count=50_000)
    population = cifar100(first=200).population
    assert population.y.tolist() == (np.arange(200) % 100).tolist()
    mean, deviation = np.array([[0.5071, 0.4865, 0.4409], [0.2673, 0.2564, 0.2762]])[:, :, None, None]
    np.testing.assert_allclose(255 * (population.x * deviation + mean), images(np.arange(200)), atol=1e-3)
    assert len(population.classes) == 100


def test_cifar10_is_read_from_sheets_of_which_some_are_missing(home: Path, sheet: bytes) -> None:
    folder = home / "cifar10"
    folder.mkdir()
    (folder / "train_2.webp").write_bytes(sheet)
    np.savez(folder / "labels.npz", train=FINE)
    with pytest.raises(InputError, match=r"train_1.webp: there is no such file"):
        cifar10(first=20_000)
    (folder / "train_1.webp").write_bytes(sheet)  # the second one again
    data = cifar10(first=20_000, records=500, seed=1)
    which = numbers(data)
    np.testing.assert_allclose(pixels(data), images(10_000 + which % 10_000), atol=1e-3)
    assert (data.population.y == FINE[which]).all()


def test_damaged_files_say_which_and_what_to_do(home: Path, sheet: bytes) -> None:
    folder = home / "cifar10"
    folder.mkdir()
    with pytest.raises(InputError, match="neither data_batch_1.bin nor train_1.webp. Place the files of CIFAR-10's"):
        cifar10()
    (folder / "train_1.webp").write_bytes(b"no image")
    with pytest.raises(InputError, match="train_1.webp: is not an image"):
        cifar10(first=10)
    Image.new("RGB", (64, 32)).save(folder / "train_1.webp", lossless=True)
    with pytest.raises(InputError, match=r"train_1.webp: has 64 x 32 pixels instead of 3200 x 3200"):
        cifar10(first=10)
    (folder / "train_1.webp").write_bytes(sheet)
    with pytest.raises(InputError, match=r"labels.npz: there is no such file"):
        cifar10(first=10)
    np.savez(folder / "labels.npz", test=FINE)
    with pytest.raises(InputError, match=r"labels.npz: train: is missing"):
        cifar10(first=10)
    np.savez_compressed(folder / "labels.npz", train=np.zeros(2**21, dtype=np.uint8), other=FINE)
    with memory_limit("1MiB"), pytest.raises(InputError, match=r"labels.npz: its members unpack to 2.0 MiB"):
        cifar10(first=10)
    np.savez(folder / "labels.npz", train=FINE[:-1])
    with pytest.raises(InputError, match=r"labels.npz: train: uint8 of shape \(49999,\) instead of uint8"):
        cifar10(first=10)
    wrong = FINE.copy()
    wrong[4] = 10
    np.savez(folder / "labels.npz", train=wrong)
    with pytest.raises(InputError, match=r"labels.npz: train: label 10 of image 4 is not one of CIFAR-10's classes"):
        cifar10(first=10)
    (folder / "data_batch_1.bin").write_bytes(b"short")
    with pytest.raises(InputError, match=r"data_batch_1.bin: has 5 bytes instead of 30730000"):
        cifar10(first=10)


def test_a_missing_pillow_says_what_to_install(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "cifar10").mkdir()
    (home / "cifar10" / "train_1.webp").write_bytes(b"")
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(
        InputError, match=r"needs Pillow, which is not installed. Run: pip install 'glasshouse\[images\]'"
    ):
        cifar10(first=10)


@pytest.mark.parametrize("options", [{"first": 1}, {"first": 50_001}, {"records": 1}, {"first": 10, "records": 11}])
def test_numbers_that_cannot_be_are_refused(home: Path, options: dict[str, int]) -> None:
    with pytest.raises(InputError, match=next(reversed(options))):
        cifar10(**options)


def test_the_real_cifar10_has_the_known_means(real_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLASSHOUSE_DATA", str(real_data))
    if not (real_data / "cifar10").is_dir():
        pytest.skip("CIFAR-10 is not among the real data sets")
    population = cifar10(first=10_000).population
    assert np.bincount(population.y).tolist() == [1005, 974, 1032, 1016, 999, 937, 1030, 1001, 1025, 981]
    assert population.x.mean(axis=(0, 2, 3)) == pytest.approx(np.zeros(3), abs=0.02)
    assert population.x.std(axis=(0, 2, 3)) == pytest.approx(np.ones(3), abs=0.02)
