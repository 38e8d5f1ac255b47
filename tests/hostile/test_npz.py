"""Archives from strangers: each is one clear line, whatever zip, zlib and numpy make of it."""

from __future__ import annotations

import os
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from glasshouse import InputError, read_evidence
from tests.hostile.files import EVIDENCE, GRAPH, IDS, LOSS, RECORDS, header, members, npy, npz, unpacked


def packed(path: Path) -> Path:
    np.savez_compressed(path, **EVIDENCE)
    return path


def broken_stream(path: Path) -> None:
    """The packed bytes of a member are not what zlib wrote."""
    content = bytearray(packed(path).read_bytes())
    start = 30 + len("target_loss.npy") + 20
    content[start : start + 60] = b"\xff" * 60
    path.write_bytes(content)


def wrong_checksum(path: Path) -> None:
    """One bit of a stored loss is another one; the zip knows its checksum."""
    content = bytearray(npz(path, EVIDENCE).read_bytes())
    content[content.index(LOSS[0].tobytes()) + 8] ^= 1
    path.write_bytes(content)


def patched_name(path: Path) -> None:
    """The member calls itself otherwise than the directory does."""
    content = npz(path, EVIDENCE).read_bytes()
    path.write_bytes(content.replace(b"target_loss.npy", b"target_lass.npy", 1))


