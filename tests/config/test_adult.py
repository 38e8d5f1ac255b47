"""Random forest, XGBoost and LightGBM on the census incomes, from an audit file of at most eight lines."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from glasshouse.config import read_audit_file, run_audit_file
from glasshouse.config.columns import TableSection
from glasshouse.config.encoding import read_records
from glasshouse.data.named import Dataset, load_dataset
from tests.config.made_up_adult import COLUMNS, adult_rows
from tests.manual import blocks

SMALL = {
    "forest": "n_estimators: 20",
    "xgboost": "n_estimators: 10",
    "lightgbm": "n_estimators: 10, min_child_samples: 2",
}
TRAINERS = {
    "forest": "trainer: {kind: sklearn, estimator: RandomForestClassifier}",
    "xgboost": "trainer: {kind: xgboost}",
    "lightgbm": "trainer: {kind: lightgbm}",
}
FILE = next(block.text for block in blocks() if block.page == "tables.md" and "adult.data" in block.text)


def eight_lines(trainer: str) -> str:
    text = FILE.replace(TRAINERS["xgboost"], TRAINERS[trainer])
    assert TRAINERS[trainer] in text
    assert len(text.splitlines()) <= 8
    return text


@pytest.mark.parametrize("trainer", TRAINERS)
def test_eight_lines_are_an_audit(tmp_path: Path, trainer: str) -> None:
    if trainer != "forest":
        pytest.importorskip(trainer, reason="the extra `boosting` is not installed")
    (tmp_path / "adult.data").write_text(adult_rows())
    smaller = TRAINERS[trainer].replace("}", f", parameters: {{{SMALL[trainer]}}}}}")
    (tmp_path / "audit.yaml").write_text(
        eight_lines(trainer).replace(TRAINERS[trainer], smaller) + "shadows: 4\nattacks: base\n"
    )
    result = run_audit_file(read_audit_file(tmp_path / "audit.yaml"), folder=tmp_path)
    summary = result.summary()
    assert result.table()["auc"][0] > 0.6
    assert {one.column for one in summary.groups} == {"class", "sex", "race"}
    assert all(one.auc_interval is not None for one in summary.groups if one.column == "sex")
    assert any("14 columns of the table are" in note for note in summary.notes)


def adult(real_data: Path, **keys: Any) -> Dataset:
    keys = {"columns": COLUMNS, "label": "income"} | keys
    return read_records(TableSection.model_validate({"name": "file"} | keys), real_data / "adult")


def test_the_real_file_gives_the_same_features_as_the_data_set_by_name(
    real_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They were written apart from each other; only the standardised numbers are asked for here."""
    monkeypatch.setenv("GLASSHOUSE_DATA", str(real_data))
    began = time.process_time()
    found = adult(real_data, path="adult.data", standardise=True)
    assert time.process_time() - began < 30  # about a second; a table read cell by cell takes minutes
    named = load_dataset("adult").population.x[:32561]
    binary = np.isin(named, (0, 1)).all(axis=0)
    assert found.population.x.shape == (32561, 108)
    np.testing.assert_array_equal(found.population.x[:, binary], named[:, binary])
    for column in np.flatnonzero(~binary).tolist():  # the other file has a part in the mean of the named one
        assert np.corrcoef(found.population.x[:, column], named[:, column])[0, 1] == pytest.approx(1.0)
    assert found.warnings == ()
