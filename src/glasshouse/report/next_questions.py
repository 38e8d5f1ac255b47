"""What a reader asks after the verdict: who is wrongly accused, which groups leak, which leak could be seen."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from glasshouse.evaluation.discoveries import DISCOVERY_LEVEL
from glasshouse.evaluation.groups import GroupLeak
from glasshouse.evaluation.power import Power
from glasshouse.report.figures import AttackFigures
from glasshouse.report.words import percent, rate, whole
from glasshouse.table import Table

__all__ = [
    "accusation_table",
    "group_leak_table",
    "groups_sentence",
    "list_sentence",
    "power_sentences",
    "precision_sentence",
    "whole_sentence",
]


def whole_sentence(attack: AttackFigures) -> str:
    """What a sample says about all records; empty if the audited records are not a random sample of more."""
    found = attack.whole
    if found is None:
        return ""
    low, high = found.auc_interval
    rates = [
        f"; it finds {percent(one.tpr)} of the members ({percent(one.interval.low)} to {percent(one.interval.high)}) "
        f"while {rate(one.wanted)} of the others are accused"
        for one in found.rates[:1]
    ]
    return (
        f"Estimated from a sample of {whole(found.audited)} of {whole(found.records)} records: over all of them "
        f"{attack.title} has AUC {found.auc:.3f} ({100 * found.confidence:g} % interval {low:.3f} to {high:.3f})"
        f"{''.join(rates)}."
    )


def precision_sentence(attack: AttackFigures) -> str:
    """Of those that an attack accuses, how many wrongly; empty if it has no threshold or the members are not known."""
    if not attack.accusations:
        return ""
    first = attack.accusations[0]
    if not first.tpr and not first.fpr:
        return f"At its threshold for {rate(first.wanted)} FPR, {attack.name} accuses nobody."
    shares = [
        (
            rate(one.prior),
            f"{percent(1 - one.value)} ({percent(1 - one.interval.high)} to {percent(1 - one.interval.low)})",
        )
        for one in reversed(first.precisions)
        if one.value is not None
    ]
    (prior, wrong), *others = shares
    more = "".join(f"; {share} at {prior}" for prior, share in others)
    return (
        f"Of those that {attack.name} accuses at its threshold for {rate(first.wanted)} FPR, {wrong} are not members, "
        f"if {prior} of those asked about are members{more}."
    )


def list_sentence(attack: AttackFigures, *, leak: bool = True) -> str:
    """How many records can be called members with a bounded share of errors; empty without simulated targets or leak.

    One list in ten of a model that leaks nothing is not empty, so where the test of all attacks finds no leak, a list
    is not shown.
    """
    if attack.listed is None or not leak:
        return ""
    if not attack.listed:
        return f"{attack.name} can list no record as a member with at most {rate(DISCOVERY_LEVEL)} of the list wrong."
    many = f"{whole(attack.listed)} record" + ("" if attack.listed == 1 else "s")
    return (
        f"By {attack.name}, {many} can be called {'a member' if attack.listed == 1 else 'members'} with at most "
        f"{rate(DISCOVERY_LEVEL)} of such calls wrong, on average over targets like the shadow models."
    )


def groups_sentence(groups: Sequence[GroupLeak]) -> str:
    """Which groups differ from the others of their column; empty if no group was compared.

    Example:
        >>> groups_sentence([GroupLeak(column="sex", group="f", members=90, non_members=90, auc=0.6, judged=True)])
        'No group leaks more or less than the others of its column, after correction for 1 comparisons.'
    """
    compared = sum(one.judged for one in groups)
    if not compared:
        return ""
    named = [f"{one.column} {one.group} ({one.singled_out}, AUC {one.auc:.3f})" for one in groups if one.singled_out]
    if not named:
        return (
            f"No group leaks more or less than the others of its column, after correction for {compared} comparisons."
        )
    return (
        f"Groups that leak more or less than the others of their column, after correction for {compared} comparisons: "
        f"{'; '.join(named)}."
    )


def power_sentences(power: Power) -> tuple[str, str]:
    """Which leak this audit could have shown, and what a finer one needs."""
    rates = [f"{percent(one.tpr)} of the members found at {rate(one.wanted)} FPR" for one in power.rates]
    shown = ", or ".join([f"an AUC of {power.auc:.3f}", *rates])
    return (
        f"This audit would show {shown}, in four of five cases (at 5 %, corrected for {power.figures} figures). A "
        f"smaller leak would probably stay unseen.",
        f"To find an AUC of {power.finer_auc:g}, audit about {whole(power.records_for_auc)} records; for a rate at "
        f"{rate(power.finer_rate)} FPR that rests on ten false positives, {whole(power.non_members_for_rate)} "
        f"non-members.",
    )


def accusation_table(attacks: Sequence[AttackFigures]) -> Table:
    """One row per attack, threshold and prior."""
    rows = [
        {
            "attack": attack.name,
            "wanted_fpr": one.wanted,
            "prior": precision.prior,
            "precision": np.nan if precision.value is None else precision.value,
            "precision_low": precision.interval.low,
            "precision_high": precision.interval.high,
            **{
                key: value
                for name in ("tpr", "fpr", "advantage")
                for key, value in (
                    (name, getattr(one, name)),
                    (f"{name}_low", getattr(one, f"{name}_interval").low),
                    (f"{name}_high", getattr(one, f"{name}_interval").high),
                )
            },
        }
        for attack in attacks
        for one in attack.accusations
        for precision in one.precisions
    ]
    return Table({name: np.array([row[name] for row in rows]) for name in (rows[0] if rows else ())})


def group_leak_table(groups: Sequence[GroupLeak]) -> Table:
    """One row per group; figures that were not measured are NaN."""
    columns: dict[str, list[object]] = {}
    for group in groups:
        for field in dataclasses.fields(group):
            value = getattr(group, field.name)
            if field.name.endswith("_interval"):
                stem = field.name.removesuffix("_interval")
                ends = (np.nan, np.nan) if value is None else value
                columns.setdefault(f"{stem}_low", []).append(ends[0])
                columns.setdefault(f"{stem}_high", []).append(ends[1])
            else:
                columns.setdefault(field.name, []).append(np.nan if value is None else value)
    return Table({name: np.array(values) for name, values in columns.items()})
