"""Audit files and policy files: a YAML file checked as a whole before anything runs."""

from glasshouse.config.audit_file import AuditFile as AuditFile
from glasshouse.config.audit_file import advise_audit_file as advise_audit_file
from glasshouse.config.audit_file import read_audit_file as read_audit_file
from glasshouse.config.audit_file import run_audit_file as run_audit_file
from glasshouse.config.audit_file import with_options as with_options
from glasshouse.config.data import data_names as data_names
from glasshouse.config.policy_file import read_policy as read_policy
from glasshouse.config.policy_file import read_supplied as read_supplied
