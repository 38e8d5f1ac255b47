"""The report: numbers (`summary`, `figures`) separate from how they are shown (`html`, `pictures`, `terminal`)."""

from glasshouse.report.advice import Advice, MeasuredDefence
from glasshouse.report.comparison import Comparison, compare
from glasshouse.report.context import Context
from glasshouse.report.html import render_advice, render_comparison, render_html
from glasshouse.report.pictures.neighbourhood import Surroundings
from glasshouse.report.run_folder import SavedRun, read_run, read_run_with_records
from glasshouse.report.summary import Summary
from glasshouse.report.terminal import latex_table, print_summary

__all__ = [
    "Advice",
    "Comparison",
    "Context",
    "MeasuredDefence",
    "SavedRun",
    "Summary",
    "Surroundings",
    "compare",
    "latex_table",
    "print_summary",
    "read_run",
    "read_run_with_records",
    "render_advice",
    "render_comparison",
    "render_html",
]
