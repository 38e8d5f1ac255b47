"""Log an audit to MLflow: parameters, figures and the report (extra ``track``)."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from glasshouse.errors import needs_extra
from glasshouse.report.plain import metrics_json
from glasshouse.result import AuditResult

__all__ = ["log_to_mlflow", "logged_metrics"]


def log_to_mlflow(result: AuditResult, *, experiment: str = "glasshouse", tracking_uri: str | None = None) -> str:
    """Log a result as one MLflow run, and return the run's id.

    Args:
        result: of an audit.
        experiment: name of the MLflow experiment.
        tracking_uri: where MLflow stores the run; MLflow's own setting by default.

    `logged_metrics` shows which figures are logged, and by which names.
    """
    with needs_extra("Tracking", package="mlflow-skinny", extra="track"):
        import mlflow
    if tracking_uri is not None:
        mlflow.set_tracking_uri(tracking_uri)
    mlflow.set_experiment(experiment)
    summary = result.summary()
    with mlflow.start_run(run_name=result.context.title) as run, tempfile.TemporaryDirectory() as scratch:
        mlflow.log_params(_parameters(result))
        mlflow.log_metrics(logged_metrics(metrics_json(summary)))
        mlflow.set_tag("verdict", summary.verdict)
        folder = result.save(Path(scratch) / "run")
        mlflow.log_artifacts(str(folder))
        return str(run.info.run_id)


def _parameters(result: AuditResult) -> dict[str, str]:
    context = result.context
    found = {"shadows": context.shadows, "mode": context.mode, "seed": context.seed, "data": context.fingerprint}
    return {name: str(value)[:500] for name, value in (found | dict(context.settings)).items()}


def logged_metrics(figures: dict[str, Any]) -> dict[str, float]:
    """The figures of ``metrics.json`` that are logged, by names that MLflow takes: no ``@`` and no spaces.

    Example:
        >>> rate = {"wanted": 0.01, "fpr": 0.01, "tpr": 0.3, "reached": True}
        >>> attacks = {"base": {"auc": 0.8, "rates": [rate]}, "unmeasured": {}}
        >>> logged_metrics({"target": {"test_accuracy": None}, "attacks": attacks, "privacy": None})
        {'base/auc': 0.8, 'base/tpr_at_0.01': 0.3}
    """
    found = {name: value for name, value in figures["target"].items() if value is not None}
    for name, attack in figures["attacks"].items():
        if "auc" in attack:
            found[f"{name}/auc"] = attack["auc"]
            for rate in attack["rates"]:
                found[f"{name}/tpr_at_{rate['wanted'] if rate['reached'] else rate['fpr']:g}"] = rate["tpr"]
    if figures["privacy"] is not None and not figures["privacy"]["withheld"]:
        found["epsilon_lower_bound"] = figures["privacy"]["epsilon_lower_bound"]
    return found
