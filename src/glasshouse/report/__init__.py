"""The report: numbers (`summarise`) separate from how they are shown (`html`, `pictures`, `terminal`, `latex`)."""

from glasshouse.report.compare import compare
from glasshouse.report.compare_html import render_comparison
from glasshouse.report.compared import Comparison
from glasshouse.report.context import Context
from glasshouse.report.folder import read_run
from glasshouse.report.html import render_html
from glasshouse.report.latex import latex_table
from glasshouse.report.neighbourhood import Surroundings
from glasshouse.report.saved_run import SavedRun, read_run_with_records
from glasshouse.report.summarise import Summary, summarise
from glasshouse.report.terminal import print_summary

__all__ = [
    "Comparison",
    "Context",
    "SavedRun",
    "Summary",
    "Surroundings",
    "compare",
    "latex_table",
    "print_summary",
    "read_run",
    "read_run_with_records",
    "render_comparison",
    "render_html",
    "summarise",
]
