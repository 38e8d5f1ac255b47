"""Caches of compiled code are in a private folder of the user, and no file of the working folder has a say."""

from __future__ import annotations

import importlib.util
import os
import stat
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

import numba
import pytest

from glasshouse.io import caches
from glasshouse.io.caches import keep_code_private, private_folder

VARIABLES = ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user without settings, whose caches are in a folder of the test."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in VARIABLES:
        monkeypatch.setenv(name, "")  # so that it is as before afterwards
    return tmp_path / "cache"


def test_settings_of_numba_come_from_the_environment_and_not_from_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".numba_config.yaml").write_text("cache_dir: theirs\nopt: 0\ndisable_jit: 1\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NUMBA_OPT", "2")
    found = {}
    for finder in (PathFinder, caches._WithoutFile):
        spec = finder.find_spec("numba.core.config", numba.core.__path__)
        assert spec is not None
        assert spec.loader is not None
        settings: Any = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(settings)
        settings.reload_config()
        found[finder] = (settings.CACHE_DIR, int(settings.OPT), settings.DISABLE_JIT)
    assert list(found.values()) == [("theirs", 2, 1), ("", 2, 0)]


def test_compilers_keep_code_in_a_private_folder(home: Path) -> None:
    keep_code_private()
    for name in VARIABLES:
        place = Path(os.environ[name])
        assert place.parent == home / "glasshouse"
        assert stat.S_IMODE(place.stat().st_mode) == 0o700


def test_a_folder_that_the_user_named_for_a_compiler_stays_but_not_one_of_the_working_folder(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLES[0], str(tmp_path / "mine"))
    monkeypatch.setenv(VARIABLES[1], "cache")
    keep_code_private()
    assert os.environ[VARIABLES[0]] == str(tmp_path / "mine")
    assert os.environ[VARIABLES[1]] == str(home / "glasshouse" / "triton")


def test_where_the_private_folder_is_a_link_code_is_kept_for_one_process_alone(home: Path, tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    home.mkdir()
    (home / "glasshouse").symlink_to(tmp_path / "theirs")
    assert private_folder("inductor") is None
    keep_code_private()
    for name in VARIABLES:
        place = Path(os.environ[name])
        assert not place.is_relative_to(home)
        assert stat.S_IMODE(place.stat().st_mode) == 0o700
        assert place.stat().st_uid == os.getuid()
    assert not any((tmp_path / "theirs").iterdir())


@pytest.mark.parametrize("depth", [0, 1])
def test_a_folder_of_somebody_else_is_not_private(depth: int, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that others can read is made private, as far as it is ours."""
    names = ("glasshouse", "inductor")[: depth + 1]
    theirs = home.joinpath(*names)
    theirs.mkdir(parents=True, mode=0o777)
    theirs.chmod(0o777)
    found = Path.lstat

    def lstat(path: Path) -> os.stat_result:
        known = found(path)
        return os.stat_result((*known[:4], 4242, *known[5:])) if path == theirs else known

    with monkeypatch.context() as patch:
        patch.setattr(Path, "lstat", lstat)
        assert private_folder("inductor") is None
    caches._is_private.cache_clear()
    assert private_folder("inductor") == home / "glasshouse" / "inductor"
    assert stat.S_IMODE(theirs.stat().st_mode) == 0o700
