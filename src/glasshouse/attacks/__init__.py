"""Attacks: small objects with ``score(view) -> [N]``; higher means member."""

from glasshouse.attacks.attack import Attack, Judgement, View
from glasshouse.attacks.base import BASE
from glasshouse.attacks.bavaria import BaVarIA
from glasshouse.attacks.calibration import Calibration
from glasshouse.attacks.class_loss import ClassLoss
from glasshouse.attacks.classifier import ShadowClassifier
from glasshouse.attacks.informia import InfoRMIA
from glasshouse.attacks.lira import LiRA
from glasshouse.attacks.loss import LossThreshold
from glasshouse.attacks.outputs import Hinge, ModifiedEntropy
from glasshouse.attacks.public_quantile import PublicQuantile
from glasshouse.attacks.quantile import QuantileRegression
from glasshouse.attacks.query_count import QueryCount
from glasshouse.attacks.rank import AttackR
from glasshouse.attacks.registry import attack_names, create, register
from glasshouse.attacks.regressed import Regressed
from glasshouse.attacks.rmia import RMIA
from glasshouse.attacks.shrunk import ShrunkLiRA
from glasshouse.attacks.stacked import Stacked
from glasshouse.attacks.trace import TraceFall

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
    "TraceFall",
    "View",
    "attack_names",
    "create",
    "register",
]
