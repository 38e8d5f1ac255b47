from __future__ import annotations

from pathlib import Path

import pytest

from glasshouse import audit_evidence
from glasshouse.track import log_to_mlflow
from tests.strategies import PAPER, gaussian_evidence


@pytest.mark.filterwarnings("ignore")  # of MLflow's own, about the kind of store
def test_parameters_figures_and_the_report_are_logged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mlflow = pytest.importorskip("mlflow", reason="the extra `track` is not installed")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.chdir(tmp_path)
    evidence, members = gaussian_evidence(records=400, models=8, shift=2.0, seed=0)
    result = audit_evidence(evidence, members=members, attacks=PAPER)
    number = log_to_mlflow(result, tracking_uri=f"file:{tmp_path / 'mlruns'}")
    run = mlflow.get_run(number)
    assert run.data.params["shadows"] == "8"
    assert run.data.metrics["base/auc"] == pytest.approx(result.table()["auc"][0])
    assert run.data.tags["verdict"].startswith("A leak is shown (p ≤ 0.0005, 3 attacks)")
    assert list(tmp_path.rglob("report.html"))
