"""Glasshouse tells the owner of a trained model how visible its training records are from outside."""

from typing import TYPE_CHECKING

from glasshouse.core.optional import lazy_exports

if TYPE_CHECKING:
    from glasshouse.attacks import Attack, register
    from glasshouse.auditing.advise import advise
    from glasshouse.auditing.call import audit, audit_evidence
    from glasshouse.auditing.defences import Defence, most_exposed, register_defences
    from glasshouse.auditing.options import Attacker, Evaluation
    from glasshouse.auditing.result import AuditResult
    from glasshouse.auditing.targets import SeveralTargets, audit_targets
    from glasshouse.compute import LocalProcesses, RayCluster, ThisProcess
    from glasshouse.core.arrays import BoolArray, FloatArray
    from glasshouse.core.errors import InputError
    from glasshouse.data import Population, complementary_halves, random_subsets
    from glasshouse.data.named import digits
    from glasshouse.data.texts import text_tokens, tokenized
    from glasshouse.evaluation import PrivacyClaim
    from glasshouse.evidence import Evidence, LossTrace, QueryOptions, read_evidence, write_evidence
    from glasshouse.query.classify import CoarseAnswers
    from glasshouse.query.labels_only import LabelOnly
    from glasshouse.query.losses import (
        CoxLoss,
        DiscreteSurvivalLoss,
        GaussianLoss,
        MultiLabelLoss,
        MultiOutputLoss,
        PoissonLoss,
        QuantileLoss,
    )
    from glasshouse.query.remote import RemoteModel
    from glasshouse.query.tokens import TokenLoss
    from glasshouse.training import PrivateTrainer, SklearnTrainer, TorchTrainer, mlp
    from glasshouse.training.adapters import LoRA
    from glasshouse.training.language import CausalLMTrainer

__all__ = [
    "Attack",
    "Attacker",
    "AuditResult",
    "BoolArray",
    "CausalLMTrainer",
    "CoarseAnswers",
    "CoxLoss",
    "Defence",
    "DiscreteSurvivalLoss",
    "Evaluation",
    "Evidence",
    "FloatArray",
    "GaussianLoss",
    "InputError",
    "LabelOnly",
    "LoRA",
    "LocalProcesses",
    "LossTrace",
    "MultiLabelLoss",
    "MultiOutputLoss",
    "PoissonLoss",
    "Population",
    "PrivacyClaim",
    "PrivateTrainer",
    "QuantileLoss",
    "QueryOptions",
    "RayCluster",
    "RemoteModel",
    "SeveralTargets",
    "SklearnTrainer",
    "ThisProcess",
    "TokenLoss",
    "TorchTrainer",
    "advise",
    "audit",
    "audit_evidence",
    "audit_targets",
    "complementary_halves",
    "digits",
    "mlp",
    "most_exposed",
    "random_subsets",
    "read_evidence",
    "register",
    "register_defences",
    "text_tokens",
    "tokenized",
    "write_evidence",
]
__version__ = "0.2.0"
__getattr__, __dir__ = lazy_exports(__name__)
