"""Audits in MLflow (extra ``track``): a whole result logged, and membership as metrics of MLflow's own evaluation."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from glasshouse.auditing.result import AuditResult
from glasshouse.core.errors import needs_extra
from glasshouse.evaluation import evaluate
from glasshouse.report.figures import FIGURES
from glasshouse.report.json_io import metrics_json


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
        context = result.context
        told = {"shadows": context.shadows, "mode": context.mode, "seed": context.seed, "data": context.fingerprint}
        mlflow.log_params({name: str(value)[:500] for name, value in (told | dict(context.settings)).items()})
        mlflow.log_metrics(logged_metrics(metrics_json(summary)))
        mlflow.set_tag("verdict", summary.verdict)
        mlflow.log_artifacts(str(result.save(Path(scratch) / "run")))
        return str(run.info.run_id)


def logged_metrics(figures: dict[str, Any]) -> dict[str, float]:
    """The figures of ``metrics.json`` that are logged, by names that MLflow takes: no ``@`` and no spaces.

    Example:
        >>> rate = {"wanted": 0.01, "fpr": 0.01, "tpr": 0.3, "reached": True}
        >>> attacks = {"base": {"auc": 0.8, "rates": [rate]}, "unmeasured": {}}
        >>> logged_metrics({"target": {"test_accuracy": None}, "attacks": attacks, "privacy": None})
        {'base/auc': 0.8, 'base/tpr_at_0.01': 0.3}
    """
    found = {name: value for name, value in figures["target"].items() if value is not None}
    logged = [name for name, described in FIGURES.items() if "mlflow" in described.shown]
    for name, attack in figures["attacks"].items():
        found |= {f"{name}/{one}": attack[one] for one in logged if one in attack}
        for rate in attack.get("rates", ()):
            found[f"{name}/tpr_at_{rate['wanted'] if rate['reached'] else rate['fpr']:g}"] = rate["tpr"]
    if figures["privacy"] is not None and not figures["privacy"]["withheld"]:
        found["epsilon_lower_bound"] = figures["privacy"]["epsilon_lower_bound"]
    return found


def mlflow_metrics(*, fprs: Sequence[float] | None = None) -> list[Any]:
    """Membership inference as a metric of ``mlflow.models.evaluate``, beside those of the model's own task.

    MLflow evaluates columns of a table: the scores of an attack are the predictions, the true membership is the target.
    ``result.records()`` has both: the columns ``base_score`` and ``member``, for the attack ``base``:

        table = result.records().to_pandas()
        mlflow.models.evaluate(
            data=table, predictions="base_score", targets="member", extra_metrics=mlflow_metrics()
        )

    Args:
        fprs: false-positive rates of the true-positive rates; by default those of 1 % and 0.1 % that the table can
            resolve.
    """
    with needs_extra("Tracking", package="mlflow-skinny", extra="track"):
        import mlflow.metrics

    kit: Any = mlflow.metrics  # its functions have no types

    def membership(predictions: Any, targets: Any, metrics: Any) -> Any:
        return kit.MetricValue(aggregate_results=membership_figures(predictions, targets, fprs=fprs))

    return [kit.make_metric(eval_fn=membership, greater_is_better=False, name="membership")]


def membership_figures(
    scores: ArrayLike, members: ArrayLike, *, fprs: Sequence[float] | None = None
) -> dict[str, float]:
    """The figures of one attack by name, each with the ends of its interval; empty if only one side is there.

    MLflow tries a metric on the first row alone, where there is nothing to tell apart.

    Example:
        >>> found = membership_figures([4.0, 3.0, 2.5, 2.0, 1.0, 0.5], [1, 1, 0, 1, 0, 0], fprs=[0.34])
        >>> list(found)
        ['auc', 'auc_low', 'auc_high', 'tpr_at_0.34', 'tpr_at_0.34_low', 'tpr_at_0.34_high']
        >>> membership_figures([4.0], [1])
        {}
    """
    mask = np.asarray(members, dtype=np.bool_)
    if mask.all() or not mask.any():
        return {}
    found = evaluate(np.asarray(scores, dtype=np.float64), mask, fprs=fprs)
    figures = {"auc": found.auc, "auc_low": found.auc_interval.low, "auc_high": found.auc_interval.high}
    for one in found.rates:
        if one.first is None:  # else ties make the rate unreachable
            name = f"tpr_at_{one.wanted:g}"
            figures |= {name: one.estimate, f"{name}_low": one.interval.low, f"{name}_high": one.interval.high}
    return figures
