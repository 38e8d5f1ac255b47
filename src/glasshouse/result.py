"""What an audit found: tables, files and the report, all from one object."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from glasshouse.evaluation import AttackOutcome, PrivacyVerdict
from glasshouse.evidence import Evidence, write_evidence
from glasshouse.population import BoolArray
from glasshouse.report import Context, Summary, render_html, summarise
from glasshouse.report.plots import roc_svg
from glasshouse.store import new_folder, write_file
from glasshouse.table import Table

__all__ = ["AuditResult"]


@dataclass(frozen=True, eq=False, kw_only=True)
class AuditResult:
    """The outcome of an audit.

    Args:
        evidence: what the attacks saw.
        outcomes: what came of each attack, by name.
        members: [N] who trained the target; None where not known.
        labels: [N] the records' labels as their owner writes them; None where not known.
        fprs: the false-positive rates asked for.
        privacy: what the attacks say about ε; None where the members are not known.
        context: what was audited, and how.
    """

    evidence: Evidence
    outcomes: Mapping[str, AttackOutcome]
    members: BoolArray | None
    labels: np.ndarray | None
    fprs: tuple[float, ...]
    privacy: PrivacyVerdict | None
    context: Context

    def table(self) -> Table:
        """One row an attack: AUC and TPR at each FPR with their intervals, thresholds and whom they call members."""
        rows = self._rows()
        names = max(rows, key=len)  # an attack without thresholds has fewer columns than the others
        return Table({name: np.array([row.get(name, np.nan) for row in rows]) for name in names})

    def records(self) -> Table:
        """One row a record: id, label, membership where known, and each attack's score, decision and rank.

        The decision is that of the first wanted false-positive rate, by a threshold from simulated targets.
        """
        columns: dict[str, np.ndarray] = {"id": self.evidence.ids}
        if self.labels is not None:
            columns["label"] = self.labels
        if self.members is not None:
            columns["member"] = self.members
        for name, outcome in self.outcomes.items():
            columns[f"{name}_score"] = outcome.scores
            if outcome.thresholds:
                columns[f"{name}_decision"] = outcome.thresholds[0].decide(outcome.scores)
            columns[f"{name}_rank"] = outcome.ranks
        return Table(columns)

    def roc(self) -> Table:
        """Every point of every ROC curve: attack, threshold, FPR, TPR."""
        known = {name: outcome.metrics for name, outcome in self.outcomes.items() if outcome.metrics is not None}
        curves = [(name, metrics.curve) for name, metrics in known.items()]
        return Table(
            {
                "attack": [name for name, curve in curves for _ in curve.fpr],
                "threshold": [value for _, curve in curves for value in curve.thresholds.tolist()],
                "fpr": [value for _, curve in curves for value in curve.fpr.tolist()],
                "tpr": [value for _, curve in curves for value in curve.tpr.tolist()],
            }
        )

    def summary(self) -> Summary:
        """The numbers that the report and the terminal show."""
        return summarise(
            self.outcomes, context=self.context, records=self.records(), fprs=self.fprs, privacy=self.privacy
        )

    def save(self, folder: Path | str, *, overwrite: bool = False) -> Path:
        """Write metrics.json, records.csv, roc.csv, evidence.npz, run.json, roc.svg, report.html: all or nothing."""
        with new_folder(folder, overwrite=overwrite) as place:
            summary = self.summary()
            write_file(place / "metrics.json", _json(summary.as_json()))
            write_file(place / "records.csv", self.records().to_csv())
            write_file(place / "roc.csv", self.roc().to_csv())
            write_evidence(place / "evidence.npz", self.evidence, members=self.members)
            write_file(place / "run.json", _json(self._run()))
            write_file(place / "report.html", render_html(summary))
            curves = {row.name: row.metrics.curve for row in summary.attacks if row.metrics is not None}
            if curves:
                write_file(place / "roc.svg", roc_svg(curves))
        return Path(folder)

    def report(self, path: Path | str) -> Path:
        """Write the HTML report, one file that needs no network."""
        return write_file(path, render_html(self.summary()))

    def _rows(self) -> list[dict[str, object]]:
        rows = []
        for name, outcome in self.outcomes.items():
            row: dict[str, object] = {"attack": name}
            if (metrics := outcome.metrics) is not None:
                row |= {"auc": metrics.auc, "auc_low": metrics.auc_interval.low, "auc_high": metrics.auc_interval.high}
                row["balanced_accuracy"] = metrics.balanced_accuracy
                for rate in metrics.rates:
                    key = f"tpr@{rate.wanted:g}"
                    row |= {key: rate.tpr, f"{key}_low": rate.interval.low, f"{key}_high": rate.interval.high}
            for threshold in outcome.thresholds:
                row[f"threshold@{threshold.wanted:g}"] = threshold.value
                row[f"called@{threshold.wanted:g}"] = int(threshold.decide(outcome.scores).sum())
            row["seconds"] = outcome.seconds
            rows.append(row)
        return rows

    def _run(self) -> dict[str, object]:
        """How the run was made; apart from the figures, since seconds differ from run to run."""
        return {
            "format": 1,
            "title": self.context.title,
            "settings": {name: str(value) for name, value in self.context.settings.items()},
            "versions": dict(self.context.versions),
            "seconds": {name: round(outcome.seconds, 4) for name, outcome in self.outcomes.items()},
        }


def _json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
