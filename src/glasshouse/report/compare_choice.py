"""What a comparison compares: one false-positive rate and one attack, chosen without the measured figures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from glasshouse.errors import InputError
from glasshouse.evaluation.roc import allowed_wrong
from glasshouse.report.figures import AttackFigures
from glasshouse.report.summarise import Summary
from glasshouse.report.words import percent, rate

__all__ = ["ENOUGH", "Choice", "choose"]

ENOUGH = 10  # allowed false positives, below which a rate rests on very few non-members


class Choice(NamedTuple):
    """The rate and the attack.

    Args:
        fpr: the false-positive rate.
        allowed: how many false positives it allows in the run with the fewest non-members.
        attack: the name of the attack.
        reason: why this attack.
        attacks: the names of all attacks that every run measured.
    """

    fpr: float
    allowed: int
    attack: str
    reason: str
    attacks: tuple[str, ...]


def choose(summaries: Mapping[str, Summary], attack: str | None = None) -> Choice:
    """The smallest common rate with ten allowed false positives, and the attack: the wanted one, or by simulation.

    Args:
        summaries: of the runs, by name.
        attack: the name of the wanted attack; by default the common one that is strongest on simulated targets, never
            by what was measured: the luckiest of several measured figures would be too high.
    """
    fpr, allowed = _rate(summaries)
    attacks = _common(summaries)
    if attack is not None:
        _check_wanted(attack, attacks, summaries)
        return Choice(fpr, allowed, attack, f"Compared is {attack}, as asked.", attacks)
    same = [name for name in attacks if len(_kinds(name, summaries)) == 1]
    if not same:
        told = "; ".join(f"{name}: {', '.join(one.name for one in each.attacks)}" for name, each in summaries.items())
        raise InputError(f"runs: no attack was made in all of them ({told}). Audit them with the same attacks.")
    strengths = {name: _strength(name, summaries, fpr) for name in same}
    known = {name: strength for name, strength in strengths.items() if strength is not None}
    if not known:
        why = "the first that all runs have; how strong attacks are on simulated targets is not known in all of them"
        return Choice(fpr, allowed, same[0], f"Compared is {same[0]}: {why}.", attacks)
    best = max(known, key=lambda name: known[name])
    why = f"of {len(known)} attacks that all runs have, it finds most members of simulated targets"
    reason = (
        f"{why} ({percent(known[best][0])} at {rate(fpr)})" if len(known) > 1 else "the only one that all runs have"
    )
    return Choice(fpr, allowed, best, f"Compared is {best}: {reason}.", attacks)


def _rate(summaries: Mapping[str, Summary]) -> tuple[float, int]:
    shared = set.intersection(*(set(summary.fprs) for summary in summaries.values()))
    if not shared:
        told = "; ".join(f"{name}: {', '.join(map(rate, one.fprs)) or 'none'}" for name, one in summaries.items())
        raise InputError(f"runs: no false-positive rate was measured in all of them ({told}). Use the same rates.")
    fewest = min(summary.records - (summary.members or 0) for summary in summaries.values())
    allowed = {fpr: allowed_wrong(fpr, fewest) for fpr in sorted(shared)}
    fpr = next((fpr for fpr, count in allowed.items() if count >= ENOUGH), max(shared))
    return fpr, allowed[fpr]


def _common(summaries: Mapping[str, Summary]) -> tuple[str, ...]:
    """Attacks that every run measured; those that know the members are limits, and not attacks."""
    usable = [
        {one.name for one in summary.attacks if one.metrics is not None and not one.knows_truth}
        for summary in summaries.values()
    ]
    first = next(iter(summaries.values()))
    return tuple(one.name for one in first.attacks if all(one.name in names for names in usable))


def _check_wanted(attack: str, attacks: tuple[str, ...], summaries: Mapping[str, Summary]) -> None:
    if attack in attacks:
        return
    if any(one.name == attack and one.knows_truth for summary in summaries.values() for one in summary.attacks):
        raise InputError(f'attack: "{attack}" is given the members of the target, as a limit; compare another attack.')
    lost = [name for name, summary in summaries.items() if attack not in {one.name for one in summary.attacks}]
    where = f"is not in {lost[0]}" if lost else "was not measured in all runs"
    raise InputError(f'attack: "{attack}" {where}. All runs have: {", ".join(attacks) or "none"}.')


def _kinds(name: str, summaries: Mapping[str, Summary]) -> set[str]:
    """The attacks that a name stands for: ``best`` may be another one in every run."""
    return {_kind(summary.attack(name)) for summary in summaries.values()}


def _kind(attack: AttackFigures) -> str:
    return attack.description.partition("(")[0]


def _strength(name: str, summaries: Mapping[str, Summary], fpr: float) -> tuple[float, float] | None:
    """Mean over runs of the TPR at the rate and of the AUC on simulated targets; None if a run has none."""
    found = []
    for summary in summaries.values():
        simulated = summary.attack(name).simulated
        if simulated is None:
            return None
        found.append((simulated.strengths[summary.fprs.index(fpr)], simulated.auc))
    strength, area = np.mean(found, axis=0).tolist()
    return strength, area
