"""A verdict as JUnit XML, which build servers show as tests."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from glasshouse.report.policy.judging import Verdict

__all__ = ["junit_xml"]


def junit_xml(verdict: Verdict, *, name: str) -> str:
    """One test case per finding: a failure where a limit is not kept, an error where it cannot be told.

    Args:
        verdict: of a policy on a run.
        name: of the test suite, such as the run's folder.

    Example:
        >>> from glasshouse.report.policy import Finding
        >>> found = Verdict(findings=[Finding(rule="shadow models at least 8", status="failed", reason="2")])
        >>> 'failures="1"' in junit_xml(found, name="run")
        True
    """
    counts = {status: sum(one.status == status for one in verdict.findings) for status in ("failed", "unknown")}
    suite = ET.Element(
        "testsuite",
        name=_clean(name),
        tests=str(len(verdict.findings)),
        failures=str(counts["failed"]),
        errors=str(counts["unknown"]),
    )
    for finding in verdict.findings:
        case = ET.SubElement(suite, "testcase", classname="glasshouse.policy", name=_clean(finding.rule))
        if finding.status != "passed":
            kind = "failure" if finding.status == "failed" else "error"
            ET.SubElement(case, kind, message=_clean(finding.reason)).text = _clean(finding.line)
    ET.indent(suite)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(suite, encoding="unicode") + "\n"


def _clean(text: str) -> str:
    """Without characters that XML 1.0 does not allow; a name of a group may hold any."""
    return "".join(
        one if one in "\t\n" or " " <= one <= "\ud7ff" or "\ue000" <= one <= "\ufffd" else "?" for one in text
    )
