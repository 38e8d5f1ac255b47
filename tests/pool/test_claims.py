from __future__ import annotations

import os
import signal
import time
import warnings
from pathlib import Path

from glasshouse.pool.folder import Claims


def test_a_claim_holds_against_other_processes_and_dies_with_its_own(tmp_path: Path) -> None:
    path = tmp_path / ".claims"
    ready, told = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about threads and forks
        other = os.fork()  # a new interpreter would import torch for seconds
    if not other:
        with Claims(path).claimed(3, wait=False) as taken:
            os.write(told, b"yes" if taken else b"no")
            time.sleep(60)
        os._exit(0)
    try:
        assert os.read(ready, 3) == b"yes"
        claims = Claims(path)
        with claims.claimed(3, wait=False) as taken, claims.claimed(4, wait=False) as free:
            assert (taken, free) == (False, True)
    finally:
        os.kill(other, signal.SIGKILL)
        os.waitpid(other, 0)
        os.close(ready)
        os.close(told)
    with claims.claimed(3, wait=False) as taken:
        assert taken
    claims.close()
