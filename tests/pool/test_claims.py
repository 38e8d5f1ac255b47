from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from glasshouse.pool.claims import Claims


def test_a_claim_holds_against_other_processes_and_dies_with_its_own(tmp_path: Path) -> None:
    path = tmp_path / ".claims"
    script = (
        "import sys, time; from pathlib import Path; from glasshouse.pool.claims import Claims\n"
        f"claim = Claims(Path({str(path)!r})).claimed(3, wait=False)\n"
        "print(claim.__enter__(), flush=True); time.sleep(60)"
    )
    other = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)  # noqa: S603
    assert other.stdout is not None
    assert other.stdout.readline().strip() == "True"
    claims = Claims(path)
    with claims.claimed(3, wait=False) as taken, claims.claimed(4, wait=False) as free:
        assert (taken, free) == (False, True)
    other.kill()
    other.wait()
    other.stdout.close()
    with claims.claimed(3, wait=False) as taken:
        assert taken
    claims.close()
