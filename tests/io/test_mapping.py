"""Large arrays stay in their file, and a stranger's file is judged before anything of it is mapped."""

from __future__ import annotations

import json
import mmap
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from glasshouse.core.errors import InputError
from glasshouse.graph import citation_graph, load_graph
from glasshouse.io.arrays import read_npz, read_safetensors
from glasshouse.io.limits import memory_limit

X = np.random.default_rng(0).normal(size=(3000, 100)).astype(np.float32)


def in_file(values: np.ndarray) -> bool:
    """Whether an array is a view of a mapped file."""
    base: Any = values
    while isinstance(base, np.ndarray):
        base = base.base
    return isinstance(base, mmap.mmap)


def test_a_large_array_that_is_not_compressed_stays_in_the_file(tmp_path: Path) -> None:
    np.savez(tmp_path / "plain.npz", first=np.arange(7), x=X)
    found = read_npz(tmp_path / "plain.npz", mapped=("first", "x"))
    assert in_file(found["x"])
    assert not in_file(found["first"]), "a small one is read"
    assert (found["x"] == X).all()
    found["x"][0] = 0.0
    assert (read_npz(tmp_path / "plain.npz")["x"] == X).all(), "the file stays as it is"


def test_what_cannot_be_mapped_is_read_as_before(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "packed.npz", x=X)
    np.savez(tmp_path / "odd.npz", columns=np.asfortranarray(X), swapped=X.astype(">f4"))
    packed, odd = (read_npz(tmp_path / name, mapped=("x", "columns", "swapped")) for name in ("packed.npz", "odd.npz"))
    for values in (packed["x"], odd["columns"], odd["swapped"]):
        assert not in_file(values)
        assert (values == X).all()


def test_a_mapped_array_with_a_wrong_checksum_is_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=X)
    content = bytearray((tmp_path / "a.npz").read_bytes())
    content[600_000] ^= 1
    (tmp_path / "a.npz").write_bytes(content)
    with pytest.raises(InputError, match="x: is damaged"):
        read_npz(tmp_path / "a.npz", mapped=("x",))


def test_the_limit_on_memory_holds_for_mapped_arrays_too(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=X)
    save_file({"x": X}, tmp_path / "a.safetensors")
    with memory_limit("1MiB"):
        with pytest.raises(InputError, match="the limit is"):
            read_npz(tmp_path / "a.npz", mapped=("x",))
        with pytest.raises(InputError, match="the limit is"):
            read_safetensors(tmp_path / "a.safetensors")


def test_a_local_header_elsewhere_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("x.npy", b"no array")
    with pytest.raises(InputError, match=r"a\.npz"):
        read_npz(tmp_path / "a.npz", mapped=("x",))


def test_a_graph_is_the_same_from_either_kind_of_file_and_its_features_are_not_copied(tmp_path: Path) -> None:
    data = citation_graph(nodes=800, classes=3, words=500)
    parts = {name: getattr(data, name).contiguous().numpy() for name in ("x", "edge_index", "y")}
    np.savez(tmp_path / "graph.npz", **parts)
    save_file(parts, tmp_path / "graph.safetensors")
    for name in ("graph.npz", "graph.safetensors"):
        found = load_graph(tmp_path / name)
        assert all((getattr(found, part).numpy() == values).all() for part, values in parts.items())
        assert in_file(found.x.numpy()) or _shares_file(found.x, tmp_path / name)


def _shares_file(x: Any, path: Path) -> bool:
    """Torch hides where an array came from; the system lists which files a process has mapped, and where."""
    address = x.data_ptr()
    for line in Path("/proc/self/maps").read_text().splitlines():
        start, stop = (int(end, 16) for end in line.split()[0].split("-"))
        if start <= address < stop:
            return line.endswith(str(path))
    return False


def written(path: Path, header: object, content: bytes) -> Path:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + content)
    return path


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ({"x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]}}, "does not fit its shape"),
        ({"x": {"dtype": "F32", "shape": [2], "data_offsets": [8, 16]}}, "belongs to none"),
        ({"x": {"dtype": "F32", "shape": [2**61], "data_offsets": [0, 2**63]}}, "belongs to none"),
        ({"x": {"dtype": "F32", "shape": [-2], "data_offsets": [0, 8]}}, "not a whole number"),
        ({"x": {"dtype": "BF16", "shape": [4], "data_offsets": [0, 8]}}, "save one of"),
        ({"x": {"dtype": "BOOL", "shape": [8], "data_offsets": [0, 8]}}, "neither 0 nor 1"),
        ({"x": {"dtype": "F32", "shape": [], "data_offsets": [0, 4]}}, "one entry per"),
        ({"x": {"shape": [2]}}, "damaged"),
        ({"x": 3}, "damaged"),
        ([1], "damaged"),
        (b'{"x": 1, "x": 2}', "is there twice"),
        (b"[" * 5000, "nested too deeply|damaged"),
        (b"", "its header has 0 bytes"),
    ],
)
def test_a_header_that_does_not_fit_its_content_is_refused(tmp_path: Path, header: object, said: str) -> None:
    path = written(tmp_path / "a.safetensors", header, b"\x07" * 8)
    with pytest.raises(InputError, match=said):
        read_safetensors(path)


def test_a_file_that_is_cut_off_is_refused(tmp_path: Path) -> None:
    save_file({"x": X}, tmp_path / "a.safetensors")
    content = (tmp_path / "a.safetensors").read_bytes()
    for length in (0, 5, 8, 40, len(content) - 1):
        (tmp_path / "b.safetensors").write_bytes(content[:length])
        with pytest.raises(InputError):
            read_safetensors(tmp_path / "b.safetensors")
