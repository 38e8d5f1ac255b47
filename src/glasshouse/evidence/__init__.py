"""Evidence: what an attack sees, taken from models or from files."""

from glasshouse.evidence.collect import collect
from glasshouse.evidence.evidence import Evidence, Kind, Mode, PublicRecords
from glasshouse.evidence.files import read_evidence, write_evidence
from glasshouse.evidence.parts import PartLosses
from glasshouse.evidence.trace import LossTrace
from glasshouse.query.classify import QueryOptions, accuracy, query

__all__ = [
    "Evidence",
    "Kind",
    "LossTrace",
    "Mode",
    "PartLosses",
    "PublicRecords",
    "QueryOptions",
    "accuracy",
    "collect",
    "query",
    "read_evidence",
    "write_evidence",
]
