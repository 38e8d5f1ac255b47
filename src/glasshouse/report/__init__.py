"""The report: numbers (`summary`, `figures`) separate from how they are shown (`html`, `pictures`, `terminal`)."""

from glasshouse.report.advice import Advice as Advice
from glasshouse.report.advice import MeasuredDefence as MeasuredDefence
from glasshouse.report.comparison import Comparison as Comparison
from glasshouse.report.comparison import compare as compare
from glasshouse.report.context import Context as Context
from glasshouse.report.html import render_advice as render_advice
from glasshouse.report.html import render_comparison as render_comparison
from glasshouse.report.html import render_html as render_html
from glasshouse.report.pictures.neighbourhood import Surroundings as Surroundings
from glasshouse.report.run_folder import SavedRun as SavedRun
from glasshouse.report.run_folder import read_run as read_run
from glasshouse.report.run_folder import read_run_with_records as read_run_with_records
from glasshouse.report.summary import Summary as Summary
from glasshouse.report.terminal import latex_table as latex_table
from glasshouse.report.terminal import print_summary as print_summary
