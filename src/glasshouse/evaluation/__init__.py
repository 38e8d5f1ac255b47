"""Evaluation: ROC, intervals, thresholds and bounds on ε. Only this package sees the target's members."""

from glasshouse.evaluation.best import Best, Pick
from glasshouse.evaluation.drawn import Blind, Drawn, Joined, Known, how_drawn
from glasshouse.evaluation.intervals import Interval, clopper_pearson, delong
from glasshouse.evaluation.metrics import AcrossTargets, Metrics, Rate, across_targets, evaluate
from glasshouse.evaluation.outcome import AttackOutcome
from glasshouse.evaluation.privacy import (
    PrivacyClaim,
    PrivacyVerdict,
    epsilon_lower_bound,
    judge_claim,
    posterior_bound,
)
from glasshouse.evaluation.roc import ROC, auc, roc, tpr_at_fpr
from glasshouse.evaluation.run import run_attack
from glasshouse.evaluation.thresholds import Threshold, estimate_thresholds
from glasshouse.evaluation.unlike import unlike_target

__all__ = [
    "ROC",
    "AcrossTargets",
    "AttackOutcome",
    "Best",
    "Blind",
    "Drawn",
    "Interval",
    "Joined",
    "Known",
    "Metrics",
    "Pick",
    "PrivacyClaim",
    "PrivacyVerdict",
    "Rate",
    "Threshold",
    "across_targets",
    "auc",
    "clopper_pearson",
    "delong",
    "epsilon_lower_bound",
    "estimate_thresholds",
    "evaluate",
    "how_drawn",
    "judge_claim",
    "posterior_bound",
    "roc",
    "run_attack",
    "tpr_at_fpr",
    "unlike_target",
]
