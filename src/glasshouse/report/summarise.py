"""The numbers of a report, as plain data: what a page, a terminal table and a JSON file all show."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from glasshouse.evaluation import AttackOutcome, Metrics, PrivacyVerdict
from glasshouse.evaluation.metrics import DEFAULT_FPRS
from glasshouse.table import Table

__all__ = ["AttackRow", "Context", "Summary", "percent", "summarise"]


@dataclass(frozen=True, kw_only=True)
class Context:
    """What was audited, and how.

    Args:
        title: of the audit.
        about: of the data, in a sentence; says so where something in it is made up.
        shadows: how many shadow models.
        mode: online or offline.
        seed: that drove every random choice.
        train_accuracy: of the target on its members; None where not known.
        test_accuracy: of the target on the others.
        fingerprint: of the data.
        settings: whatever else is needed to repeat the run.
        versions: of the libraries.
    """

    title: str = "Membership audit"
    about: str = ""
    shadows: int
    mode: str
    seed: int | None = None
    train_accuracy: float | None = None
    test_accuracy: float | None = None
    fingerprint: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class AttackRow:
    """An attack's line in the table."""

    name: str
    description: str
    outcome: AttackOutcome

    @property
    def metrics(self) -> Metrics | None:
        """Its figures, where the members are known."""
        return self.outcome.metrics


@dataclass(frozen=True)
class Summary:
    """Everything that a report shows."""

    context: Context
    verdict: str
    attacks: tuple[AttackRow, ...]
    strongest: str
    fprs: tuple[float, ...]
    members: int | None
    records: int
    privacy: PrivacyVerdict | None
    notes: tuple[str, ...]
    top_records: Table

    def as_json(self) -> dict[str, Any]:
        """Every figure as JSON's own types; the same run gives the same text."""
        return {
            "format": 1,
            "verdict": self.verdict,
            "strongest": self.strongest,
            "notes": list(self.notes),
            "records": self.records,
            "members": self.members,
            "target": {
                "train_accuracy": self.context.train_accuracy,
                "test_accuracy": self.context.test_accuracy,
            },
            "shadows": self.context.shadows,
            "mode": self.context.mode,
            "seed": self.context.seed,
            "fingerprint": self.context.fingerprint,
            "attacks": {row.name: _attack_json(row.outcome) for row in self.attacks},
            "privacy": _privacy_json(self.privacy),
        }


def summarise(
    outcomes: Mapping[str, AttackOutcome],
    *,
    context: Context,
    records: Table,
    fprs: Sequence[float],
    privacy: PrivacyVerdict | None = None,
) -> Summary:
    """Gather the numbers of a report.

    Args:
        outcomes: of each attack, by name.
        context: what was audited, and how.
        records: one row a record, with a ``…_rank`` column for each attack.
        fprs: the false-positive rates that were asked for.
        privacy: what the attacks say about ε.

    Example:
        >>> from glasshouse.attacks import LossThreshold
        >>> from glasshouse.evaluation import evaluate
        >>> scores = np.array([3.0, 1.0, 2.0, 0.0])
        >>> outcome = AttackOutcome(LossThreshold(), scores, (), evaluate(scores, [1, 1, 0, 0], fprs=[0.5]), 0.0)
        >>> records = Table({"id": list("abcd"), "loss_rank": [1, 3, 2, 4]})
        >>> context = Context(shadows=2, mode="online")
        >>> summary = summarise({"loss": outcome}, context=context, records=records, fprs=[0.5])
        >>> summary.verdict.split(":")[0]
        'The strongest of 1 attack, loss, finds 100.0 % of 2 members'
    """
    rows = tuple(AttackRow(name, repr(outcome.attack), outcome) for name, outcome in outcomes.items())
    first = next(iter(outcomes.values()))
    members = None if first.metrics is None else first.metrics.curve.members
    strongest = _strongest(rows)
    top = records.sorted_by(f"{strongest.name}_rank").head(20)
    return Summary(
        context=context,
        verdict=_verdict(strongest, rows, context),
        attacks=rows,
        strongest=strongest.name,
        fprs=tuple(fprs),
        members=members,
        records=records.height,
        privacy=privacy,
        notes=_notes(rows, fprs, context),
        top_records=top,
    )