def encrypted(path: Path) -> None:
    content = bytearray(npz(path, EVIDENCE).read_bytes())
    content[content.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(content)


def rarely_packed(path: Path) -> None:
    members(path, unpacked(npz(path, EVIDENCE)), compression=zipfile.ZIP_LZMA)


def twice(path: Path) -> None:
    files = unpacked(npz(path, EVIDENCE))
    members(path, files)
    with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("target_loss.npy", npy(LOSS[1]))


def twice_by_ending(path: Path) -> None:
    members(path, unpacked(npz(path, EVIDENCE)) | {"target_loss": npy(LOSS[1])})


def with_member(name: str, content: bytes) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        members(path, unpacked(npz(path, EVIDENCE)) | {name: content})

    return write


def with_array(**changed: Any) -> Callable[[Path], None]:
    return lambda path: void(npz(path, EVIDENCE, **changed))


def void(_: object) -> None:
    """A writer gives nothing back."""


TRUTHS = np.where(EVIDENCE["members"], 2, 0).astype(np.uint8).tobytes()
NOT_LETTERS = np.full(40, 0x110000, dtype="<u4").tobytes()
HALF_LETTERS = np.full(40, 0xD800, dtype="<u4").tobytes()
RECORD_TYPE = np.dtype([("loss", "f8")])

FAULTS: dict[str, tuple[Callable[[Path], None], str]] = {
    "broken stream": (broken_stream, "target_loss"),
    "wrong checksum": (wrong_checksum, "target_loss"),
    "patched name": (patched_name, "target_l"),
    "encrypted": (encrypted, "is encrypted"),
    "rarely packed": (rarely_packed, "packed in an unusual way"),
    "twice": (twice, "is in it twice"),
    "twice by ending": (twice_by_ending, "has an array twice"),
    "raw bytes": (with_member("members", b"hello"), "has an array twice"),
    "raw member alone": (with_member("labels", b"hello"), "labels: is not an array"),
    "a cut header": (with_member("labels.npy", npy(LOSS[0])[:20]), "labels"),
    "structured": (with_array(target_loss=LOSS[0].astype(RECORD_TYPE)), "target_loss: holds records of several"),
    "void": (with_array(target_loss=LOSS[0].view("V8")), "target_loss: holds records of several"),
    "one number": (with_array(target_loss=np.float64(1.0)), "target_loss: is one number and not an array"),
    "one text": (with_array(ids=np.array("a")), "ids: is one number and not an array"),
    "dates": (with_array(target_loss=LOSS[0].astype("M8[s]")), "target_loss: holds dates"),
    "times": (with_array(shadow_loss=LOSS[1:].astype("m8[s]")), "shadow_loss: holds times"),
    "complex": (with_array(target_loss=LOSS[0] + 1j), "target_loss: holds complex numbers"),
    "text losses": (with_array(target_loss=LOSS[0].astype(str)), "target_loss: is of type <U.*; save numbers"),
    "truth losses": (with_array(target_loss=LOSS[0] > 1), "target_loss: is of type bool; save numbers"),
    "byte ids": (with_array(ids=IDS.astype("S3")), "ids: holds raw bytes; save text"),
    "objects": (with_array(ids=IDS.astype(object)), "ids: holds pickled objects"),
    "truths of 2": (with_member("members.npy", header((40,), "|b1", TRUTHS)), "members: is damaged: a truth value"),
    "no letters": (with_member("ids.npy", header((40,), "<U1", NOT_LETTERS)), "ids: is damaged: it holds text"),
    "half letters": (with_member("ids.npy", header((40,), "<U1", HALF_LETTERS)), "ids: is damaged: it holds text"),
    "no width": (with_member("ids.npy", header((10**12,), "<U0")), "ids: is of type <U0"),
    "long and empty": (with_member("labels.npy", header((10**12, 0), "<f8")), "its arrays take 7.2 TiB"),
    "a shape that lies": (with_member("labels.npy", header((10**12,), "<f8")), "labels: is damaged: its size does not"),
    "less than nothing": (with_member("labels.npy", header((-1,), "<f8")), "labels: is damaged: its size does not"),
    "ids twice": (with_array(target_ids=IDS, shadow_ids=IDS[::-1]), "ids: cannot be used together with target_ids"),
    "two kinds": (with_array(target_logits=LOSS[0]), "target_logits: cannot be used together with target_loss"),
    "an unknown array": (with_array(losses=LOSS), "'losses' is not a known array"),
    "an unknown array with a long name": (with_array(**{"x" * 50_000: LOSS}), "50000 characters"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_hostile_archive_is_one_line_that_names_the_file(name: str, tmp_path: Path) -> None:
    write, message = FAULTS[name]
    path = tmp_path / "e.npz"
    write(path)
    with pytest.raises(InputError, match=message) as caught:
        read_evidence(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 2100


def test_places_that_are_not_files_are_one_line(tmp_path: Path) -> None:
    (tmp_path / "e.npz").mkdir()
    with pytest.raises(InputError, match="e.npz: is a folder; give a file"):
        read_evidence(tmp_path / "e.npz")
    os.mkfifo(tmp_path / "pipe.npz")
    with pytest.raises(InputError, match="pipe.npz: is not a plain file"):  # reading it would wait for ever
        read_evidence(tmp_path / "pipe.npz")
    with pytest.raises(InputError, match="cannot be read: File name too long"):
        read_evidence(tmp_path / ("x" * 5000 + ".npz"))
    with pytest.raises(InputError, match="there is no such file"):
        read_evidence(tmp_path / "a\0b.npz")


NONSENSE: dict[str, tuple[dict[str, Any], str]] = {
    "text": ({"x": RECORDS["x"].astype(str)}, "x: is of type <U.*; save numbers"),
    "void": ({"x": RECORDS["x"].view("V8")}, "x: holds records of several fields"),
    "NaN": ({"x": np.where(np.eye(40)[:, :4] > 0, np.nan, 1.0)}, "x: record 0 has a feature that is NaN"),
    "infinite": (
        {"x": np.where(np.eye(40)[:, 4:8] > 0, np.inf, 1.0)},
        "x: record 4 has a feature that is NaN, infinite",
    ),
    "too large": ({"x": np.full((40, 2), 1e300)}, "x: record 0 has a feature that is NaN, infinite or above 1e\\+38"),
    "no features": ({"x": np.zeros((40, 0))}, r"x: has shape \(40, 0\)"),
    "one number": ({"x": np.float64(1.0)}, "x: is one number and not an array"),
    "dates as labels": ({"y": (np.arange(40) % 2).astype("M8[D]")}, "y: holds dates"),
    "one text as members": ({"members": np.array("yes")}, "members: is one number"),
    "a wide group": ({"town": np.zeros((40, 2))}, r"town: has shape \(40, 2\); a group"),
}


@pytest.mark.parametrize("name", NONSENSE)
def test_an_archive_of_records_with_nonsense_is_refused(name: str, tmp_path: Path) -> None:
    from glasshouse.config.data import FileData

    changed, message = NONSENSE[name]
    npz(tmp_path / "d.npz", RECORDS, **{"town": np.arange(40) % 2, **changed})
    with pytest.raises(InputError, match=message):
        FileData(name="file", path="d.npz", groups=("town",)).load(tmp_path, 0)


def graph_changed(**changed: Any) -> Callable[[Path], None]:
    return lambda path: void(npz(path, GRAPH, **changed))


def encrypted_graph(path: Path) -> None:
    content = bytearray(npz(path, GRAPH).read_bytes())
    content[content.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(content)


def broken_graph(path: Path) -> None:
    content = bytearray(npz(path, GRAPH).read_bytes())
    content[content.index(GRAPH["x"].tobytes()) + 1] ^= 255
    path.write_bytes(content)


def raw_member(path: Path) -> None:
    members(path, unpacked(npz(path, GRAPH, y=None)) | {"y": zlib.compress(b"hello")})


GRAPHS: dict[str, Callable[[Path], None]] = {
    "encrypted": encrypted_graph,
    "broken stream": broken_graph,
    "raw member": raw_member,
    "features of text": graph_changed(x=GRAPH["x"].astype(str)),
    "void features": graph_changed(x=GRAPH["x"].view("V8")),
    "infinite features": graph_changed(x=np.full((40, 5), np.inf)),
    "dates as classes": graph_changed(y=GRAPH["y"].astype("M8[D]")),
    "one number as classes": graph_changed(y=np.int64(1)),
    "edges to nowhere": graph_changed(edge_index=GRAPH["edge_index"] + 2**40),
    "complex edges": graph_changed(edge_index=GRAPH["edge_index"] + 0j),
    "ids twice": graph_changed(ids=np.repeat(IDS[:1], 40)),
    "a shape that lies": lambda path: void(
        members(path, unpacked(npz(path, GRAPH)) | {"x.npy": header((10**10, 5), "<f8")})
    ),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_a_hostile_graph_is_one_line(name: str, tmp_path: Path) -> None:
    pytest.importorskip("torch_geometric")
    from glasshouse.graph import load_graph

    path = tmp_path / "g.npz"
    GRAPHS[name](path)
    with pytest.raises(InputError, match=r"g\.npz"):
        load_graph(path)


def test_a_zip_bomb_is_refused_by_what_it_says_of_itself(tmp_path: Path) -> None:
    from glasshouse.io.limits import memory_limit

    np.savez_compressed(tmp_path / "e.npz", **EVIDENCE | {"labels": np.zeros(4_000_000)})
    assert (tmp_path / "e.npz").stat().st_size < 100_000
    told = "30.5 MiB, and the limit is 10.0 MiB.*--memory 128MiB"
    with memory_limit("10MiB"), pytest.raises(InputError, match=told):
        read_evidence(tmp_path / "e.npz")
