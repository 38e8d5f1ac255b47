"""What a quick look says about eight shadow models: the relation, learned from small problems and tested on others."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy.special import ndtr, ndtri

from glasshouse.core.arrays import BoolArray, FloatArray
from glasshouse.evaluation.quick_estimate import LEVEL, Relation, Table, floors, predicted, signals

sys.path.insert(0, str(Path(__file__).parent))

from cheap_problems import FPR, Case, family

CHANCES = (0.0, round(float(ndtri(FPR)), 4))  # of AUC and TPR without a leak, in units of a normal quantile


def signals_of(cases: Sequence[Case], models: int) -> FloatArray:
    """[cases, F] what an audit with this many shadow models, 0 or 1, would look at."""
    return np.array([signals(one.loss, one.members, one.reference if models else None) for one in cases])


def figures_of(cases: Sequence[Case]) -> tuple[FloatArray, FloatArray]:
    """[cases] AUC and TPR of eight shadow models, as a separation and as a normal quantile."""
    half = np.array([0.5 / min(int(one.members.sum()), int((~one.members).sum())) for one in cases])
    areas, rates = (np.array([getattr(one, name) for one in cases]) for name in ("auc", "tpr"))
    return np.sqrt(2) * ndtri(np.clip(areas, half, 1 - half)), ndtri(np.clip(rates, half, 1 - half))


def fitted(signals_: FloatArray, figure: FloatArray, chance: float) -> Relation:
    """The line by least squares, without an interval yet."""
    found = np.linalg.lstsq(np.column_stack([np.ones(len(figure)), signals_]), figure, rcond=None)[0].round(4).tolist()
    return Relation(constant=found[0], slopes=tuple(found[1:]), chance=chance, reach=0.0, held=float("nan"))


def misses(learned: Relation, signals_: FloatArray, figure: FloatArray) -> FloatArray:
    """[cases] how far each figure is above the line, in units of the relation's spread."""
    middles = learned.constant + signals_ @ np.array(learned.slopes)
    return np.array([(y - middle) / learned.spread(middle) for y, middle in zip(figure, middles, strict=True)])


def left_out_misses(signals_: FloatArray, figure: FloatArray, families: np.ndarray, chance: float) -> FloatArray:
    """[cases] the same, each from the line that was fitted without the case's family."""
    found = np.empty(len(figure))
    for name in np.unique(families):
        out = families == name
        found[out] = misses(fitted(signals_[~out], figure[~out], chance), signals_[out], figure[out])
    return found


def usual_misses(cases: Sequence[Case], models: int) -> tuple[float, float]:
    """The medians of how far estimates of AUC and of TPR are away, each made without the case's family."""
    asked, families = signals_of(cases, models), np.array([family(one.source) for one in cases])
    away: list[list[float]] = [[], []]
    for name in np.unique(families):
        out = families == name
        for part, (figure, scale) in enumerate(zip(figures_of(cases), (np.sqrt(2), 1.0), strict=True)):
            learned = fitted(asked[~out], figure[~out], CHANCES[part])
            middles = learned.constant + asked[out] @ np.array(learned.slopes)
            away[part] += np.abs(ndtr(middles / scale) - ndtr(figure[out] / scale)).tolist()
    return float(np.median(away[0])), float(np.median(away[1]))


def family_quantile(misses_: FloatArray, families: np.ndarray, level: float) -> float:
    """How far an interval must reach to hold a target of a new family with the wanted probability.

    Targets of one family miss alike, so they are not so many independent trials. Every family has the same weight,
    whatever its number of targets, and the new one counts as infinitely far: the rule of conformal prediction for data
    in groups (Dunn, Wasserman and Ramdas, 2023). With fewer than 9 families no finite interval holds at 90 %.

    Args:
        misses_: [cases] of the line that was fitted without the case's family.
        families: [cases] names.
        level: of the interval.
    """
    names, place, sizes = np.unique(families, return_inverse=True, return_counts=True)
    weight = 1.0 / (len(names) + 1) / sizes[place]
    order = np.argsort(np.abs(misses_))
    enough = np.cumsum(weight[order]) >= level - 1e-12
    return float(np.abs(misses_)[order][np.argmax(enough)]) if enough.any() else float("inf")


def relation(signals_: FloatArray, figure: FloatArray, families: np.ndarray, chance: float) -> Relation:
    """The line through all cases, with an interval from families that were left out of it."""
    reach = round(family_quantile(left_out_misses(signals_, figure, families, chance), families, LEVEL), 4)
    return replace(fitted(signals_, figure, chance), reach=reach)


def holds(
    signals_: FloatArray, figure: FloatArray, families: np.ndarray, chance: float, floor: FloatArray
) -> BoolArray:
    """[cases] whether the interval holds the figure; neither line nor interval is learned from the case's family."""
    found = np.empty(len(figure), dtype=np.bool_)
    for name in np.unique(families):
        out = families == name
        learned = relation(signals_[~out], figure[~out], families[~out], chance)
        for case in np.flatnonzero(out):
            low, _, high = predicted(signals_[case], learned, float(floor[case]))
            found[case] = low <= figure[case] <= high
    return found


def held_of(cases: Sequence[Case], models: int) -> list[BoolArray]:
    """[cases] whether the intervals hold the AUC, and whether they hold the TPR."""
    asked, families = signals_of(cases, models), np.array([family(one.source) for one in cases])
    measured = np.array([floors(one.loss, one.members, one.reference if models else None) for one in cases]).T
    parts = zip(figures_of(cases), CHANCES, measured, strict=True)
    return [holds(asked, figure, families, chance, floor) for figure, chance, floor in parts]


def learned_table(cases: Sequence[Case], models: int) -> Table:
    """What is learned from the cases, for audits with this many shadow models."""
    asked, families = signals_of(cases, models), np.array([family(one.source) for one in cases])
    made = {}
    parts = zip(("auc", "tpr"), figures_of(cases), CHANCES, held_of(cases, models), strict=True)
    for name, figure, chance, held in parts:
        made[name] = replace(relation(asked, figure, families, chance), held=round(float(held.mean()), 3))
    return Table(
        **made,
        lowest=tuple((np.floor(100 * asked.min(axis=0)) / 100).tolist()),
        highest=tuple((np.ceil(100 * asked.max(axis=0)) / 100).tolist()),
        targets=len(cases),
        sources=len({one.source for one in cases}),
    )


def tested(cases: Sequence[Case], models: int) -> Iterator[str]:
    """Rows: per family of data how often the intervals held, and how wide they are."""
    families, held = np.array([family(one.source) for one in cases]), held_of(cases, models)
    for name in (*np.unique(families), "all"):
        rows = families == name if name != "all" else np.ones(len(cases), dtype=np.bool_)
        inside = " | ".join(f"{int(one[rows].sum())} of {int(rows.sum())}" for one in held)
        yield f"| {name} | {inside} |"
