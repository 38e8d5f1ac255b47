from __future__ import annotations

import pytest

from glasshouse_experiments.cells import compared
from glasshouse_experiments.iid import rmia_beta_iid
from tests.experiments.iid_scenes import bench_of_losses


def test_rates_are_the_shares_above_beta(monkeypatch: pytest.MonkeyPatch) -> None:
    """RMIA's scores are ranks in the population, so the records above β are a hundredth (a thousandth) of it."""
    table = compared(rmia_beta_iid(bench_of_losses(monkeypatch)))
    assert len(table["verdict"]) == 16
    assert "not printed" not in set(table["verdict"])
    found = {(row["mode"], row["K"], row["metric"]): row["mean"] for row in table.rows()}
    for mode, count in {key[:2] for key in found}:
        tpr, fpr = (found[(mode, count, f"{rate}_at_beta0.99_pct")] for rate in ("tpr", "fpr"))
        assert (tpr + fpr) / 2 == pytest.approx(21 / 20)  # ranks 1980 to 2000 of 2000, members and others half each
        assert tpr > fpr
