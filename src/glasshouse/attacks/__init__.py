"""Attacks: small objects with ``score(view) -> [N]``; higher means member."""

from glasshouse.attacks.attack import Attack, Judgement, QueryCount, attack_names, create, register
from glasshouse.attacks.base import BASE, TemperedBASE
from glasshouse.attacks.baselines import (
    AttackR,
    Calibration,
    ClassLoss,
    Hinge,
    LossThreshold,
    ModifiedEntropy,
    TraceFall,
)
from glasshouse.attacks.classifier import ShadowClassifier
from glasshouse.attacks.language import EZMIA, MinK, MinKPlusPlus, WindowComparison, Zlib
from glasshouse.attacks.lira import BaVarIA, LiRA
from glasshouse.attacks.parts import PartsBASE, PartsLiRA
from glasshouse.attacks.quantile import PublicQuantile, QuantileRegression
from glasshouse.attacks.regressed import Regressed, ShrunkLiRA
from glasshouse.attacks.rmia import RMIA, InfoRMIA
from glasshouse.attacks.stacked import Stacked

__all__ = [
    "BASE",
    "EZMIA",
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
    "MinK",
    "MinKPlusPlus",
    "ModifiedEntropy",
    "PartsBASE",
    "PartsLiRA",
    "PublicQuantile",
    "QuantileRegression",
    "QueryCount",
    "Regressed",
    "ShadowClassifier",
    "ShrunkLiRA",
    "Stacked",
    "TemperedBASE",
    "TraceFall",
    "WindowComparison",
    "Zlib",
    "attack_names",
    "create",
    "register",
]
