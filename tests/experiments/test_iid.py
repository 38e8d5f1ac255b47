from __future__ import annotations

import pytest

from glasshouse.evaluation import auc
from glasshouse_experiments.cells import compared
from glasshouse_experiments.iid import ATTACKS, iid
from glasshouse_experiments.iid_bench import first_models
from tests.experiments.iid_scenes import bench_of_losses


def test_every_cell_of_the_papers_table_is_filled(monkeypatch: pytest.MonkeyPatch) -> None:
    table = compared(iid(bench_of_losses(monkeypatch)))
    printed = [row for row in table.rows() if row["verdict"] != "not printed"]
    assert len(printed) == 36  # one data set's: four pool sizes, three attacks, three metrics
    assert {row["attack"] for row in table.rows() if row["verdict"] == "not printed"} == {"LiRA (variance a record)"}
    assert {(row["mode"], row["K"]) for row in printed} == {
        ("online", "32"),
        ("offline", "16"),
        ("online", "8"),
        ("offline", "4"),
    }


def test_fewer_models_leave_the_large_pools_out_and_change_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = bench_of_losses(monkeypatch, shadows=8)
    cells = {cell[:7]: cell.values for cell in iid(bench)}
    assert {key[3] for key in cells} == {"8", "4"}
    for number, (evidence, truth) in enumerate(bench.targets()):
        for name, attack_of in ATTACKS.items():
            for mode, count in (("online", "8"), ("offline", "4")):
                expected = 100 * auc(attack_of(mode).score(first_models(evidence, 8)), truth)  # type: ignore[arg-type]
                found = cells[("iid", "CIFAR-10", mode, count, "", name, "auc_pct")][number]
                # the number that is tuned comes from the first target's pool; these pools differ a little
                assert found == pytest.approx(expected, abs=0.0 if mode == "online" or number == 0 else 1.0)


def test_online_rmia_ranks_as_base(monkeypatch: pytest.MonkeyPatch) -> None:
    """Theorem 2, on the figures that the paper prints twice."""
    cells = {cell[2:7]: cell.values for cell in iid(bench_of_losses(monkeypatch))}
    for key, values in cells.items():
        if key[0] == "online" and key[3] == "BASE":
            assert cells[(*key[:3], "RMIA", key[4])] == pytest.approx(values)
