"""A risk policy: limits that a run must keep before a model is released."""

from glasshouse.report.policy.judging import Finding, Verdict, judge
from glasshouse.report.policy.junit import junit_xml
from glasshouse.report.policy.limits import End, Limit, Policy

__all__ = ["End", "Finding", "Limit", "Policy", "Verdict", "judge", "junit_xml"]
