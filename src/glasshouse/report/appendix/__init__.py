"""The evidence file: what a run measured, declared and assumed, beside what regulators and standards ask for."""

from glasshouse.report.appendix.document import (
    Answer,
    Appendix,
    evidence_file,
    literal,
    render_appendix,
    render_appendix_markdown,
    render_appendix_record,
    supply_form,
)
from glasshouse.report.appendix.sources import POINTS, SOURCES, Clause, Source, Statement

__all__ = [
    "POINTS",
    "SOURCES",
    "Answer",
    "Appendix",
    "Clause",
    "Source",
    "Statement",
    "evidence_file",
    "literal",
    "render_appendix",
    "render_appendix_markdown",
    "render_appendix_record",
    "supply_form",
]
