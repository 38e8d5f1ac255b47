"""Glasshouse tells the owner of a trained model how visible its training records are from outside."""

from glasshouse.attacks import Attack, register
from glasshouse.auditing.call import audit, audit_evidence
from glasshouse.auditing.result import AuditResult
from glasshouse.auditing.targets import SeveralTargets, audit_targets
from glasshouse.compute import LocalProcesses, RayCluster, ThisProcess
from glasshouse.core.arrays import BoolArray, FloatArray
from glasshouse.core.errors import InputError
from glasshouse.data import Population, complementary_halves, random_subsets
from glasshouse.data.named import digits
from glasshouse.evaluation import PrivacyClaim
from glasshouse.evidence import Evidence, LossTrace, QueryOptions, read_evidence, write_evidence
from glasshouse.query.labels_only import LabelOnly
from glasshouse.training import PrivateTrainer, SklearnTrainer, TorchTrainer, mlp

__all__ = [
    "Attack",
    "AuditResult",
    "BoolArray",
    "Evidence",
    "FloatArray",
    "InputError",
    "LabelOnly",
    "LocalProcesses",
    "LossTrace",
    "Population",
    "PrivacyClaim",
    "PrivateTrainer",
    "QueryOptions",
    "RayCluster",
    "SeveralTargets",
    "SklearnTrainer",
    "ThisProcess",
    "TorchTrainer",
    "audit",
    "audit_evidence",
    "audit_targets",
    "complementary_halves",
    "digits",
    "mlp",
    "random_subsets",
    "read_evidence",
    "register",
    "write_evidence",
]
