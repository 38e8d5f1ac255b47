"""A summary as JSON types, and back, checked: ``metrics.json`` (figures) and ``run.json`` (how they were made)."""

from __future__ import annotations

import dataclasses
import functools
import json
import math
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, get_type_hints

from glasshouse.core.errors import raise_faults, shortened
from glasshouse.core.table import Table
from glasshouse.evaluation import Interval, PrivacyVerdict
from glasshouse.evaluation.risk import RiskFigures
from glasshouse.report.advice import Advice
from glasshouse.report.context import Context
from glasshouse.report.figures import FIGURES, AttackFigures
from glasshouse.report.pictures.neighbourhood import Neighbourhood
from glasshouse.report.pictures.scores import Curve, Histogram, Reliability
from glasshouse.report.summary import Summary

FORMAT = 6
_KINDS = {  # of what is read as it is written
    name: kind
    for name, kind in get_type_hints(Summary).items()
    if name not in ("context", "attacks", "top_records", "written", "advice")
}
_KEYS = {  # what the file calls otherwise
    "verdict_attack": "headline",
    "random_members": "drawn",
    "declared": "draw",
    "mismatch": "unlike",
    "quick_estimate": "estimate",
}
_OF_CONTEXT = ("warnings", "stored_records", "shadows", "mode", "seed", "fingerprint")
_ALWAYS = (  # the keys of ``metrics.json``, in their order
    *("format", "verdict", "strongest", "headline", "warnings", "notes", "records", "members", "fprs", "target"),
    *("stored_records", "shadows", "mode", "seed", "fingerprint", "attacks", "left_out", "privacy", "drawn"),
    *("top_records", "neighbourhoods", "groups", "worst_cell", "power", "unlike", "estimate"),
)
_OF_RUN = ("title", "about", "settings", "versions", "shadow_seconds", "author", "redacted")
_RARE = ("texts", "draw", "risk")  # left out of the file where there is none


def metrics_json(summary: Summary) -> dict[str, Any]:
    """Every figure; the same run gives the same text, so it holds no measured times."""
    context, drawn = summary.context, summary.random_members
    found = {_KEYS.get(name, name): _dumped(kind, getattr(summary, name)) for name, kind in _KINDS.items()}
    found |= {name: _dumped(Any, getattr(context, name)) for name in _OF_CONTEXT}
    found |= {"format": FORMAT, "target": _target_json(context)}
    found["attacks"] = {attack.name: _attack_json(attack) for attack in summary.attacks}
    found["privacy"] = summary.privacy and _privacy_json(summary.privacy)
    found["drawn"] = drawn and {**found["drawn"], "found": drawn.found, "sentence": drawn.sentence()}
    found["top_records"] = _dumped(Any, list(summary.top_records.rows()))
    return {key: found[key] for key in (*_ALWAYS, *(key for key in _RARE if found[key] is not None))}


def run_json(summary: Summary) -> dict[str, Any]:
    """How the run was made, and how long it took; separate from the figures, since times differ from run to run."""
    context = summary.context
    return {
        "format": FORMAT,
        "title": context.title,
        "about": context.about,
        "settings": {name: str(value) for name, value in context.settings.items()},
        "versions": dict(context.versions),
        "seconds": {attack.name: round(attack.seconds, 4) for attack in summary.attacks},
        "shadow_seconds": None if context.shadow_seconds is None else round(context.shadow_seconds, 4),
        "author": context.author,
        "redacted": context.redacted,
        "written": (summary.written or datetime.now(UTC)).isoformat(timespec="seconds"),
        **({} if summary.advice is None else {"advice": advice_json(summary.advice)}),
    }


def advice_json(advice: Advice) -> dict[str, Any]:
    """Measured defences, for ``run.json``: they come with the time that they took."""
    return dict(_dumped(Advice, advice))


def summary_from(metrics: Mapping[str, Any], run: Mapping[str, Any]) -> Summary:
    """The summary again; fails in some way if something is missing or wrong, so call it behind a door."""
    if lost := [key for key in _ALWAYS if key not in metrics]:
        raise KeyError(lost[0])
    privacy, rows = metrics["privacy"], list(metrics["top_records"])
    if privacy:
        privacy = {**privacy, "epsilon": privacy["epsilon_lower_bound"] or 0.0}  # null: it is withheld
    plain = {**dict.fromkeys(_RARE), **metrics, "privacy": privacy}
    told = {name: metrics[name] for name in _OF_CONTEXT} | dict(metrics["target"])
    told |= {name: run[name] for name in _OF_RUN}
    if not metrics["attacks"] or metrics["strongest"] not in metrics["attacks"]:
        raise ValueError("it does not name a strongest attack")
    return Summary(
        context=_adapter(Context).validate_python(told),
        attacks=tuple(_attack_from(name, one, run["seconds"][name]) for name, one in metrics["attacks"].items()),
        top_records=Table({name: [row[name] for row in rows] for name in (rows[0] if rows else ())}),
        written=moment(run["written"]),
        advice=_adapter(Advice | None).validate_python(run.get("advice")),
        **{name: _adapter(kind).validate_python(plain[_KEYS.get(name, name)]) for name, kind in _KINDS.items()},
    )


def moment(told: object) -> datetime:
    """When a run was saved, from what ``run.json`` says."""
    found = datetime.fromisoformat(told) if isinstance(told, str) else None
    if found is None:
        raise ValueError("written is not a date")
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)


def _target_json(context: Context) -> dict[str, Any]:
    """How well the target does: errors of a regressor, accuracies of a classifier."""
    errors = {name: getattr(context, name) for name in ("train_rmse", "test_rmse", "train_r2", "test_r2")}
    known = any(value is not None for value in errors.values())
    return errors if known else {"train_accuracy": context.train_accuracy, "test_accuracy": context.test_accuracy}


