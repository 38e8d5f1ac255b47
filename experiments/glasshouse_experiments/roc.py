"""The paper's six ROC figures: mean curves over the targets, as CSV and as pictures beside its printed end points."""

from __future__ import annotations

import csv
import functools
from dataclasses import dataclass
from importlib.resources import files

import numpy as np

from glasshouse.core.registry import Registry
from glasshouse.core.table import Table
from glasshouse.evaluation import roc as roc_of
from glasshouse_experiments.bench import Bench, Judged
from glasshouse_experiments.cells import Cell, printed_cell
from glasshouse_experiments.experiment import experiment
from glasshouse_experiments.lineup import Lineup, classifiers, gbase, singles
from glasshouse_experiments.measures import collected
from glasshouse_experiments.roc_picture import METRIC, End, Line, roc_figure
from glasshouse_experiments.settings import MISMATCHED, SETTINGS, Setting

__all__ = ["FIGURES", "ROC_SETTINGS", "Figure", "ends_of", "roc"]

RATES = tuple(float(rate) for rate in np.geomspace(1e-4, 1.0, 41).round(6))
ENDS = (0.01, 0.001)  # false-positive rates at which the paper's tables print a TPR


@dataclass(frozen=True, kw_only=True)
class Figure:
    """What a figure of the paper shows.

    Args:
        gbase: G-BASE's name and sampler in it.
        shadows: K.
        learned: whether the two MLPs are in it.
        table: the paper's table that prints some of its points; empty if none does.
        together: whether online and offline are in one picture.
        lowest: where both axes begin.
        audited: share of the nodes that is audited.
        title: above it, if the setting's name does not say what it is.
    """

    gbase: tuple[str, str]
    shadows: int = 8
    learned: bool = True
    table: str = ""
    together: bool = False
    lowest: float = 1e-4
    audited: float = 0.5
    title: str = ""


_GIBBS, _MIA, _MI = ("G-BASE (Gibbs)", "gibbs"), ("G-BASE (MIA)", "mia"), ("G-BASE (MI)", "independent")
FIGURES: dict[str, Figure] = {
    "cora-mismatched": Figure(
        gbase=_MIA, table="model-distr-shift", together=True, lowest=1e-3, title="Cora, mismatched"
    ),
    "amazon-photo-sage": Figure(gbase=_GIBBS),
    "pubmed-gcn": Figure(gbase=_GIBBS),
    "github-many": Figure(
        gbase=("G-BASE", "mia"),
        shadows=128,
        learned=False,
        table="MIAGNN",
        audited=0.2,
        title="GitHub (other features than the paper's), K = 128 and 64",
    ),
    "flickr": Figure(gbase=_MI, table="MIAGNN"),
    "flickr-gat": Figure(gbase=_MI),
    "flickr-stand-in": Figure(gbase=_MI),
    "flickr-gat-stand-in": Figure(gbase=_MI, audited=0.1),
    "synthetic": Figure(gbase=_MIA),
}
_SOURCES = {"cora-mismatched": MISMATCHED.find("cora"), "github-many": SETTINGS.find("github")}
ROC_SETTINGS: Registry[Setting] = Registry("a ROC figure")
for _name in FIGURES:
    ROC_SETTINGS.add(_name, _SOURCES[_name] if _name in _SOURCES else SETTINGS.find(_name))


def draw(table: Table) -> str:
    """The mean curves of one figure as an SVG, with the points that the paper, or its authors' repository, prints."""
    rows = list(table.rows())
    figure = next(one for name, one in FIGURES.items() if ROC_SETTINGS.find(name).paper_name == rows[0]["dataset"])
    lines = []
    for mode, attack in dict.fromkeys((row["mode"], row["attack"]) for row in rows):
        chosen = [row for row in rows if (row["mode"], row["attack"]) == (mode, attack)]
        rates = tuple(float(row["metric"].removeprefix(METRIC)) for row in chosen)
        means = tuple(float(row["mean"]) / 100 for row in chosen)
        ends = ends_of(figure, chosen[0])
        lines.append(Line(attack=attack, mode=mode, fpr=rates, tpr=means, ends=ends))
    return roc_figure(lines, title=figure.title or rows[0]["dataset"], together=figure.together, lowest=figure.lowest)


def ends_of(figure: Figure, row: dict[str, object]) -> tuple[End, ...]:
    """Points of a curve that are printed."""
    dataset, mode, count, attack = (str(row[name]) for name in ("dataset", "mode", "K", "attack"))
    found = []
    for rate in ENDS:
        metric = f"tpr_at_fpr{100 * rate:g}_pct"
        printed = printed_cell(figure.table, dataset, mode, count, "", attack, metric) if figure.table else None
        mean, spread = printed or _repository().get((dataset, mode, count, attack, rate), (np.nan, np.nan))
        if np.isfinite(mean):
            found.append(End(rate, mean / 100, spread / 100))
    return tuple(found)


@functools.cache
def _repository() -> dict[tuple[str, str, str, str, float], tuple[float, float]]:
    """What ``results/`` of the authors' repository holds about figures that no table prints, of May 2025."""
    text = (files("glasshouse_experiments") / "authors_ends.csv").read_text(encoding="utf-8")
    return {
        (row["dataset"], row["mode"], row["K"], row["attack"], float(row["fpr"])): (
            float(row["tpr"]),
            float(row["std"]),
        )
        for row in csv.DictReader(text.splitlines())
    }


@experiment("roc", settings=ROC_SETTINGS, picture=draw)
def roc(bench: Bench) -> list[Cell]:
    """Mean TPR at forty false-positive rates; nothing is interpolated."""
    figure = next(FIGURES[name] for name in FIGURES if ROC_SETTINGS.find(name) is bench.setting)
    shadows = min(figure.shadows, bench.preset.most_shadows)
    attacks: Lineup = dict(classifiers(shadows)) if figure.learned else {}
    attacks |= singles(shadows) | gbase(shadows, dict([figure.gbase]))
    rounds = bench.judged(attacks, shadows=shadows, audited=figure.audited)
    return collected(rounds, _curve, table="roc", dataset=bench.setting.paper_name)


def _curve(judged: Judged) -> dict[str, float]:
    curve = roc_of(judged.scores, judged.truth)
    return {f"{METRIC}{rate:g}": 100 * float(curve.tpr[curve.point_at(rate)]) for rate in RATES}
