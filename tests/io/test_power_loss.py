"""What is on the disk when power fails: names and contents that were synced, and any part of the rest."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from glasshouse.io.files import new_folder, write_file
from glasshouse.report.redaction import read_or_make_key

Names = dict[str, int]  # what each path of the disk names: the number of a file


@dataclass
class Disk:
    """A file system that writes what is synced, and of everything else whatever it likes, in any order.

    Renames and removals within one folder wait until that folder is synced; contents until the file is.
    """

    root: Path
    synced: dict[int, bytes] = field(default_factory=dict)  # contents that are safe, by number of the file
    safe: Names = field(default_factory=dict)
    waiting: list[tuple[str, Callable[[Names], Names]]] = field(default_factory=list)  # folder, and what happens
    crashes: list[dict[str, bytes | None]] = field(default_factory=list)  # every disk that a power loss may leave

    def renamed(self, before: Any, after: Any) -> None:
        old, new, number = str(before), str(after), Path(before).stat().st_ino
        inside = {str(path): path.stat().st_ino for path in Path(before).rglob("*")} if Path(before).is_dir() else {}

        def happen(names: Names) -> Names:
            inner = f"{old}/"
            moved = {path: one for path, one in names.items() if path not in (old, new) and not path.startswith(inner)}
            known = {new + path[len(old) :]: one for path, one in names.items() if path.startswith(inner) and inside}
            return moved | known | {new: number}

        self.waiting.append((str(Path(after).parent), happen))
        self.power_may_fail()

    def linked(self, before: Any, after: Any) -> None:
        new, number = str(after), Path(before).stat().st_ino
        self.waiting.append((str(Path(after).parent), lambda names: names | {new: number}))
        self.power_may_fail()

    def removed(self, path: Any) -> None:
        name = str(path)
        self.waiting.append((str(Path(name).parent), lambda names: {k: v for k, v in names.items() if k != name}))
        self.power_may_fail()

    def fsync(self, handle: int) -> None:
        path = str(Path(f"/proc/self/fd/{handle}").readlink())
        if Path(path).is_dir():
            for folder, happen in self.waiting:
                if folder == path:
                    self.safe = happen(self.safe)
            self.waiting = [(folder, happen) for folder, happen in self.waiting if folder != path]
            for one in os.scandir(path):
                self.safe.setdefault(one.path, one.inode())
        else:
            self.synced[os.fstat(handle).st_ino] = Path(path).read_bytes()
        self.power_may_fail()

    def power_may_fail(self) -> None:
        """Any of the renames that wait may have reached the disk, alone or with others."""
        for kept in itertools.product([False, True], repeat=len(self.waiting)):
            names = dict(self.safe)
            for take, (_, happen) in zip(kept, self.waiting, strict=True):
                names = happen(names) if take else names
            self.crashes.append({path: self.synced.get(number) for path, number in names.items()})


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Disk:
    made = Disk(tmp_path)
    real: dict[str, Any] = {name: getattr(os, name) for name in ("link", "rename", "replace", "unlink", "fsync")}

    def rename(before: Any, after: Any, **options: Any) -> None:
        if Path(before).is_relative_to(tmp_path):
            made.renamed(before, after)
        real["replace"](before, after, **options)

    def link(before: Any, after: Any, **options: Any) -> None:
        made.linked(before, after)
        real["link"](before, after, **options)

    def fsync(handle: int) -> None:
        real["fsync"](handle)
        made.fsync(handle)

    def unlink(path: Any, **options: Any) -> None:
        real["unlink"](path, **options)
        if not options.get("dir_fd") and Path(path).is_relative_to(tmp_path):
            made.removed(path)

    calls = {"link": link, "rename": rename, "replace": rename, "fsync": fsync, "unlink": unlink}
    for name, call in calls.items():
        monkeypatch.setattr(os, name, call)
    monkeypatch.setattr("glasshouse.io.files.exchange", lambda one, other: False)  # in two steps: the harder way
    return made


def test_a_file_that_was_written_is_on_the_disk_and_never_a_part_of_it(disk: Disk) -> None:
    place = disk.root / "manifest.json"
    for content in (b"first", b"second"):
        write_file(place, content)
        assert disk.crashes[-1][str(place)] == content  # once the call has returned, no power loss takes it back
    assert {crash.get(str(place), b"first") for crash in disk.crashes} == {b"first", b"second"}


def test_a_manifest_is_never_on_the_disk_before_its_model(disk: Disk) -> None:
    model, manifest = disk.root / "model.safetensors", disk.root / "model.json"
    write_file(model, b"weights")
    write_file(manifest, b"checksum")
    assert all(crash.get(str(model)) == b"weights" for crash in disk.crashes if str(manifest) in crash)
    assert any(str(manifest) in crash for crash in disk.crashes)


def test_a_run_is_on_the_disk_with_all_its_files(disk: Disk) -> None:
    with new_folder(disk.root / "run") as folder:
        write_file(folder / "metrics.json", b"figures")
        write_file(folder / "run.json", b"files")
    run = str(disk.root / "run")
    assert disk.crashes[-1][f"{run}/run.json"] == b"files"
    for crash in disk.crashes:
        if run in crash:
            assert (crash.get(f"{run}/metrics.json"), crash.get(f"{run}/run.json")) == (b"figures", b"files")


def test_the_key_of_a_redacted_run_is_on_the_disk_before_the_run(disk: Disk) -> None:
    """Without its key, nobody can ever look up a record of the run."""
    place = disk.root / "run.key"
    made = read_or_make_key(place)
    write_file(disk.root / "run.json", b"hashes")
    assert made == read_or_make_key(place)
    whole = place.read_bytes()
    assert all(crash.get(str(place)) == whole for crash in disk.crashes if str(disk.root / "run.json") in crash)
    assert {crash[str(place)] for crash in disk.crashes if str(place) in crash} == {whole}


def test_the_model_of_a_disk_notices_a_lost_sync(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("glasshouse.io.files.sync_folder", lambda path: None)
    model, manifest = disk.root / "model.safetensors", disk.root / "model.json"
    write_file(model, b"weights")
    write_file(manifest, b"checksum")
    assert any(str(manifest) in crash and str(model) not in crash for crash in disk.crashes)
