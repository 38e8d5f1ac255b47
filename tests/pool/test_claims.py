from __future__ import annotations

import os
import signal
import time
import warnings
from pathlib import Path

import pytest

from glasshouse import InputError
from glasshouse.pool.folder import Claims


def test_a_claim_holds_against_other_processes_and_dies_with_its_own(tmp_path: Path) -> None:
    ready, told = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about threads and forks
        other = os.fork()  # a new interpreter would import torch for seconds
    if not other:
        with Claims(tmp_path).claimed([3], wait=False) as taken:
            os.write(told, b"yes" if taken == {3} else b"no")
            time.sleep(60)
        os._exit(0)
    try:
        assert os.read(ready, 3) == b"yes"
        claims = Claims(tmp_path)
        with claims.claimed([3, 4], wait=False) as taken:
            assert taken == {4}
    finally:
        os.kill(other, signal.SIGKILL)
        os.waitpid(other, 0)
        os.close(ready)
        os.close(told)
    with claims.claimed([3], wait=False) as taken:
        assert taken == {3}


def test_groups_beyond_the_number_of_files_are_claimed_too(tmp_path: Path) -> None:
    with Claims(tmp_path).claimed(range(0, 8000, 8), wait=True) as taken:
        assert taken == set(range(0, 8000, 8))
        with Claims(tmp_path).claimed([8, 3], wait=False) as others:
            assert others == set()
    files = list(tmp_path.glob(".claims*"))
    assert len(files) < 100  # each is open while it is held
    assert not any(file.stat().st_size for file in files)


@pytest.mark.parametrize("name", [".claims", ".claims-3"])
def test_a_link_in_the_place_of_a_lock_is_refused_in_one_line_and_not_followed(name: str, tmp_path: Path) -> None:
    (tmp_path / "pool").mkdir()
    (tmp_path / "pool" / name).symlink_to(tmp_path / "elsewhere")
    refusal = "pool: a pool cannot be kept there: Too many levels of symbolic links. Choose another folder."
    with pytest.raises(InputError, match=refusal), Claims(tmp_path / "pool").claimed([3], wait=True):
        pass
    assert not (tmp_path / "elsewhere").exists()
