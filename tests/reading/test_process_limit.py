"""A command takes at most twice its limit on memory, whatever its files hold."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

# one process that has imported everything forks a child for each file, and reads the child's peak from the system
SCRIPT = r"""
import os, sys
from glasshouse.cli import entry
import glasshouse.attacks.stacked, sklearn.ensemble

for line in sys.stdin:
    path = line.strip()
    child = os.fork()
    if not child:
        sys.argv = ["glasshouse", "score", path, "--memory", "150MiB", "-a", "base", "-a", "rmia"]
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1), os.dup2(quiet, 2)
        try:
            entry.main()
        except SystemExit as error:
            os._exit(error.code or 0)
        except BaseException:
            os._exit(99)
    _, status, used = os.wait4(child, 0)
    print(os.waitstatus_to_exitcode(status), used.ru_maxrss * 1024, flush=True)
"""
LIMIT = 150 * 2**20


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems have no such limit")
def test_small_files_that_hold_much_stay_within_twice_the_limit_or_are_refused(tmp_path: Path) -> None:
    shapes = [(4, 40), (40, 100_000), (2, 1_000_000), (400, 20_000), (1000, 10_000), (30, 300_000), (4, 4_000_000)]
    with subprocess.Popen(  # noqa: S603
        [sys.executable, "-c", SCRIPT],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        baseline = 0
        for models, records in shapes:
            members = np.zeros((models, records), dtype=bool)
            members[::2, ::2] = members[1::2, 1::2] = True
            losses = {"target_loss": np.zeros(records), "shadow_loss": np.zeros((models, records))}
            np.savez_compressed(tmp_path / "e.npz", **losses, shadow_members=members)
            process.stdin.write(f"{tmp_path / 'e.npz'}\n")
            process.stdin.flush()
            code, peak = map(int, process.stdout.readline().split())
            assert code in (0, 2), (models, records)
            baseline = baseline or peak
            assert peak < baseline + 2 * LIMIT, (models, records)
        process.stdin.close()
