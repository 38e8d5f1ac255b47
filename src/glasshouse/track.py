"""Log an audit to MLflow: parameters, figures and the report (extra ``track``)."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from glasshouse.errors import MissingExtraError
from glasshouse.report.plain import metrics_json
from glasshouse.result import AuditResult

__all__ = ["log_to_mlflow"]


def log_to_mlflow(result: AuditResult, *, experiment: str = "glasshouse", tracking_uri: str | None = None) -> str:
    """Log a result as one MLflow run, and return the run's id.

    Args:
        result: of an audit.
        experiment: name of the MLflow experiment.
        tracking_uri: where MLflow stores the run; MLflow's own setting by default.

    Example:
        >>> callable(log_to_mlflow)
        True
    """
    mlflow = _mlflow()
    if tracking_uri is not None:
        mlflow.set_tracking_uri(tracking_uri)
    mlflow.set_experiment(experiment)
    summary = result.summary()
    with mlflow.start_run(run_name=result.context.title) as run, tempfile.TemporaryDirectory() as scratch:
        mlflow.log_params(_parameters(result))
        mlflow.log_metrics(_metrics(metrics_json(summary)))
        mlflow.set_tag("verdict", summary.verdict)
        folder = result.save(Path(scratch) / "run")
        mlflow.log_artifacts(str(folder))
        return str(run.info.run_id)


def _parameters(result: AuditResult) -> dict[str, str]:
    context = result.context
    found = {"shadows": context.shadows, "mode": context.mode, "seed": context.seed, "data": context.fingerprint}
    return {name: str(value)[:500] for name, value in (found | dict(context.settings)).items()}


def _metrics(figures: dict[str, Any]) -> dict[str, float]:
    """Figures by names that MLflow accepts: no ``@`` and no spaces."""
    found = {name: value for name, value in figures["target"].items() if value is not None}
    for name, attack in figures["attacks"].items():
        if "auc" in attack:
            found[f"{name}/auc"] = attack["auc"]
            for rate in attack["rates"]:
                found[f"{name}/tpr_at_{rate['wanted'] if rate['reached'] else rate['fpr']:g}"] = rate["tpr"]
    if figures["privacy"] is not None:
        found["epsilon_lower_bound"] = figures["privacy"]["epsilon_lower_bound"]
    return found


def _mlflow() -> Any:
    try:
        import mlflow
    except ImportError:
        raise MissingExtraError("Tracking", package="mlflow-skinny", extra="track") from None
    return mlflow
