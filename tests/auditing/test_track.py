from __future__ import annotations

from pathlib import Path

import pytest

from glasshouse import audit_evidence
from glasshouse.auditing.track import log_to_mlflow, mlflow_metrics
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
    assert run.data.tags["verdict"].startswith("A leak is shown (p ≤ 0.0005, 3 attacks; by the AUC of lira)")
    assert list(tmp_path.rglob("report.html"))


@pytest.mark.filterwarnings("ignore")
def test_membership_is_a_metric_of_mlflows_own_evaluation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mlflow = pytest.importorskip("mlflow", reason="the extra `track` is not installed")
    pytest.importorskip("pandas", reason="the extra `tables` is not installed")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri(f"file:{tmp_path / 'mlruns'}")
    mlflow.set_experiment("mine")
    evidence, members = gaussian_evidence(records=400, models=8, shift=2.0, seed=0)
    result = audit_evidence(evidence, members=members, attacks=["base"])
    table = result.records().to_pandas()
    with mlflow.start_run():
        done = mlflow.models.evaluate(
            data=table, predictions="base_score", targets="member", extra_metrics=mlflow_metrics(fprs=[0.01])
        )
    wanted = result.summary().attack("base").metrics
    assert wanted is not None
    assert done.metrics["membership/auc"] == pytest.approx(wanted.auc)
    assert done.metrics["membership/tpr_at_0.01"] == pytest.approx(wanted.rates[0].tpr)
    assert done.metrics["membership/tpr_at_0.01_high"] == pytest.approx(wanted.rates[0].tpr_interval.high)