def percent(value: float, digits: int = 1) -> str:
    """A share as people read it.

    Example:
        >>> percent(0.1234)
        '12.3 %'
    """
    return f"{100 * value:.{digits}f} %"


def _strongest(rows: Sequence[AttackRow]) -> AttackRow:
    """By TPR at the smallest rate, then by AUC; the first attack where nothing is known."""

    def strength(row: AttackRow) -> tuple[float, float]:
        if row.metrics is None:
            return (0.0, 0.0)
        lowest = min(row.metrics.rates, key=lambda rate: rate.wanted, default=None)
        return (lowest.tpr if lowest else 0.0, row.metrics.auc)

    return max(rows, key=strength)


def _verdict(strongest: AttackRow, rows: Sequence[AttackRow], context: Context) -> str:
    """Two sentences: what was found, and how sure that is."""
    attacker = f"The attacker had {context.shadows} shadow models ({context.mode})"
    if strongest.metrics is None:
        return f"{attacker}. Who trained the target is not known here, so records are ranked but nothing is measured."
    metrics = strongest.metrics
    count = f"{len(rows)} attack" + ("s" if len(rows) > 1 else "")
    level = f"{metrics.confidence:.0%} interval"
    area = f"AUC {metrics.auc:.3f}, {level} {metrics.auc_interval.low:.3f} to {metrics.auc_interval.high:.3f}"
    if not metrics.rates:
        return f"The strongest of {count}, {strongest.name}, reaches {area}. {attacker}."
    rate = min(metrics.rates, key=lambda rate: rate.wanted)
    return (
        f"The strongest of {count}, {strongest.name}, finds {percent(rate.tpr)} of {metrics.curve.members} members: "
        f"{level} {percent(rate.interval.low)} to {percent(rate.interval.high)}, where chance gives "
        f"{percent(rate.fpr)} and at most {percent(rate.wanted)} of {metrics.curve.non_members} non-members are "
        f"wrongly accused. "
        f"{attacker}; over all thresholds it reaches {area}."
    )


def _notes(rows: Sequence[AttackRow], fprs: Sequence[float], context: Context) -> tuple[str, ...]:
    notes = [context.about] if context.about else []
    metrics = rows[0].metrics
    if metrics is not None:
        lost = [fpr for fpr in DEFAULT_FPRS if not metrics.curve.resolves(fpr)]
        if lost and not fprs:
            notes.append(
                f"With {metrics.curve.non_members} non-members no false-positive rate of 1 % or less is measurable."
            )
        elif lost:
            notes.append(
                f"A false-positive rate of {percent(lost[-1])} is not measurable with {metrics.curve.non_members} "
                f"non-members."
            )
    return (*notes, *(row.outcome.note for row in rows if row.outcome.note))


def _attack_json(outcome: AttackOutcome) -> dict[str, Any]:
    found: dict[str, Any] = {
        "parameters": {
            name: np.asarray(value).tolist() if not isinstance(value, str) else value
            for name, value in dataclasses.asdict(outcome.attack).items()  # type: ignore[call-overload]
        },
        "thresholds": [
            {**dataclasses.asdict(threshold), "called": int(threshold.decide(outcome.scores).sum())}
            for threshold in outcome.thresholds
        ],
    }
    if outcome.details:
        found["details"] = dict(outcome.details)
    metrics = outcome.metrics
    if metrics is not None:
        found |= {
            "auc": metrics.auc,
            "auc_interval": list(metrics.auc_interval),
            "balanced_accuracy": metrics.balanced_accuracy,
            "balanced_accuracy_interval": list(metrics.balanced_accuracy_interval),
            "confidence": metrics.confidence,
            "rates": [
                {"wanted": rate.wanted, "fpr": rate.fpr, "tpr": rate.tpr, "tpr_interval": list(rate.interval)}
                for rate in metrics.rates
            ],
        }
    return found


def _privacy_json(verdict: PrivacyVerdict | None) -> dict[str, Any] | None:
    if verdict is None:
        return None
    return {
        "claim": dataclasses.asdict(verdict.claim) if verdict.claim else None,
        "epsilon_lower_bound": verdict.epsilon,
        "confidence": verdict.confidence,
        "contradicted": verdict.contradicted,
        "sentence": verdict.sentence(),
    }