def _attack_json(attack: AttackFigures) -> dict[str, Any]:
    """One attack; measured figures and parameters are on one level, as a reader of the file expects."""
    plain: dict[str, Any] = _dumped(AttackFigures, attack)
    measured: dict[str, Any] | None = plain.pop("metrics")
    del plain["name"], plain["seconds"]
    if attack.whole is None:
        del plain["whole"]
    if measured is None:
        return plain
    for figure, (value, interval, _) in measured.pop("figures").items():
        plain |= {figure: value, f"{figure}_interval": interval}
    return plain | measured


def _attack_from(name: str, plain: Mapping[str, Any], seconds: float) -> AttackFigures:
    """One attack again; a figure that is not finite was left out."""
    figures = {
        figure: (plain[figure], plain[f"{figure}_interval"])
        for figure, described in FIGURES.items()
        if described.measure is not None and figure in plain
    }
    metrics = {**plain, "figures": figures} if "auc" in figures else None
    found: AttackFigures = _adapter(AttackFigures).validate_python(
        {**plain, "name": name, "metrics": metrics, "seconds": seconds}
    )
    return found


def _privacy_json(verdict: PrivacyVerdict) -> dict[str, Any]:
    plain: dict[str, Any] = _dumped(PrivacyVerdict, verdict)
    bound = plain.pop("epsilon")
    sentences = {"sentence": verdict.sentence(), "gaussian_sentence": verdict.gaussian_sentence()}
    return {"epsilon_lower_bound": None if verdict.withheld else bound, **plain, **sentences}


def _dumped(kind: Any, value: Any) -> Any:
    return json.loads(_adapter(kind).dump_json(value))


@functools.cache
def _adapter(kind: Any) -> Any:
    """Checks and writes values of a type; pydantic is needed only to write or read a run."""
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


_SHARES = frozenset(  # besides the figures that are described in `FIGURES`, each with its own range
    {
        *("tpr", "fpr", "fprs", "wanted", "chance", "expected_fpr", "false_alarms", "prior", "p_value", "low", "high"),
        *("said", "found", "confidence", "level", "delta", "train_accuracy", "test_accuracy", "finer_auc"),
        *("finer_rate", "auc_held", "tpr_held", "by_target", "by_others"),
    }
)
_MOST = 10**15  # of a count; larger ones are not exact as numbers on a page
_AS_THEY_ARE = frozenset({"parameters", "settings"})  # what a user chose


def check_summary(summary: Summary) -> None:
    """Refuse figures that no audit gives; a page would show them, or could not be drawn."""
    known = {attack.name for attack in summary.attacks}
    guessed = None if summary.privacy is None else summary.privacy.guessed
    named = [one.attack for one in (summary.verdict_attack, guessed) if one is not None]
    faults = [*_faults(summary, "summary")]
    faults += [f"it has no attack {shortened(name)}." for name in named if name not in known]
    if summary.members is not None and not 0 <= summary.members <= summary.records:
        faults.append(f"of {summary.records} records {summary.members} are members.")
    raise_faults(faults[:5])


def _faults(value: Any, name: str) -> Iterator[str]:
    """Every fault in a value and in all that it holds."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        yield from _number_faults(value, name)
    elif isinstance(value, Interval):
        if not value.low <= value.high:  # nor NaN
            entry = f"{name}_interval" if name in FIGURES else name
            yield f"{entry} is from {value.low} to {value.high}."
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
                name = "units" if (type(value), field.name) == (RiskFigures, "chance") else field.name  # not shares
                yield from _faults(getattr(value, field.name), name)


def _number_faults(value: float, name: str) -> Iterator[str]:
    if isinstance(value, float) and not math.isfinite(value):
        yield f"{name} is not a number."
        return
    described = FIGURES.get(name)
    low, high = (described.low, described.high) if described else (-math.inf, math.inf)
    if name in _SHARES:
        low, high = 0.0, 1.0
    if not low <= value <= high:
        where = f"below {low:g}" if high == math.inf else f"not between {low:g} and {high:g}"
        yield f"{name} is {shortened(value)}, which is {where}."
    elif isinstance(value, int) and name not in ("seed", "top_records") and not 0 <= value <= _MOST:
        yield f"{name} is {shortened(value)}, which is not a count."


def _list_faults(value: Any) -> Iterator[str]:
    """Lists that must have the same length, or may not be empty."""
    lists: list[tuple[Any, ...]] = []
    wrong = False
    match value:
        case Curve():
            lists = [value.fpr, value.tpr, value.low, value.high]
            wrong = not value.fpr or value.non_members < 1 or list(value.fpr) != sorted(value.fpr)
        case Histogram():
            lists = [value.edges[1:], value.members, *([] if value.others is None else [value.others])]
            wrong = len(value.edges) < 2 or any(a >= b for a, b in zip(value.edges, value.edges[1:], strict=False))
        case Reliability():
            lists = [value.said, value.found, value.intervals, value.counts]
        case Neighbourhood():
            lists = [value.member, value.alike]
            wrong = not value.member or any(not 0 <= end < len(value.member) for edge in value.edges for end in edge)
        case AttackFigures():
            lists = [] if value.accusations == () else [value.accusations, value.thresholds]
            wrong = any(not one.precisions for one in value.accusations)
        case Summary():
            lists = [value.fprs, *(one.simulated.strengths for one in value.attacks if one.simulated is not None)]
    if wrong or len({len(one) for one in lists}) > 1:
        yield f"the lists of {type(value).__name__} do not fit each other."
