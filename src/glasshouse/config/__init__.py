"""Audit files and policy files: a YAML file checked as a whole before anything runs."""

from glasshouse.config.audit_file import AuditFile, advise_audit_file, read_audit_file, run_audit_file, with_options
from glasshouse.config.data import data_names
from glasshouse.config.policy_file import read_policy, read_supplied

__all__ = [
    "AuditFile",
    "advise_audit_file",
    "data_names",
    "read_audit_file",
    "read_policy",
    "read_supplied",
    "run_audit_file",
    "with_options",
]
