from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from glasshouse import InputError
from glasshouse.experiments.iid_run import IID_EXPERIMENTS, run_iid, trial
from glasshouse.experiments.iid_settings import IMAGE_SETTINGS, ImagePreset

TASTE = IMAGE_SETTINGS.find("digits").changed(epochs=2)


def test_all_tables_come_from_one_pool_and_say_how_they_were_made(tmp_path: Path) -> None:
    out, pools = tmp_path / "out", tmp_path / "pools"
    first = trial(TASTE, pools=pools)
    tables = run_iid(TASTE, ImagePreset(targets=2, shadows=8), out=out, pools=pools, progress=False)
    assert list(tables) == IID_EXPERIMENTS.names()
    rows = list(csv.DictReader((out / "iid-digits.csv").read_text().splitlines()))
    assert {row["verdict"] for row in rows} == {"not printed"}
    written = json.loads((out / "iid-digits.json").read_text())
    assert (written["epochs"], written["shadows"], written["targets"], written["records"]) == (2, 8, 2, 1797)
    assert "A taste, not the paper's" in (out / "iid-digits.md").read_text()
    assert 0 <= first["train_accuracy"] <= 1
    assert len(list(pools.iterdir())) == 2


def test_names_are_checked() -> None:
    with pytest.raises(InputError, match='"cifar-10" is not a setting of images. Did you mean "cifar10"'):
        run_iid("cifar-10")
    with pytest.raises(InputError, match='"slow" is not a preset'):
        run_iid("digits", "slow")
