"""Glasshouse tells the owner of a trained model how visible its training records are from outside."""

from glasshouse.audit import audit, audit_evidence
from glasshouse.errors import InputError
from glasshouse.evaluation import PrivacyClaim
from glasshouse.evidence import Evidence, QueryOptions, read_evidence, write_evidence
from glasshouse.population import Population
from glasshouse.result import AuditResult
from glasshouse.training import PrivateTrainer, SklearnTrainer, TorchTrainer

__all__ = [
    "AuditResult",
    "Evidence",
    "InputError",
    "Population",
    "PrivacyClaim",
    "PrivateTrainer",
    "QueryOptions",
    "SklearnTrainer",
    "TorchTrainer",
    "audit",
    "audit_evidence",
    "read_evidence",
    "write_evidence",
]
