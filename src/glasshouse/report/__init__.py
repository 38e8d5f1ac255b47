"""The report: numbers (`summarise`) apart from how they are shown (`html`, `plots`, `terminal`)."""

from glasshouse.report.html import render_html
from glasshouse.report.summarise import Context, Summary, summarise
from glasshouse.report.terminal import print_summary

__all__ = ["Context", "Summary", "print_summary", "render_html", "summarise"]
