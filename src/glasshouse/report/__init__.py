"""The report: numbers (`summarise`) separate from how they are shown (`html`, `pictures`, `terminal`, `latex`)."""

from glasshouse.report.compare import Comparison, compare
from glasshouse.report.compare_html import render_comparison
from glasshouse.report.context import Context
from glasshouse.report.folder import read_run
from glasshouse.report.html import render_html
from glasshouse.report.latex import latex_table
from glasshouse.report.neighbourhood import Surroundings
from glasshouse.report.summarise import Summary, summarise
from glasshouse.report.terminal import print_summary

__all__ = [
    "Comparison",
    "Context",
    "Summary",
    "Surroundings",
    "compare",
    "latex_table",
    "print_summary",
    "read_run",
    "render_comparison",
    "render_html",
    "summarise",
]
