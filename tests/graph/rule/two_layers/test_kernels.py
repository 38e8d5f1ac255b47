"""Compiled code is kept in a private folder of the user, and never outlives the sources that it was made of."""

from __future__ import annotations

import importlib
import os
import stat
import sys
from pathlib import Path
from typing import Any

import numba
import pytest

import glasshouse
from glasshouse.graph.rule.two_layers import kernels

INNER = """
from glasshouse.graph.rule.two_layers.kernels import inner_kernel

@inner_kernel
def step(x):
    return x + {added}
"""
ENTRY = """
from glasshouse.graph.rule.two_layers.kernels import kernel
from made_up_inner import step

@kernel
def walk(x):
    return step(x) * 2.0
"""


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for two files with kernels; code is kept under ``cache`` beside it."""
    folder = tmp_path / "sources"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return folder


def imported(folder: Path, *, added: str) -> Any:
    """The entry kernel of files that were just written, as a new process would import it."""
    (folder / "made_up_inner.py").write_text(INNER.format(added=added))
    (folder / "made_up_entry.py").write_text(ENTRY)
    for name in ("made_up_inner", "made_up_entry"):
        sys.modules.pop(name, None)
    importlib.invalidate_caches()
    return importlib.import_module("made_up_entry").walk


def test_an_edit_of_an_inlined_file_is_compiled_although_nothing_was_deleted(sources: Path) -> None:
    """The file of the entry kernel, which alone was stamped once, stays as it is."""
    assert imported(sources, added="1.0")(3.0) == 8.0
    assert imported(sources, added="100.0")(3.0) == 206.0
    again = imported(sources, added="1.0")
    assert again(3.0) == 8.0
    assert sum(again.stats.cache_hits.values()) == 1, "the first code was kept"


def test_code_is_kept_where_neither_numbas_settings_nor_the_working_folder_say(
    sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    (tmp_path / ".numba_config.yaml").write_text(f"cache_dir: {elsewhere}\n")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(elsewhere))
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(elsewhere))
    walk = imported(sources, added="1.0")
    walk(3.0)
    kept = Path(walk.stats.cache_path)
    assert kept.parent == tmp_path / "cache" / "glasshouse" / "kernels"
    assert any(kept.glob("made_up_entry.walk-*.nbi"))
    assert not elsewhere.exists()
    assert not list(sources.rglob("*.nb?"))
    for place in (kept, kept.parent, kept.parent.parent):
        assert stat.S_IMODE(place.stat().st_mode) == 0o700


@pytest.mark.parametrize("how", ["link", "file", "home"])
def test_without_a_private_folder_nothing_is_kept_and_kernels_still_run(
    how: str, sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if how == "link":  # somebody else may have made it
        (tmp_path / "cache").mkdir()
        (tmp_path / "theirs").mkdir()
        (tmp_path / "cache" / "glasshouse").symlink_to(tmp_path / "theirs")
    elif how == "file":
        (tmp_path / "cache").write_text("")
    else:  # relative: it would mean the working folder
        monkeypatch.setenv("XDG_CACHE_HOME", "cache")
        monkeypatch.setattr(Path, "home", lambda: (tmp_path / ".numba_config.yaml") / "none")
        (tmp_path / ".numba_config.yaml").write_text("")
    walk = imported(sources, added="1.0")
    assert kernels.kernel_folder() is None
    assert walk(3.0) == 8.0
    assert walk.stats.cache_path is None
    assert not list(tmp_path.rglob("*.nb?"))


def test_a_folder_of_somebody_else_is_not_used(sources: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 12345678)
    assert kernels.kernel_folder() is None


def test_folders_of_old_sources_go_when_they_were_not_used_for_long(sources: Path, tmp_path: Path) -> None:
    root = tmp_path / "cache" / "glasshouse" / "kernels"
    names = {"a" * 64: 0, "b" * 64: None, "notes": 0}  # when they were used last; None for now
    for name, used in names.items():
        (root / name).mkdir(parents=True)
        (root / name / "code.nbc").write_text("")
        if used is not None:
            os.utime(root / name, (used, used))
    folder = kernels.kernel_folder()
    assert folder is not None
    assert sorted(place.name for place in root.iterdir()) == sorted(["b" * 64, "notes", folder.name])


def test_code_of_other_settings_of_numba_is_kept_apart(sources: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Code that one process compiled with settings of its own must not be what the next one runs."""
    plain = kernels.kernel_folder()
    reloader: Any = kernels._config._env_reloader
    monkeypatch.setattr(reloader, "old_environ", {"NUMBA_CACHE_DIR": "elsewhere"})
    assert kernels.kernel_folder() == plain
    monkeypatch.setattr(reloader, "old_environ", {"NUMBA_OPT": "0"})
    assert kernels.kernel_folder() not in (plain, None)


def test_every_file_that_defines_kernels_is_in_the_digest() -> None:
    defining = {
        file.parent
        for file in Path(glasshouse.__file__).parent.rglob("*.py")
        if "two_layers.kernels import" in file.read_text()
    }
    assert defining - {Path(glasshouse.__file__).parent / "cli"} == set(kernels._SOURCES)
