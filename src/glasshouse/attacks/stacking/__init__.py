"""What the stacked attacks are made of: simulated targets, their features, and a learner that never sees the target."""

from glasshouse.attacks.stacking.features import record_features
from glasshouse.attacks.stacking.fitting import ALL, CrossFit, cross_fit
from glasshouse.attacks.stacking.learners import Boosted, Learner, Linear
from glasshouse.attacks.stacking.likeness import LARGEST_UNLIKENESS, Likeness, steadied, unlike_warning
from glasshouse.attacks.stacking.parameters import StackedParameters
from glasshouse.attacks.stacking.plan import TargetPlan, plan_targets
from glasshouse.attacks.stacking.simple import Calibrated, hardly_better, log_losses

__all__ = [
    "ALL",
    "LARGEST_UNLIKENESS",
    "Boosted",
    "Calibrated",
    "CrossFit",
    "Learner",
    "Likeness",
    "Linear",
    "StackedParameters",
    "TargetPlan",
    "cross_fit",
    "hardly_better",
    "log_losses",
    "plan_targets",
    "record_features",
    "steadied",
    "unlike_warning",
]
