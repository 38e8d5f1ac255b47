"""Pictures of a report, each one SVG element: no library, no script, colours from the page's own style."""

from glasshouse.report.pictures.epsilon import epsilon_picture
from glasshouse.report.pictures.fdp_curve import fdp_picture
from glasshouse.report.pictures.groups import groups_picture
from glasshouse.report.pictures.histogram import histogram_picture
from glasshouse.report.pictures.neighbourhood import neighbourhood_picture
from glasshouse.report.pictures.people import exposure_picture, people_picture
from glasshouse.report.pictures.precision import precision_picture
from glasshouse.report.pictures.reliability import reliability_picture
from glasshouse.report.pictures.roc import roc_picture
from glasshouse.report.pictures.tradeoff import tradeoff_picture

__all__ = [
    "epsilon_picture",
    "exposure_picture",
    "fdp_picture",
    "groups_picture",
    "histogram_picture",
    "neighbourhood_picture",
    "people_picture",
    "precision_picture",
    "reliability_picture",
    "roc_picture",
    "tradeoff_picture",
]
