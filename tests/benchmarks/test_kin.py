"""A small version of ``benchmarks/graphs/kin.py``."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.benchmarks.scripts import benchmark


def test_kin_cost_less_than_the_formula_that_is_written_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "kin.md"
    benchmark("kin").main(["--graphs", "1200", "--out", str(out)])
    (line,) = [line for line in out.read_text(encoding="utf-8").splitlines() if line.startswith("| 1200 |")]
    assert line in capsys.readouterr().out
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    assert float(cells[2]) < float(cells[7])  # seconds to prepare
    assert float(cells[5]) < float(cells[9])  # MiB that are kept


def test_the_formula_that_is_written_out_predicts_the_same() -> None:
    kin = benchmark("kin")
    data = kin.citation_graph(nodes=400, seed=0)
    surprise = np.random.default_rng(0).normal(size=400)
    for query, fit in kin.written_out(data).items():
        fitted = surprise
        for matrix in reversed(fit):
            fitted = matrix @ fitted
        own = np.einsum("ij,ji->i", fit[0], fit[-1]) if len(fit) > 1 else np.diag(fit[0])
        exact = (fitted - own * surprise) / (1 - own)
        found = kin.GraphContext.of(data).kin[query].expected(surprise)
        assert np.corrcoef(found, exact)[0, 1] > 0.95, query
