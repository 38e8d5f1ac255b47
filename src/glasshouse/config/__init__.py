"""Audit files: a YAML file checked as a whole before anything runs."""

from glasshouse.config.audit_file import AuditFile, read_audit_file, run_audit_file

__all__ = ["AuditFile", "read_audit_file", "run_audit_file"]
