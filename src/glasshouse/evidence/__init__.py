"""Evidence: what an attack sees, taken from models or from files."""

from glasshouse.evidence.collect import collect as collect
from glasshouse.evidence.evidence import Evidence as Evidence
from glasshouse.evidence.evidence import Kind as Kind
from glasshouse.evidence.evidence import Mode as Mode
from glasshouse.evidence.evidence import PublicRecords as PublicRecords
from glasshouse.evidence.files import read_evidence as read_evidence
from glasshouse.evidence.files import write_evidence as write_evidence
from glasshouse.evidence.parts import PartLosses as PartLosses
from glasshouse.evidence.trace import LossTrace as LossTrace
from glasshouse.query.classify import QueryOptions as QueryOptions
from glasshouse.query.classify import accuracy as accuracy
from glasshouse.query.classify import query as query
