"""Attacks: small objects with ``score(view) -> [N]``; higher means member."""

from glasshouse.attacks.attack import Attack, Judgement, QueryCount, View
from glasshouse.attacks.base import BASE
from glasshouse.attacks.baselines import (
    AttackR,
    Calibration,
    ClassLoss,
    Hinge,
    LossThreshold,
    ModifiedEntropy,
    TraceFall,
)
from glasshouse.attacks.bavaria import BaVarIA
from glasshouse.attacks.classifier import ShadowClassifier
from glasshouse.attacks.lira import LiRA
from glasshouse.attacks.quantile import PublicQuantile, QuantileRegression
from glasshouse.attacks.registry import attack_names, create, register
from glasshouse.attacks.regressed import Regressed
from glasshouse.attacks.rmia import RMIA, InfoRMIA
from glasshouse.attacks.shrunk import ShrunkLiRA
from glasshouse.attacks.stacked import Stacked
from glasshouse.attacks.tempered import TemperedBASE

__all__ = [
    "BASE",
    "RMIA",
    "Attack",
    "AttackR",
    "BaVarIA",
    "Calibration",
    "ClassLoss",
    "Hinge",
    "InfoRMIA",
    "Judgement",
    "LiRA",
    "LossThreshold",
    "ModifiedEntropy",
    "PublicQuantile",
    "QuantileRegression",
    "QueryCount",
    "Regressed",
    "ShadowClassifier",
    "ShrunkLiRA",
    "Stacked",
    "TemperedBASE",
    "TraceFall",
    "View",
    "attack_names",
    "create",
    "register",
]
