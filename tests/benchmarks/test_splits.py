"""A small version of ``benchmarks/statistics/splits.py``."""

from __future__ import annotations

import pytest

from tests.benchmarks.scripts import benchmark


def test_no_epsilon_is_shown_for_a_target_that_never_saw_the_split(capsys: pytest.CaptureFixture[str]) -> None:
    benchmark("splits").main(["--runs", "2", "--targets", "2", "--epochs", "5"])
    rows = {
        name: [int(cell) for cell in cells]
        for name, *cells in (
            [cell.strip() for cell in line.strip("|").split("|")]
            for line in capsys.readouterr().out.splitlines()
            if line.startswith(("| random nodes", "| snowball", "| by component"))
        )
    }
    assert rows["random nodes"][:2] == [0, 0]
    assert rows["snowball"][:2] == rows["by component"][:2] == [2, 0]
