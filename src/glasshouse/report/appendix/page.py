"""The evidence file as a page."""

from __future__ import annotations

from glasshouse.report.appendix.document import Appendix
from glasshouse.report.page import render_page

__all__ = ["render_appendix"]


def render_appendix(appendix: Appendix) -> str:
    """An evidence file as an HTML page that needs no network.

    Example:
        >>> from glasshouse import Evidence, audit_evidence
        >>> from glasshouse.report.appendix import evidence_file
        >>> losses = {"target_loss": [0.1, 2.0], "shadow_loss": [[0.1, 1.0], [1.2, 0.2]]}
        >>> evidence = Evidence(**losses, shadow_members=[[1, 0], [0, 1]])
        >>> summary = audit_evidence(evidence, attacks=["loss"], members=[1, 0]).summary()
        >>> "Still to supply" in render_appendix(evidence_file(summary))
        True
    """
    return render_page("appendix.html.j2", title=appendix.title, appendix=appendix, summary=appendix.summary)
