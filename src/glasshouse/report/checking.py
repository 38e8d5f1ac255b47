"""Whether a summary that was read back can be one: lists that fit each other, rates between 0 and 1, no NaN."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping
from typing import Any

from glasshouse.errors import raise_faults, shortened
from glasshouse.evaluation import Interval
from glasshouse.report.curves import Curve
from glasshouse.report.figures import AttackFigures
from glasshouse.report.histograms import Histogram
from glasshouse.report.neighbourhood import Neighbourhood
from glasshouse.report.reliability import Reliability
from glasshouse.report.summarise import Summary
from glasshouse.table import Table

__all__ = ["check_summary"]

_SHARES = frozenset(
    {
        *("auc", "tpr", "fpr", "fprs", "wanted", "chance", "expected_fpr", "false_alarms", "prior", "p_value"),
        *("low", "high", "said", "found", "confidence", "level", "delta", "balanced_accuracy", "train_accuracy"),
        *("test_accuracy", "finer_auc", "finer_rate", "auc_held", "tpr_held"),
    }
)
_MOST = 10**15  # of a count; larger ones are not exact as numbers on a page
_AS_THEY_ARE = frozenset({"parameters", "settings"})  # what a user chose


def check_summary(summary: Summary) -> None:
    """Refuse figures that no audit gives; a page would show them, or could not be drawn.

    Example:
        >>> from glasshouse import Evidence, audit_evidence
        >>> losses = {"target_loss": [0.1, 2.0], "shadow_loss": [[0.1, 1.0], [1.2, 0.2]]}
        >>> evidence = Evidence(**losses, shadow_members=[[1, 0], [0, 1]])
        >>> found = audit_evidence(evidence, attacks=["loss"], members=[1, 0]).summary()
        >>> check_summary(found)
        >>> check_summary(dataclasses.replace(found, fprs=(2.0,)))
        Traceback (most recent call last):
        glasshouse.errors.InputError: fprs is 2.0, which is not between 0 and 1.
    """
    faults = [*_faults(summary, "summary"), *_names(summary)]
    if summary.members is not None and not 0 <= summary.members <= summary.records:
        faults.append(f"of {summary.records} records {summary.members} are members.")
    raise_faults(faults[:5])


def _names(summary: Summary) -> Iterator[str]:
    """Attacks that are named elsewhere must be there."""
    known = {attack.name for attack in summary.attacks}
    guessed = None if summary.privacy is None else summary.privacy.guessed
    for named in (summary.headline, guessed):
        if named is not None and named.attack not in known:
            yield f"it has no attack {shortened(named.attack)}."


def _faults(value: Any, name: str) -> Iterator[str]:
    """Every fault in a value and in all that it holds."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return
    if isinstance(value, int | float):
        yield from _number_faults(value, name)
    elif isinstance(value, Interval):
        if not value.low <= value.high:  # nor NaN
            yield f"{name} is from {value.low} to {value.high}."
    elif isinstance(value, Table):
        for column in value:
            yield from _faults(value[column].tolist(), "top_records")
    elif isinstance(value, Mapping):
        for key, inside in value.items():
            yield from _faults(inside, str(key))
    elif isinstance(value, list | tuple):
        for inside in value:
            yield from _faults(inside, name)
    elif dataclasses.is_dataclass(value):
        yield from _list_faults(value)
        for field in dataclasses.fields(value):
            if field.name not in _AS_THEY_ARE:
                yield from _faults(getattr(value, field.name), field.name)


def _number_faults(value: float, name: str) -> Iterator[str]:
    if isinstance(value, float) and not math.isfinite(value):
        yield f"{name} is not a number."
    elif name in _SHARES and not 0 <= value <= 1:
        yield f"{name} is {shortened(value)}, which is not between 0 and 1."
    elif isinstance(value, int) and name not in ("seed", "top_records") and not 0 <= value <= _MOST:
        yield f"{name} is {shortened(value)}, which is not a count."


def _list_faults(value: Any) -> Iterator[str]:
    """Lists that must have the same length, or may not be empty."""
    lists: list[tuple[Any, ...]]
    match value:
        case Curve():
            lists = [value.fpr, value.tpr, value.low, value.high]
            wrong = not value.fpr or value.non_members < 1 or list(value.fpr) != sorted(value.fpr)
        case Histogram():
            lists = [value.edges[1:], value.members, *([] if value.others is None else [value.others])]
            wrong = len(value.edges) < 2 or any(a >= b for a, b in zip(value.edges, value.edges[1:], strict=False))
        case Reliability():
            lists = [value.said, value.found, value.intervals, value.counts]
            wrong = False
        case Neighbourhood():
            lists = [value.member, value.alike]
            wrong = not value.member or any(not 0 <= end < len(value.member) for edge in value.edges for end in edge)
        case AttackFigures():
            lists = [] if value.accusations == () else [value.accusations, value.thresholds]
            wrong = any(not one.precisions for one in value.accusations)
        case Summary():
            lists = [value.fprs, *(one.simulated.strengths for one in value.attacks if one.simulated is not None)]
            wrong = False
        case _:
            return
    if wrong or len({len(one) for one in lists}) > 1:
        yield f"the lists of {type(value).__name__} do not fit each other."
