"""Evaluation: ROC, intervals, thresholds and bounds on ε. Only this package sees the target's members."""

from glasshouse.evaluation.best import Best
from glasshouse.evaluation.checks.calibration import target_mismatch
from glasshouse.evaluation.checks.random_members import Known, RandomMembers, check_random_members
from glasshouse.evaluation.intervals import Interval, clopper_pearson, delong, tpr_intervals
from glasshouse.evaluation.leakage import VerdictAttack, leak_test, verdict_attack
from glasshouse.evaluation.metrics import AcrossTargets, Metrics, Rate, across_targets, evaluate
from glasshouse.evaluation.privacy.bounds import (
    Guesses,
    epsilon_lower_bound,
    gaussian_epsilon,
    mu_if_independent,
    mu_lower_bound,
    posterior_bound,
)
from glasshouse.evaluation.privacy.claim import GaussianBound, PrivacyClaim, PrivacyVerdict, judge_claim
from glasshouse.evaluation.roc import ROC, auc, roc, tpr_at_fpr
from glasshouse.evaluation.run import AttackOutcome, run_attack
from glasshouse.evaluation.thresholds import Threshold, estimate_thresholds

__all__ = [
    "ROC",
    "AcrossTargets",
    "AttackOutcome",
    "Best",
    "GaussianBound",
    "Guesses",
    "Interval",
    "Known",
    "Metrics",
    "PrivacyClaim",
    "PrivacyVerdict",
    "RandomMembers",
    "Rate",
    "Threshold",
    "VerdictAttack",
    "across_targets",
    "auc",
    "check_random_members",
    "clopper_pearson",
    "delong",
    "epsilon_lower_bound",
    "estimate_thresholds",
    "evaluate",
    "gaussian_epsilon",
    "judge_claim",
    "leak_test",
    "mu_if_independent",
    "mu_lower_bound",
    "posterior_bound",
    "roc",
    "run_attack",
    "target_mismatch",
    "tpr_at_fpr",
    "tpr_intervals",
    "verdict_attack",
]
